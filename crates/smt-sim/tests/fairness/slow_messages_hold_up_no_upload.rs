// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client has many one-way messages under way, all of which come slowly. The upload of another
//! client takes at most twice its time alone (SPEC §9.2).

use std::iter;
use std::time::Duration;

use crate::support::sender::Sender;
use crate::support::slow::Slow;
use crate::support::{GREEDY, HONEST, Maker, run_for, world};

/// Messages of one client that come slowly.
#[derive(Clone, Copy, Debug)]
struct Beside {
    messages: usize,
    /// At which each of them comes.
    bytes_per_milli: u64,
    /// Milliseconds for which they have been under way when the upload begins.
    for_millis: u64,
    /// How many sessions they are in.
    sessions: usize,
}

/// How long an upload takes beside them, over cables of this rate.
fn upload_beside(beside: Beside, rate: u64) -> Duration {
    let mut maker = Maker::new();
    let server = maker.server(65_536);
    let [slow, upload] = [GREEDY, HONEST].map(|host| maker.sender(host));
    let mut world = world([server, slow, upload], rate);
    world.network.set_rule(Box::new(Slow::new(GREEDY, beside.bytes_per_milli)));
    let sessions = iter::repeat_n(GREEDY, beside.sessions).chain([HONEST]);
    for host in sessions {
        world.change(host, |host, now| Sender::connect(host.sender(), now));
    }
    // By then the largest datagram of the way is known.
    run_for(&mut world, Duration::from_millis(400));
    for _ in 0..beside.messages {
        world.change(GREEDY, |host, now| Sender::send(host.sender(), now, 1_000_000));
    }
    run_for(&mut world, Duration::from_millis(beside.for_millis));
    let (rpc, left) = world.change(HONEST, |host, now| Sender::send(host.sender(), now, 8_000_000));
    let end = world.network.now() + Duration::from_secs(10);
    loop {
        let delivered =
            world.peek(HONEST, |host| host.sender().application.delivered.get(&rpc).copied());
        if let Some(at) = delivered {
            return at.since(left);
        }
        assert!(
            world.step(end).is_some() || world.network.now() < end,
            "the upload takes longer than 10 s"
        );
    }
}

fn takes_at_most_twice_its_time_alone(rate: u64) {
    let none = Beside { messages: 0, bytes_per_milli: 1, for_millis: 1, sessions: 1 };
    let alone = upload_beside(none, rate);
    println!("alone: {alone:?}");
    let slow = [(8, 50), (8, 556), (12, 100), (12, 1_000), (64, 50), (64, 1_000)];
    for (messages, bytes_per_milli) in slow {
        // Before it shows that they are slow, and long after. Then it is not by the share of a
        // session that the upload has its place: each may have one of its own.
        for (for_millis, sessions) in [(1, 1), (700, 1), (700, messages)] {
            let beside = Beside { messages, bytes_per_milli, for_millis, sessions };
            let took = upload_beside(beside, rate);
            println!("{beside:?}: {took:?}");
            assert!(took <= 2 * alone, "{beside:?}: {took:?} instead of {alone:?}");
        }
    }
}

#[test]
fn upload_takes_at_most_twice_its_time_alone_at_10_gigabits_a_second() {
    takes_at_most_twice_its_time_alone(10_000_000_000);
}

#[test]
fn upload_takes_at_most_twice_its_time_alone_at_100_gigabits_a_second() {
    takes_at_most_twice_its_time_alone(100_000_000_000);
}

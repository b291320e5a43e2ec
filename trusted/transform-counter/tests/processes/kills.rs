// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes that are killed under load.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::cluster::Cluster;

/// A test that waits for longer hangs.
const HANG: Duration = Duration::from_secs(120);
/// Requests of a client that makes them all the time. As many arguments have room.
const LOAD: usize = 60_000;

/// A client that makes requests all the time, and the answers that it prints.
struct Load {
    child: Child,
    answers: Receiver<String>,
    seen: Vec<u64>,
}

impl Load {
    fn start(cluster: &Cluster) -> Self {
        let mut command = cluster.client(1, &["--deadline-s", "120"]);
        let mut child = command.args(vec!["1"; LOAD]).stdout(Stdio::piped()).spawn().unwrap();
        let lines: Lines<BufReader<ChildStdout>> =
            BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, answers, seen: Vec::new() }
    }

    /// Waits for some more answers.
    fn wait_for(&mut self, count: usize) {
        for _ in 0..count {
            let answer =
                self.answers.recv_timeout(HANG).expect("no answer: the group stands still");
            self.seen.push(answer.parse().unwrap());
        }
    }

    /// Ends the client, and returns all answers that it has printed.
    fn end(mut self) -> Vec<u64> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.seen.extend(self.answers.iter().map(|it| it.parse::<u64>().unwrap()));
        self.seen
    }
}

#[test]
fn nodes_that_are_killed_under_load_lose_nothing_and_count_nothing_twice() {
    let variable = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().unwrap());
    let kills = variable("SMT_KILLS").unwrap_or(5);
    let mut random = variable("SMT_TRANSFORM_SEED").unwrap_or_else(|| std::process::id().into());
    println!("SMT_TRANSFORM_SEED={random}");
    let mut cluster = Cluster::new();
    let mut load = Load::start(&cluster);
    for kill in 0..kills {
        load.wait_for(5);
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = (random >> 33) as usize % 5;
        let victims = if drawn < 3 { vec![drawn] } else { vec![0, 1, 2] };
        println!("kill {kill}: {victims:?}");
        cluster.kill(&victims);
        victims.iter().for_each(|it| cluster.start(*it));
    }
    load.wait_for(5);
    let answers = load.end();
    // One client adds 1 each time: any sum that is lost or counted twice shows.
    let expected: Vec<u64> = (1..=answers.len() as u64).collect();
    assert_eq!(answers, expected);
    let sum = cluster.add(0);
    // The last request may have run without its answer being printed.
    assert!(sum == expected.len() as u64 || sum == expected.len() as u64 + 1, "{sum}");
    for number in 0..3 {
        let last = cluster.end(number);
        assert_eq!(last["faulty"], serde_json::json!([]), "{last}");
    }
}

#[test]
fn a_counter_goes_on_without_its_leader_and_needs_it_when_it_is_back() {
    let mut cluster = Cluster::new();
    assert_eq!(cluster.add(3), 3);
    cluster.kill(&[0]);
    assert_eq!(cluster.add(4), 7);
    cluster.start(0);
    cluster.kill(&[1]);
    assert_eq!(cluster.add(5), 12);
    cluster.kill(&[0, 2]);
    (0..3).for_each(|it| cluster.start(it));
    assert_eq!(cluster.add(6), 18);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages arrive whole, once, in the order of their connection.

use super::*;

#[test]
fn a_short_message_takes_as_long_as_its_packet() {
    let mut scene = Scene::rack(2);
    scene.send(0, 1, 7, 100);
    scene.run_until(Duration::from_millis(1));
    // 100 bytes, 12 of frame, 22 of record, 12 of segment, 66 of UDP and Ethernet: 212, or 169.6 ns.
    let at = Time::from_nanos(2 * (170 + 500));
    let expected = Delivered {
        message: 7,
        from: HostId(0),
        length: 100,
        at,
    };
    assert_eq!(scene.arrived, [(HostId(1), expected)]);
    assert_eq!(scene.host(0).queued(HostId(1)), 0);
}

#[test]
fn a_long_message_has_every_byte_on_the_wire() {
    let mut scene = Scene::rack(2);
    scene.send(0, 1, 7, 1_000_000);
    scene.run_until(Duration::from_millis(2));
    assert_eq!(scene.arrived.len(), 1);
    // 62 records of at most 16,384; 1,001,376 bytes of stream in segments of 1,460.
    assert_eq!(scene.host(0).counts().segments, 686);
    assert_eq!(scene.host(1).counts().acknowledgements, 686);
}

#[test]
fn messages_of_a_connection_share_segments_and_stay_in_order() {
    let mut scene = Scene::rack(2);
    scene.world.change(HostId(0), |host, now| {
        (0..1_000).for_each(|message| host.send(now, HostId(1), message, 10));
    });
    scene.run_until(Duration::from_millis(1));
    let arrived = scene.arrived.iter().map(|(_, delivered)| delivered.message);
    assert!(arrived.eq(0..1_000));
    // 44 bytes each.
    assert_eq!(scene.host(0).counts().segments, 44_000_u64.div_ceil(1_460));
}

mod behind_a_long_message {
    use super::*;

    const LONG: u32 = 5_000_000;

    /// When the short and the long message arrive.
    fn arrivals(pooling: Pooling) -> (Duration, Duration) {
        let options = StreamOptions {
            pooling,
            ..StreamOptions::default()
        };
        let mut scene = Scene::new(&Topology::rack(2, EDGE), options, 1);
        scene.send(0, 1, 1, LONG);
        scene.send(0, 1, 2, 100);
        scene.run_until(Duration::from_millis(10));
        assert_eq!(scene.arrived.len(), 2);
        (scene.arrival(2), scene.arrival(1))
    }

    #[test]
    fn a_short_one_waits_on_the_same_connection() {
        let (short, long) = arrivals(Pooling::OnePerPair);
        assert!(
            short >= long && long > Duration::from_millis(4),
            "{short:?}"
        );
    }

    #[test]
    fn a_short_one_passes_on_another_connection() {
        let (short, long) = arrivals(Pooling::Pool(4));
        // Four full segments of the long one are before it: three at the cable and one whose turn it was.
        assert!(short < Duration::from_micros(8), "{short:?}");
        assert!(long > Duration::from_millis(4));
    }
}

#[test]
fn connections_of_a_pool_are_used_where_the_least_is_queued() {
    let options = StreamOptions {
        pooling: Pooling::Pool(3),
        ..StreamOptions::default()
    };
    let mut scene = Scene::new(&Topology::rack(2, EDGE), options, 1);
    // The short ones share the third connection as long as that has less than the others.
    for (message, length) in [(1, 900_000), (2, 900_000), (3, 100), (4, 100), (5, 100)] {
        scene.send(0, 1, message, length);
    }
    scene.run_until(Duration::from_millis(5));
    let order = scene.arrived.iter().map(|(_, delivered)| delivered.message);
    assert!(order.eq([3, 4, 5, 1, 2]));
}

#[test]
fn connections_take_turns_at_the_cable() {
    let mut scene = Scene::rack(3);
    scene.send(0, 1, 1, 1_000_000);
    scene.send(0, 2, 2, 1_000_000);
    scene.run_until(Duration::from_millis(5));
    // Alone either would take 0.9 ms; together they finish within a few packets of each other.
    let (first, second) = (scene.arrival(1), scene.arrival(2));
    assert!(
        first.abs_diff(second) < Duration::from_micros(10),
        "{first:?} {second:?}"
    );
}

#[test]
fn all_hosts_of_a_rack_reach_each_other_with_any_lengths() {
    let mut random = Random::new(seed());
    let mut scene = Scene::rack(8);
    let mut sent = Vec::new();
    for message in 0..2_000 {
        let (from, to) = (random.below(8) as u32, random.below(8) as u32);
        let bits = random.between(1, 17);
        let length = random.below(1 << bits) as u32;
        if from != to {
            scene.send(from, to, message, length);
            sent.push((HostId(from), HostId(to), message, length));
        }
    }
    scene.run_until(Duration::from_secs(2));
    // By pair, and within each in the order of sending.
    let mut arrived: Vec<_> = scene
        .arrived
        .iter()
        .map(|(to, delivered)| (delivered.from, *to, delivered.message, delivered.length))
        .collect();
    arrived.sort_by_key(|(from, to, ..)| (*from, *to));
    sent.sort_by_key(|(from, to, ..)| (*from, *to));
    assert_eq!(arrived, sent);
}

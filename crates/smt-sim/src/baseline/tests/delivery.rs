// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages arrive whole, once, in the order of their connection.

use super::*;
use crate::net::packet::Protocol;
use crate::net::world::{Burst, Host};

#[test]
fn a_short_message_takes_as_long_as_its_packet() {
    let mut scene = Scene::rack(2);
    scene.send(0, 1, 7, 100);
    scene.run_until(Duration::from_millis(1));
    // 100 bytes, 12 of frame, 22 of record, 12 of segment, 66 of UDP and Ethernet: 212, or 169.6
    // ns.
    let at = Time::from_nanos(2 * (170 + 500));
    let expected = Delivered { message: 7, from: HostId(0), length: 100, at };
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
        let options = StreamOptions { pooling, ..StreamOptions::default() };
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
        assert!(short >= long && long > Duration::from_millis(4), "{short:?}");
    }

    #[test]
    fn a_short_one_passes_on_another_connection() {
        let (short, long) = arrivals(Pooling::Pool(4));
        // Four full segments of the long one are before it: three at the cable and one whose turn
        // it was.
        assert!(short < Duration::from_micros(8), "{short:?}");
        assert!(long > Duration::from_millis(4));
    }
}

#[test]
fn connections_of_a_pool_are_used_where_the_least_is_queued() {
    let options = StreamOptions { pooling: Pooling::Pool(3), ..StreamOptions::default() };
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
fn packets_have_one_priority_and_those_of_a_connection_one_entropy() {
    let options = StreamOptions { pooling: Pooling::Pool(2), ..StreamOptions::default() };
    let mut hosts = [0, 1].map(|id| StreamHost::new(HostId(id), 2, options));
    let now = Time::default();
    (0..4).for_each(|message| hosts[0].send(now, HostId(1), message, 5_000));
    let mut entropies = std::collections::BTreeMap::new();
    let mut packets = 0;
    for (from, to) in [(0, 1), (1, 0)] {
        while let Some(burst) = hosts[from].transmit(now) {
            assert_eq!(burst.priority, 0);
            let lane = u16::from_be_bytes([burst.bytes[2], burst.bytes[3]]);
            let entropy = *entropies.entry((from, lane)).or_insert(burst.entropy);
            assert_eq!(burst.entropy, entropy);
            hosts[to].receive(now, &packet(from, burst));
            packets += 1;
        }
    }
    let mut different: Vec<u64> = entropies.into_values().collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!((packets, different.len()), (2 * 14, 4));
}

#[test]
fn acknowledgements_go_before_data() {
    let mut hosts = [0, 1].map(|id| StreamHost::new(HostId(id), 2, StreamOptions::default()));
    let now = Time::default();
    hosts[0].send(now, HostId(1), 1, 1_000);
    hosts[1].send(now, HostId(0), 2, 1_000);
    let burst = hosts[0].transmit(now).unwrap();
    hosts[1].receive(now, &packet(0, burst));
    let kinds = std::iter::from_fn(|| hosts[1].transmit(now)).map(|burst| burst.bytes[0]);
    assert!(kinds.eq([1, 0]));
}

#[test]
fn any_bytes_are_survived() {
    let mut random = Random::new(seed());
    let mut host = StreamHost::new(HostId(1), 2, StreamOptions::default());
    let now = Time::default();
    host.send(now, HostId(0), 1, 100_000);
    while host.transmit(now).is_some() {}
    for _ in 0..20_000 {
        let mut bytes = vec![0; random.below(100) as usize];
        random.fill(&mut bytes);
        // Often enough what a header may begin with: small kinds, counts and places.
        for byte in bytes.iter_mut().take(random.below(11) as usize) {
            *byte &= 1;
        }
        if random.chance(100_000) {
            bytes.iter_mut().skip(4).take(7).for_each(|byte| *byte = 255);
        }
        let mut packet = packet(random.below(4) as usize, burst(bytes));
        packet.is_marked = random.chance(100_000);
        host.receive(now, &packet);
    }
    while host.transmit(now).is_some() {}
}

fn burst(bytes: Vec<u8>) -> Burst {
    Burst {
        from: HostId(0),
        to: HostId(1),
        segment_size: bytes.len(),
        bytes: bytes.into(),
        priority: 0,
        entropy: 0,
        protocol: Protocol::Tcp,
    }
}

fn packet(from: usize, burst: Burst) -> Packet {
    Packet {
        from: HostId(from as u32),
        to: burst.to,
        bytes: burst.bytes,
        priority: burst.priority,
        is_marked: false,
        is_trimmed: false,
        entropy: burst.entropy,
        protocol: burst.protocol,
    }
}

#[test]
fn connections_take_turns_at_the_cable() {
    let mut scene = Scene::rack(3);
    scene.send(0, 1, 1, 1_000_000);
    scene.send(0, 2, 2, 1_000_000);
    scene.run_until(Duration::from_millis(5));
    // Alone either would take 0.9 ms; together they finish within a few packets of each other.
    let (first, second) = (scene.arrival(1), scene.arrival(2));
    assert!(first.abs_diff(second) < Duration::from_micros(10), "{first:?} {second:?}");
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SPEC §9.1: packets of one batch are equally long. Messages are cut so that others fit behind
//! them.

use smt_proto::{Endpoint, Time, TransmitBuffer};

use super::support::configs::ethernet;
use super::support::{Random, Verdict, World, body, ms};

/// The lengths of the datagrams of the next batch.
fn next_batch(endpoint: &mut Endpoint, now: Time) -> Option<Vec<usize>> {
    let mut buffer = TransmitBuffer::default();
    let transmit = endpoint.poll_transmit(now, &mut buffer)?;
    Some(transmit.segments(&buffer).map(<[u8]>::len).collect())
}

fn with_calls(lengths: &[usize]) -> World {
    let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
    let now = world.now;
    let endpoint = &mut world.nodes[0].endpoint;
    while endpoint.poll_transmit(now, &mut TransmitBuffer::default()).is_some() {}
    for (number, length) in (0..).zip(lengths) {
        endpoint.call(now, session, body(number, *length), None).unwrap();
    }
    world
}

#[test]
fn messages_of_equal_length_leave_in_few_batches() {
    for (length, packets) in [(1_500, 2), (2_900, 3), (8_192, 6), (30_000, 21)] {
        let mut world = with_calls(&[length; 10]);
        let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
        let batches: Vec<_> = std::iter::from_fn(|| next_batch(endpoint, now)).collect();
        let in_all: usize = batches.iter().map(Vec::len).sum();
        assert_eq!(in_all, 10 * packets, "no packet more for {length} B");
        if length > 5_000 {
            assert_eq!(batches.len(), in_all.div_ceil(44), "{length} B: {batches:?}");
        }
        for batch in batches {
            assert!(batch[..batch.len() - 1].iter().all(|length| *length == batch[0]));
        }
    }
}

/// Whatever is granted at a time.
#[test]
fn batches_take_hardly_more_packets_than_full_packets_would() {
    for granted in [8_000, 16_000, 40_000, 256_000] {
        let mut server = ethernet();
        server.incoming_max = granted;
        let (mut world, session, _) = World::connected_with(ethernet(), server);
        world.is_recording = true;
        let rpc = world.call(0, session, body(1, 1_000_000));
        world.outcome(0, rpc).unwrap();
        let from_client = world.sent.iter().filter(|sent| sent.from == 0);
        let packets = from_client.filter(|sent| sent.data().is_some()).count();
        let full = 1_001_400_usize.div_ceil(1_436);
        println!("{granted} B at a time: {packets} packets, {full} full ones");
        assert!(packets <= full + full / 20, "{packets} for {full}");
    }
}

#[test]
fn sessions_between_the_same_sockets_share_batches() {
    let (mut world, first, _) = World::connected_with(ethernet(), ethernet());
    let others = [0; 9].map(|_| world.connect(0, 1).unwrap().0);
    world.run_for(ms(3_000));
    let now = world.now;
    for (number, session) in (0..).zip([first].into_iter().chain(others)) {
        let endpoint = &mut world.nodes[0].endpoint;
        endpoint.call(now, session, body(number, 64), None).unwrap();
    }
    let batch = next_batch(&mut world.nodes[0].endpoint, now).unwrap();
    assert_eq!(batch.len(), 10);
    assert!(batch.iter().all(|length| *length == batch[0]));
    assert_eq!(next_batch(&mut world.nodes[0].endpoint, now), None);
}

#[test]
fn sessions_that_share_batches_still_take_turns() {
    for sessions in [2, 3, 4] {
        let (mut world, first, _) = World::connected_with(ethernet(), ethernet());
        let mut all = vec![first];
        all.extend((1..sessions).map(|_| world.connect(0, 1).unwrap().0));
        world.run_for(ms(3_000));
        let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
        for number in 0..600 {
            for session in &all {
                let sent = endpoint.send_one_way(now, *session, body(number, 1_130), None);
                sent.unwrap();
            }
        }
        let mut indices = std::collections::BTreeSet::new();
        for _ in 0..2 * sessions {
            let mut buffer = TransmitBuffer::default();
            let transmit = endpoint.poll_transmit(now, &mut buffer).unwrap();
            let of = |packet: &[u8]| packet[12..20].to_vec();
            indices.extend(transmit.segments(&buffer).map(of));
        }
        assert_eq!(indices.len(), sessions, "all have sent");
    }
}

#[test]
fn a_short_message_does_not_set_the_packet_length_of_long_ones() {
    let mut world = with_calls(&[1_130, 1_130, 200_000]);
    let (now, endpoint) = (world.now, &mut world.nodes[0].endpoint);
    assert_eq!(next_batch(endpoint, now), Some(vec![1_250; 2]));
    let long = next_batch(endpoint, now).unwrap();
    assert!(long[0] > 1_400, "{long:?}");
}

#[test]
fn messages_that_share_batches_arrive_whatever_is_lost() {
    for seed in 0..20 {
        let (mut world, session, _) = World::connected_with(ethernet(), ethernet());
        let mut random = Random::new(seed);
        world.rule = Box::new(move |_, _| match random.below(10) {
            0 => Verdict::Drop,
            _ => Verdict::Deliver,
        });
        let lengths = [8_192, 2_900, 8_192, 8_100, 40_000, 1_500, 2_900, 8_192];
        let calls: Vec<_> = (0..)
            .zip(lengths)
            .map(|(number, length)| world.call(0, session, body(number, length)))
            .collect();
        for ((number, length), rpc) in (0..).zip(lengths).zip(calls) {
            assert_eq!(world.outcome(0, rpc), Ok(body(number, length)), "seed {seed}");
        }
    }
}

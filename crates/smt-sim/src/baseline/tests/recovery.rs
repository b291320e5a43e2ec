// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A lost segment is sent again, by acknowledgements if they tell and by time if not. A segment
//! that is only late is soon no longer sent again.

use super::*;
use crate::net::switch::{Spreading, SwitchPolicy};

const LENGTH: u32 = 5_000_000;

#[test]
fn losses_within_a_message_are_repaired_without_waiting() {
    let mut scene = Scene::rack(2).losing(|_, segment| segment % 50 == 25);
    scene.send(0, 1, 1, LENGTH);
    scene.run_until(Duration::from_secs(1));
    assert_eq!(scene.arrived.len(), 1);
    let counts = scene.host(0).counts();
    assert_eq!(counts.timeouts, 0);
    // Only what was lost is sent again: one of 50 of what was sent.
    assert_eq!(counts.resent, counts.segments.div_ceil(50));
    assert!(counts.losses > 50);
}

#[test]
fn a_segment_that_is_lost_again_and_again_is_sent_again_without_waiting() {
    let mut losses = 0;
    let mut scene = Scene::rack(2).losing(move |packet, _| {
        let is_lost = start_of(packet) == 146_000 && losses < 5;
        losses += u32::from(is_lost);
        is_lost
    });
    scene.send(0, 1, 1, LENGTH);
    scene.run_until(Duration::from_secs(1));
    assert_eq!(scene.arrived.len(), 1);
    let counts = scene.host(0).counts();
    assert_eq!((counts.timeouts, counts.resent, counts.losses), (0, 5, 5));
}

mod a_lost_tail {
    use super::*;

    /// When a message of so many lost transmissions of its only segment arrives.
    fn arrival(lost: u64) -> Duration {
        let mut scene = Scene::rack(2).losing(move |_, segment| segment < lost);
        scene.send(0, 1, 1, 1_000);
        scene.run_until(Duration::from_secs(1));
        assert_eq!(scene.host(0).counts().timeouts, lost);
        scene.arrival(1)
    }

    #[test]
    fn is_sent_again_after_a_millisecond() {
        let repaired = arrival(1) - arrival(0);
        assert_eq!(repaired, Duration::from_millis(1));
    }

    #[test]
    fn is_waited_for_twice_as_long_each_time() {
        let repaired = arrival(4) - arrival(0);
        assert_eq!(repaired, Duration::from_millis(1 + 2 + 4 + 8));
    }
}

#[test]
fn a_timeout_is_short_again_after_a_round_trip() {
    // The first message is lost three times, the third one once.
    let mut scene = Scene::rack(2).losing(|_, segment| segment < 3 || segment == 5);
    scene.send(0, 1, 1, 1_000);
    scene.run_until(Duration::from_micros(7_500));
    scene.send(0, 1, 2, 1_000);
    scene.run_until(Duration::from_micros(8_000));
    scene.send(0, 1, 3, 1_000);
    scene.run_until(Duration::from_secs(1));
    assert_eq!(scene.host(0).counts().timeouts, 4);
    let (second, third) = (scene.arrival(2), scene.arrival(3));
    assert_eq!(third - second, Duration::from_micros(500 + 1_000));
}

#[test]
fn a_whole_lost_window_is_sent_again_in_slow_start() {
    let mut scene = Scene::rack(2).losing(|_, segment| segment < 10);
    scene.send(0, 1, 1, 10 * 1_460 - 34);
    scene.run_until(Duration::from_secs(1));
    let counts = scene.host(0).counts();
    assert_eq!((counts.timeouts, counts.resent), (1, 10));
    // 1 ms, then 1, 2, 4 and 3 segments in four round trips of 4.6 us.
    let arrival = scene.arrival(1);
    assert!(arrival < Duration::from_micros(1_025), "{arrival:?}");
}

#[test]
fn lost_acknowledgements_cost_nothing_as_long_as_one_comes() {
    struct Every(u64);
    impl LinkRule for Every {
        fn pass(&mut self, _: Time, packet: Packet, out: &mut Vec<(Packet, u64)>) {
            self.0 += u64::from(packet.bytes[0] == 1);
            if packet.bytes[0] == 0 || self.0.is_multiple_of(5) {
                out.push((packet, 0));
            }
        }
    }
    let mut scene = Scene::rack(2);
    scene.world.network.set_rule(Box::new(Every(0)));
    scene.send(0, 1, 1, LENGTH);
    scene.run_until(Duration::from_secs(1));
    assert_eq!(scene.arrived.len(), 1);
    // Only of the last segments may none be reported.
    let counts = scene.host(0).counts();
    assert!(counts.resent <= 4 && counts.losses == 0, "{counts:?}");
}

#[test]
fn nothing_is_repeated_where_the_path_is_longer_than_the_least_timeout() {
    let far = Link { delay: Duration::from_millis(5), ..EDGE };
    let options =
        StreamOptions { round_trip: Duration::from_millis(20), ..StreamOptions::default() };
    let mut scene = Scene::new(&Topology::rack(2, far), options, 1);
    scene.send(0, 1, 1, LENGTH);
    scene.run_until(Duration::from_secs(1));
    assert_eq!(scene.arrived.len(), 1);
    let counts = scene.host(0).counts();
    assert_eq!((counts.resent, counts.timeouts), (0, 0));
}

#[test]
fn switches_that_trim_leave_segments_whole() {
    let mut topology = Topology::rack(3, EDGE);
    topology.switch.trim_above = Some(20_000);
    let mut scene = Scene::new(&topology, StreamOptions::default(), 1);
    scene.send(0, 2, 1, 300_000);
    scene.send(1, 2, 2, 300_000);
    scene.run_until(Duration::from_secs(1));
    assert_eq!(scene.arrived.len(), 2);
    let ports = scene.world.network.port_statistics();
    let [trimmed, longest] = ports.fold([0, 0], |[trimmed, longest], port| {
        [trimmed + port.trimmed, longest.max(port.queue_max)]
    });
    assert!(trimmed == 0 && longest > 20_000, "{trimmed} {longest}");
    let segments = scene.host(0).counts().segments + scene.host(1).counts().segments;
    assert_eq!(scene.host(2).counts().acknowledgements, segments);
}

mod over_several_paths {
    use super::*;

    /// Two racks, four paths between them, and traffic of others that makes their queues differ.
    /// Segments that the sender of a long message repeated although none is lost.
    fn needless(spreading: Spreading, reordering: u32) -> u64 {
        let mut topology = Topology::datacenter(10_000_000_000, 10_000_000_000);
        topology.racks = 2;
        topology.switch =
            SwitchPolicy { spreading, mark_above: Some(100_000), ..SwitchPolicy::default() };
        let options = StreamOptions { reordering, ..StreamOptions::default() };
        let mut scene = Scene::new(&topology, options, 1);
        scene.send(0, 16, 1, LENGTH);
        (1..4).for_each(|host| scene.send(host, 16 + host, 2, 4 * LENGTH));
        scene.run_until(Duration::from_secs(1));
        assert_eq!(scene.arrived.len(), 4);
        let ports = scene.world.network.port_statistics();
        assert_eq!(ports.map(|port| port.dropped).sum::<u64>(), 0);
        assert_eq!(scene.host(0).counts().timeouts, 0);
        scene.host(0).counts().resent
    }

    #[test]
    fn a_connection_stays_on_one() {
        assert_eq!(needless(Spreading::ByEntropy, 3), 0);
    }

    #[test]
    fn a_connection_learns_to_be_patient() {
        let resent = needless(Spreading::ByPacket, 3);
        assert!((1..50).contains(&resent), "{resent}");
    }

    #[test]
    fn a_connection_that_is_told_to_be_patient_repeats_nothing() {
        assert_eq!(needless(Spreading::ByPacket, 300), 0);
    }
}

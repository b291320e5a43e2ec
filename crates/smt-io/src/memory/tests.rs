// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits and the losses of a network in memory.

use super::*;
use crate::testing::Described as _;
use smt_carrier::Transmit;
use std::time::Duration;

const SOON: Wait = Wait::AtMost(Duration::from_secs(10));

fn send(carrier: &MemoryCarrier, to: &MemoryCarrier, bytes: &[u8], segment_size: usize) {
    let transmit = Transmit::new(Path::to(to.local_address()), segment_size);
    carrier.send_bytes(&transmit, bytes).unwrap();
}

/// Takes everything that is there; gives the datagrams of each batch.
fn drain(carrier: &MemoryCarrier) -> Vec<Vec<Vec<u8>>> {
    let mut buffer = vec![0; smt_carrier::limits::RECEIVE_BUFFER_BYTES];
    let mut batches = Vec::new();
    while let Some(received) = carrier.receive_into(&mut buffer, Wait::Never).unwrap() {
        let segments = received.arrival(&buffer).segments();
        batches.push(segments.map(|bytes| bytes.to_vec()).collect());
    }
    batches
}

/// The first byte of every datagram that is there.
fn drain_marks(carrier: &MemoryCarrier) -> Vec<u8> {
    drain(carrier).concat().iter().map(|bytes| bytes[0]).collect()
}

mod receive {
    use super::*;

    #[test]
    fn run_of_equal_datagrams_is_one_batch_up_to_a_shorter_one() {
        let (left, right) = MemoryCarrier::pair();
        send(&left, &right, &[1; 10], 4);
        send(&left, &right, &[2; 4], 4);
        assert_eq!(drain(&right), [vec![vec![1; 4], vec![1; 4], vec![1; 2]], vec![vec![2; 4]]]);
    }

    #[test]
    fn longer_datagram_begins_a_batch() {
        let (left, right) = MemoryCarrier::pair();
        send(&left, &right, &[1; 4], 4);
        send(&left, &right, &[2; 5], 5);
        assert_eq!(drain(&right), [[vec![1; 4]], [vec![2; 5]]]);
    }

    #[test]
    fn paths_are_not_mixed_in_a_batch() {
        let network = MemoryNetwork::new(MemoryOptions::new());
        let [first, second, third] = ["192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"]
            .map(|address| network.bind(address.parse().unwrap()));
        send(&first, &third, &[1; 4], 4);
        send(&second, &third, &[2; 4], 4);
        let mut buffer = [0; 64];
        for sender in [&first, &second] {
            let received = third.receive_into(&mut buffer, Wait::Never).unwrap().unwrap();
            assert_eq!(received.path.remote, sender.local_address());
            assert_eq!(received.length, 4);
        }
    }

    #[test]
    fn without_coalescing_each_is_alone() {
        let (left, right) = MemoryCarrier::pair_with(MemoryOptions::new().coalesce(false));
        send(&left, &right, &[1; 10], 4);
        assert_eq!(drain(&right).len(), 3);
    }

    #[test]
    fn batch_never_outgrows_the_buffer() {
        let (left, right) = MemoryCarrier::pair();
        send(&left, &right, &[1; 12], 4);
        let mut buffer = [0; 10];
        for length in [8, 4] {
            let taken = right.mailbox.take(&mut buffer, Wait::Never, true);
            let received = taken.received.unwrap();
            assert_eq!((received.length, received.segment_size), (length, 4));
        }
    }

    #[test]
    fn datagram_past_the_buffer_is_dropped_and_counted() {
        let options = MemoryOptions::new().datagram_bytes_max(70_000);
        let (left, right) = MemoryCarrier::pair_with(options);
        send(&left, &right, &[1; 70_000], 70_000);
        send(&left, &right, b"next", 4);
        let mut buffer = [0; 64];
        right.receive_into(&mut buffer, Wait::Never).unwrap().unwrap();
        assert_eq!(&buffer[..4], b"next");
        assert_eq!(right.statistics().datagrams_truncated, 1);
    }

    #[test]
    fn arrival_ends_the_wait_of_another_thread() {
        let (left, right) = MemoryCarrier::pair();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| right.receive_into(&mut [0; 64], SOON));
            send(&left, &right, b"ping", 4);
            assert!(waiting.join().unwrap().unwrap().is_some());
        });
    }
}

mod send {
    use super::*;

    #[test]
    fn full_queue_drops_by_count() {
        let (left, right) = MemoryCarrier::pair_with(MemoryOptions::new().queue_datagrams(3));
        send(&left, &right, &[1, 2, 3, 4, 5], 1);
        assert_eq!(right.statistics().datagrams_dropped, 2);
        assert_eq!(drain_marks(&right), [1, 2, 3]);
        send(&left, &right, &[6], 1);
        assert_eq!(drain_marks(&right), [6]);
    }

    #[test]
    fn full_queue_drops_by_bytes() {
        let (left, right) = MemoryCarrier::pair_with(MemoryOptions::new().queue_bytes(10));
        send(&left, &right, &[1; 12], 4);
        assert_eq!(right.statistics().datagrams_dropped, 1);
        drain(&right);
        send(&left, &right, &[1; 8], 4);
        assert_eq!(right.statistics().datagrams_dropped, 1);
    }

    #[test]
    fn answer_comes_from_the_address_that_was_called() {
        let (client, server) = MemoryCarrier::pair();
        let called = "198.51.100.7:7".parse().unwrap();
        let server = server.also_at(called);
        let mut transmit = Transmit::new(Path::to(called), 4);
        client.send_bytes(&transmit, b"ping").unwrap();
        let received = server.receive_into(&mut [0; 64], Wait::Never).unwrap().unwrap();
        transmit.path = received.path;
        server.send_bytes(&transmit, b"pong").unwrap();
        let answer = client.receive_into(&mut [0; 64], Wait::Never).unwrap().unwrap();
        assert_eq!(answer.path.remote, called);
    }

    #[test]
    fn departed_peer_is_a_hint() {
        let (left, right) = MemoryCarrier::pair();
        let remote = right.local_address();
        send(&left, &right, b"ping", 4);
        drop(right);
        let transmit = Transmit::new(Path::to(remote), 4);
        left.send_bytes(&transmit, b"ping").unwrap();
        let hint = ReceiveError::Unreachable { remote: Some(remote) };
        assert_eq!(left.receive_into(&mut [0; 64], SOON), Err(hint));
        assert_eq!(left.receive_into(&mut [0; 64], Wait::Never), Ok(None));
    }
}

mod with_fault {
    use super::*;

    /// Sends datagrams marked 1 to 5 in one batch; gives the marks in order of arrival.
    fn arrivals(rule: impl Fn(u8) -> Fault + Send + 'static) -> Vec<u8> {
        let (left, right) = MemoryCarrier::pair();
        let left = left.with_fault(move |bytes| rule(bytes[0]));
        send(&left, &right, &[1, 2, 3, 4, 5], 1);
        drain_marks(&right)
    }

    fn only(mark: u8, fault: Fault) -> impl Fn(u8) -> Fault + Send {
        move |of| if of == mark { fault } else { Fault::Deliver }
    }

    #[test]
    fn delivered_is_untouched() {
        assert_eq!(arrivals(|_| Fault::Deliver), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn dropped_is_missing() {
        assert_eq!(arrivals(only(2, Fault::Drop)), [1, 3, 4, 5]);
    }

    #[test]
    fn duplicate_arrives_twice() {
        assert_eq!(arrivals(only(2, Fault::Duplicate)), [1, 2, 2, 3, 4, 5]);
    }

    #[test]
    fn delayed_arrives_after_that_many_others() {
        assert_eq!(arrivals(only(2, Fault::Delay(2))), [1, 3, 4, 2, 5]);
        assert_eq!(arrivals(only(2, Fault::Delay(0))), [1, 2, 3, 4, 5]);
        assert_eq!(arrivals(only(5, Fault::Delay(1))), [1, 2, 3, 4]);
    }

    #[test]
    fn delayed_waits_for_a_later_batch() {
        let (left, right) = MemoryCarrier::pair();
        let left = left.with_fault(|bytes| only(1, Fault::Delay(2))(bytes[0]));
        for mark in [1, 2, 3] {
            send(&left, &right, &[mark], 1);
        }
        assert_eq!(drain_marks(&right), [2, 3, 1]);
    }

    #[test]
    fn rule_may_change_the_bytes() {
        let (left, right) = MemoryCarrier::pair();
        let left = left.with_fault(|bytes| {
            bytes[0] ^= 0x80;
            Fault::Deliver
        });
        send(&left, &right, &[1], 1);
        assert_eq!(drain_marks(&right), [0x81]);
    }

    #[test]
    fn seeded_loss_is_the_same_again() {
        let seed = 0x5eed_u64;
        println!("seed {seed:#x}");
        let run = || {
            let mut state = seed;
            let (left, right) = MemoryCarrier::pair();
            let left = left.with_fault(move |_| {
                // xorshift64: enough to choose by.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                match state % 4 {
                    0 => Fault::Drop,
                    1 => Fault::Duplicate,
                    2 => Fault::Delay(3),
                    _ => Fault::Deliver,
                }
            });
            let marks: Vec<u8> = (0..200).collect();
            send(&left, &right, &marks, 1);
            drain_marks(&right)
        };
        let first = run();
        assert_eq!(first, run());
        assert!(!first.is_sorted() && first.len() != 200);
    }
}

mod bind {
    use super::*;

    #[test]
    #[should_panic(expected = "is taken")]
    fn taken_address_is_the_callers_mistake() {
        let network = MemoryNetwork::new(MemoryOptions::new());
        let _first = network.bind("192.0.2.1:1".parse().unwrap());
        let _second = network.bind("192.0.2.1:1".parse().unwrap());
    }

    #[test]
    fn address_is_free_again_after_its_carrier() {
        let network = MemoryNetwork::new(MemoryOptions::new());
        drop(network.bind("192.0.2.1:1".parse().unwrap()));
        let again = network.bind("192.0.2.1:1".parse().unwrap());
        assert_eq!(again.local_address().port(), 1);
    }
}

mod marks {
    use super::*;
    use smt_carrier::Ecn;

    /// The marks and the length of each batch that is there.
    fn marks(carrier: &MemoryCarrier) -> Vec<(Marks, usize)> {
        let mut buffer = vec![0; smt_carrier::limits::RECEIVE_BUFFER_BYTES];
        let mut marks = Vec::new();
        while let Some(received) = carrier.receive_into(&mut buffer, Wait::Never).unwrap() {
            marks.push((received.marks, received.length));
        }
        marks
    }

    #[test]
    fn marked_and_trimmed_datagrams_come_apart_from_others() {
        let (left, right) = MemoryCarrier::pair();
        let mut count = 0;
        let left = left.with_fault(move |_| {
            count += 1;
            [Fault::Deliver, Fault::Mark, Fault::Mark, Fault::Trim(1)][count - 1]
        });
        send(&left, &right, &[1; 16], 4);
        let ce = Marks { ecn: Ecn::Ce, ..Marks::NONE };
        let trimmed = Marks { trimmed: true, ..Marks::NONE };
        assert_eq!(marks(&right), [(Marks::NONE, 4), (ce, 8), (trimmed, 1)]);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Descriptors, addresses and headers are the host's word: what does not fit is an error, and the
//! device goes on.

use proptest::prelude::*;
use smt_nic::completion::Status;
use smt_nic::context_memory::ContextLimits;
use smt_nic::descriptor::{ContextId, DESCRIPTOR_BYTES, SegmentWork, Work};
use smt_nic::tls::TlsEngine;
use smt_nic::{HostMemory, Nic, NicConfig, QueueError, Ring, Step};

use super::support::{Host, Run, tls_block, unsealed};

const CONTEXT: ContextId = ContextId(1);

/// A device with one queue of 16, and a context of AES-128-GCM.
fn device() -> (Host, Nic<TlsEngine>, u16) {
    let config = NicConfig {
        contexts: ContextLimits { contexts_max: 2, cached_max: 1 },
        ..NicConfig::default()
    };
    let (mut host, mut nic) = (Host::default(), Nic::new(config, TlsEngine));
    let queue = host.add_queue(&mut nic, 16);
    let create = host.create(CONTEXT, &tls_block(0x1301, &[7; 16], [9; 12], 0));
    host.post(&mut nic, queue, create);
    assert_eq!(statuses(&host.run(&mut nic, queue)), [Status::Done]);
    (host, nic, queue)
}

fn statuses(run: &Run) -> Vec<Status> {
    run.completions.iter().map(|of| of.status).collect()
}

/// How one piece of work ends, and what left for it.
fn outcome(host: &mut Host, nic: &mut Nic<TlsEngine>, work: Work) -> (Status, Run) {
    host.post(nic, 0, work);
    let run = host.run(nic, 0);
    assert_eq!(run.completions.len(), 1);
    (run.completions[0].status, run)
}

/// A segment that is right but for one change.
fn segment(host: &mut Host, change: impl Fn(&mut SegmentWork)) -> Work {
    let Work::Segment(mut work) = host.segment(Some(CONTEXT), &unsealed(&[1; 100]), 60) else {
        unreachable!("it is a segment");
    };
    change(&mut work);
    Work::Segment(work)
}

#[test]
fn each_mistake_of_a_host_has_an_error_of_its_own_and_sends_nothing() {
    let (mut host, mut nic, _) = device();
    let far = u64::MAX - 10;
    let mistakes: [(Work, Status); 9] = [
        (segment(&mut host, |of| of.payload = far), Status::DmaFault),
        (segment(&mut host, |of| of.header = far), Status::DmaFault),
        (segment(&mut host, |of| of.header_bytes -= 4), Status::BadHeaders),
        (segment(&mut host, |of| of.payload_bytes -= 1), Status::BadPayload),
        (segment(&mut host, |of| of.context = Some(ContextId(9))), Status::UnknownContext),
        (Work::Resync { context: ContextId(9), number: 1 }, Status::UnknownContext),
        (Work::Destroy { context: ContextId(9) }, Status::UnknownContext),
        (host.create(CONTEXT, &tls_block(0x1301, &[7; 16], [9; 12], 0)), Status::UnknownContext),
        (
            host.create(ContextId(2), &tls_block(0x1399, &[7; 16], [9; 12], 0)),
            Status::BadContextBlock,
        ),
    ];
    let right = segment(&mut host, |_| {});
    for (work, status) in mistakes {
        let (told, run) = outcome(&mut host, &mut nic, work);
        assert_eq!((told, run.packets.len()), (status, 0), "{work:?}");
        let is_segment = matches!(work, Work::Segment(work) if work.context == Some(CONTEXT));
        if is_segment {
            // Its number is not what the host believes.
            assert!(nic.context(CONTEXT).is_none());
            assert_eq!(outcome(&mut host, &mut nic, right).0, Status::UnknownContext);
            let again = host.create(CONTEXT, &tls_block(0x1301, &[7; 16], [9; 12], 0));
            assert_eq!(outcome(&mut host, &mut nic, again).0, Status::Done);
        }
    }
    assert_eq!(nic.context(CONTEXT).unwrap().number(), Some(0));
    let (told, run) = outcome(&mut host, &mut nic, right);
    assert_eq!((told, run.packets.len()), (Status::Done, 3));
}

#[test]
fn contexts_beyond_the_memory_are_refused_until_one_is_destroyed() {
    let (mut host, mut nic, _) = device();
    let mut create = |host: &mut Host, id| {
        let work = host.create(ContextId(id), &tls_block(0x1303, &[7; 32], [9; 12], 0));
        outcome(host, &mut nic, work).0
    };
    assert_eq!(create(&mut host, 2), Status::Done);
    assert_eq!(create(&mut host, 3), Status::NoRoom);
    let (told, _) = outcome(&mut host, &mut nic, Work::Destroy { context: CONTEXT });
    assert_eq!(told, Status::Done);
    let work = host.create(ContextId(3), &tls_block(0x1303, &[7; 32], [9; 12], 0));
    assert_eq!(outcome(&mut host, &mut nic, work).0, Status::Done);
    assert_eq!(nic.contexts(), 2);
}

#[test]
fn a_ring_where_the_host_has_no_memory_stops_its_queue_alone() {
    let (mut host, mut nic, good) = device();
    let nowhere = Ring { address: u64::MAX - 100, entries: 16 };
    let bad = nic.add_queue(nowhere, nowhere);
    nic.host_has_written(bad, 1);
    let stopped = nic.step(bad, &mut host, &mut |_| {});
    assert!(matches!(stopped, Err(QueueError::Stopped { queue, .. }) if queue == bad));
    assert_eq!(nic.step(bad, &mut host, &mut |_| {}), Ok(Step::Idle));
    host.post(&mut nic, good, Work::Fence);
    assert_eq!(statuses(&host.run(&mut nic, good)), [Status::Done]);
}

#[test]
fn a_queue_waits_for_a_host_that_does_not_read_its_completions() {
    let (mut host, mut nic, queue) = device();
    for _ in 0..16 {
        host.post(&mut nic, queue, Work::Fence);
    }
    let mut steps = Vec::new();
    loop {
        match nic.step(queue, &mut host, &mut |_| {}).unwrap() {
            Step::Fetched => {}
            step @ Step::Executed(_) => steps.push(step),
            Step::Idle => break,
            Step::Blocked => unreachable!("there is room for 16"),
        }
    }
    assert_eq!(steps.len(), 16);
    host.post(&mut nic, queue, Work::Fence);
    assert_eq!(nic.step(queue, &mut host, &mut |_| {}), Ok(Step::Fetched));
    assert_eq!(nic.step(queue, &mut host, &mut |_| {}), Ok(Step::Blocked));
    assert!(host.completion(&mut nic, queue).is_some());
    let step = nic.step(queue, &mut host, &mut |_| {});
    assert!(matches!(step, Ok(Step::Executed(_))));
}

#[test]
fn a_reset_leaves_nothing_of_contexts_and_queues() {
    let (mut host, mut nic, queue) = device();
    host.post(&mut nic, queue, Work::Fence);
    nic.reset();
    assert_eq!(nic.contexts(), 0);
    let step = nic.step(queue, &mut host, &mut |_| {});
    assert_eq!(step, Err(QueueError::UnknownQueue(queue)));
}

/// Memory that is other bytes each time that it is read.
struct Changing {
    host: Host,
    payload: std::ops::Range<u64>,
    reads: u8,
}

impl HostMemory for Changing {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), smt_nic::DmaFault> {
        self.host.read(at, into)?;
        if self.payload.contains(&at) {
            self.reads += 1;
            into[5] = self.reads;
        }
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), smt_nic::DmaFault> {
        self.host.write(at, bytes)
    }
}

#[test]
fn a_payload_is_read_once() {
    let (mut host, mut nic, queue) = device();
    let Work::Segment(work) = segment(&mut host, |_| {}) else {
        unreachable!("it is a segment");
    };
    host.post(&mut nic, queue, Work::Segment(work));
    let mut memory = Changing {
        host,
        payload: work.payload..work.payload + u64::from(work.payload_bytes),
        reads: 0,
    };
    while nic.has_work(queue) {
        nic.step(queue, &mut memory, &mut |_| {}).unwrap();
    }
    assert_eq!(memory.reads, 1);
}

proptest! {
    /// Any bytes as a descriptor: one completion, no panic, and no packet longer than IP permits.
    #[test]
    fn garbage_has_a_completion(
        garbage in proptest::collection::vec(any::<[u8; 12]>(), 1..12),
        kind in 0_u8..7,
    ) {
        let (mut host, mut nic, queue) = device();
        for bytes in garbage {
            let mut descriptor = [0; DESCRIPTOR_BYTES];
            descriptor[0] = kind;
            // Addresses and lengths in the host's range, most of the time.
            descriptor[1..4].copy_from_slice(&bytes[..3]);
            descriptor[4..6].copy_from_slice(&bytes[3..5]);
            descriptor[11] = bytes[5] % 4;
            descriptor[13..16].copy_from_slice(&[0, bytes[6], bytes[7]]);
            descriptor[22..24].copy_from_slice(&bytes[8..10]);
            descriptor[30..32].copy_from_slice(&bytes[10..12]);
            host.post_bytes(&mut nic, queue, &descriptor);
        }
        let posted = nic.counters().descriptors;
        let run = host.run(&mut nic, queue);
        prop_assert_eq!(nic.counters().descriptors - posted, run.completions.len() as u64);
        prop_assert!(run.packets.iter().all(|packet| packet.len() <= 65_535));
    }
}

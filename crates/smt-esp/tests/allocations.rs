// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet that is sealed, opened and coalesced allocates nothing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod packets;

use std::alloc::System;

use packets::{NOW, V4, plain_database, tcp};
use smt_esp::offload::{Checksum, Offload, SegmentKind, Segmentation};
use smt_esp::{InboundPath, Mode, OutboundPath, PacketBuffer, Suite};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_packet_that_passes_both_ways_allocates_nothing() {
    for suite in Suite::ALL {
        let mut database = plain_database(suite, Mode::Transport);
        let (mut outbound, mut inbound) = (OutboundPath::new(1500, true), InboundPath::new(4));
        let packet = tcp(V4, 1, 0x10, &[7; 40_000]);
        let offload = Offload {
            segmentation: Some(Segmentation {
                kind: SegmentKind::TcpV4,
                size: 1400,
                header_len: 52,
                ecn: false,
            }),
            checksum: Checksum::Partial { start: 20, offset: 16 },
        };
        let mut wire = vec![0; 64 * 1500];
        let mut lengths = [0; 64];
        let region = Region::new(ALLOCATOR);
        let mut at = 0;
        let count = outbound
            .send(&mut database, (&packet, &offload), NOW, &mut |packet| {
                wire[at * 1500..][..packet.len()].copy_from_slice(packet);
                lengths[at] = packet.len();
                at += 1;
            })
            .unwrap();
        let mut delivered = 0;
        let mut deliver = |packet: &[u8], _| delivered += packet.len();
        for (memory, length) in wire.chunks_mut(1500).zip(lengths).take(count) {
            let mut buffer = PacketBuffer::new(memory, 0..length).unwrap();
            inbound.receive(&mut database, &mut buffer, NOW, &mut deliver).unwrap();
        }
        inbound.flush(&mut deliver);
        let change = region.change();
        assert_eq!(delivered, packet.len());
        assert_eq!(change.allocations + change.reallocations, 0, "{suite:?}");
    }
}

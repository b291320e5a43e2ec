// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of PSP that are sealed in software, where the device has no context for them.

use smt_nic::engine::{ContextBlock, Engine, PlannedPackets};
use smt_nic::headers::{Headers, Transport};
use smt_nic::psp::PspEngine;
use smt_nic::segmentation::{self, Cut};

use crate::associations::KeptAssociation;
use crate::segment::Segment;

/// The packets of a segment under an association, cut and sealed by IVs from `first_iv` on: as many
/// as were set aside for it. The device sends them as they are. `None`: it is no segment of native
/// SMT, or too long.
pub(crate) fn seal(
    segment: &Segment,
    association: &KeptAssociation,
    first_iv: u64,
    protocol: u8,
) -> Option<Vec<Segment>> {
    let (header, payload) = segment.bytes.split_at_checked(segment.header_bytes)?;
    let headers = Headers::parse(header, protocol)?;
    if headers.transport != Transport::Smt || headers.payload_at != header.len() {
        return None;
    }
    let block = ContextBlock::new(*association.block(first_iv));
    let mut context = PspEngine.create(&block).ok()?;
    let cut = Cut {
        headers,
        stride: segment.stride.into(),
        checksums: false,
        counts_smt_sequence: false,
    };
    let (packets, longest) = cut.packets(payload.len());
    let planned = PlannedPackets { header, packets, longest };
    PspEngine.permits(&context, &headers, planned).ok()?;
    let mut sealed = Some(Vec::new());
    let whole = segmentation::Segment { header, payload };
    segmentation::cut(whole, &cut, &mut Vec::new(), &mut |packet| {
        let mut bytes = packet.to_vec();
        let done = PspEngine.transform(&mut context, &headers, &mut bytes);
        match (done, &mut sealed) {
            (Ok(_), Some(packets)) => packets.push(Segment {
                bytes,
                header_bytes: headers.transport_at + UDP_BYTES,
                stride: 0,
                records: Vec::new(),
                flow: segment.flow,
                association: None,
            }),
            _ => sealed = None,
        }
    });
    sealed
}

/// Bytes of the header that is before PSP.
const UDP_BYTES: usize = 8;

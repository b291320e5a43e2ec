// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A host with a device of the PSP engine, and native packets of SMT.

use smt_nic::completion::Status;
use smt_nic::descriptor::ContextId;
use smt_nic::psp::{self, Association, MasterKey, PspEngine, PspVersion};

pub(super) use crate::ring_host::Arrival;
use crate::ring_host::RingHost;
use crate::support::SMT;

/// The host and its device.
pub(super) type PspHost = RingHost<PspEngine>;

/// The name of the context of most tests.
pub(super) const CONTEXT: ContextId = ContextId(1);

impl PspHost {
    /// A device that sends, with room for so many contexts.
    pub(super) fn sender(contexts: usize) -> Self {
        let mut host = Self::with_engine(PspEngine, contexts, 0);
        host.checksums = false;
        host
    }

    /// A device with a key and four receive queues.
    pub(super) fn receiver() -> Self {
        let mut host = Self::with_engine(PspEngine, 4, 4);
        host.nic.rotate_psp_key(MasterKey::new([7; 32]));
        host
    }

    pub(super) fn allocate(&mut self) -> Association {
        self.nic.allocate_psp(PspVersion::AesGcm128).unwrap()
    }

    /// Makes a context of an association whose next packet has this IV.
    pub(super) fn add(&mut self, context: ContextId, of: &Association, iv: u64) -> Status {
        self.create(context, &block(of, iv))
    }
}

/// A device that sends under an association that the other one has allocated.
pub(super) fn pair() -> (PspHost, PspHost, Association) {
    let (mut near, mut far) = (PspHost::sender(16), PspHost::receiver());
    let association = far.allocate();
    assert_eq!(near.add(CONTEXT, &association, 1), Status::Done);
    (near, far, association)
}

/// The context block of an association.
pub(super) fn block(of: &Association, iv: u64) -> [u8; 64] {
    let mut block = [0; 64];
    block[..2].copy_from_slice(&[psp::ENGINE, of.version.number()]);
    block[4..36].copy_from_slice(of.key.bytes());
    block[36..40].copy_from_slice(&of.spi.to_be_bytes());
    block[40..48].copy_from_slice(&iv.to_be_bytes());
    block
}

/// Headers of IP, native ones, and a DATA header of a message with this length. A stride that is
/// not 0 marks a segment.
pub(super) fn data(is_v4: bool, length: u32, stride: u16) -> Vec<u8> {
    let mut header = ip(is_v4);
    header.extend([0x30, 0x39, 0x43, 0xE3, 0, 0, 0, 0]);
    let mut of_data = [0; 36];
    (of_data[0], of_data[1], of_data[4]) = (0x81, 0x01, 0xB0);
    if stride > 0 {
        of_data[5] = 0x08;
        of_data[10..12].copy_from_slice(&stride.to_be_bytes());
    }
    of_data[20..28].copy_from_slice(&6_u64.to_be_bytes());
    of_data[28..32].copy_from_slice(&length.to_be_bytes());
    header.extend(of_data);
    header
}

/// Headers of IP, native ones, and those of a control packet.
pub(super) fn control(is_v4: bool) -> Vec<u8> {
    let mut header = ip(is_v4);
    header.extend([0x30, 0x39, 0x43, 0xE3, 0, 0, 0, 0]);
    let mut of_control = [9; 28];
    (of_control[0], of_control[1], of_control[4]) = (0x81, 0x02, 0x90);
    header.extend(of_control);
    header
}

fn ip(is_v4: bool) -> Vec<u8> {
    let mut header = vec![0; if is_v4 { 20 } else { 40 }];
    match is_v4 {
        true => {
            (header[0], header[5], header[8], header[9]) = (0x45, 1, 64, SMT);
            header[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        }
        false => {
            (header[0], header[6], header[7]) = (0x60, SMT, 64);
            (header[8], header[23], header[24], header[39]) = (0x20, 1, 0x20, 2);
        }
    }
    header
}

/// Bytes of IP's header.
pub(super) fn ip_bytes(is_v4: bool) -> usize {
    if is_v4 { 20 } else { 40 }
}

/// A payload whose bytes tell their places.
pub(super) fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// The bytes of a message, by the offsets of the arrivals.
pub(super) fn message(arrived: &[Arrival], is_v4: bool) -> Vec<u8> {
    let at = ip_bytes(is_v4) + 8;
    let mut parts: Vec<(u32, &[u8])> = arrived
        .iter()
        .map(|of| {
            let header = &of.packet[at..at + 36];
            assert_eq!((header[5], &header[10..12]), (0, &[0, 0][..]), "no mark is left");
            let offset = u32::from_be_bytes(header[32..36].try_into().unwrap());
            (offset, &of.packet[at + 36..])
        })
        .collect();
    parts.sort_unstable();
    let mut whole = Vec::new();
    for (offset, part) in parts {
        assert_eq!(offset as usize, whole.len(), "a part is where the others end");
        whole.extend_from_slice(part);
    }
    whole
}

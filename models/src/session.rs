// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The agreement of both ends of a session, and how they seal control packets.

use smt_record::{IdLayout, IndexBits, OpenKeys, SealKeys};
use smt_wire::{Geometry, TAG_LEN};

use crate::packet::Body;

/// Ids in the window: the fewest that are permitted.
pub(crate) const WINDOW: u32 = 64;

/// The counters from 1 to below this were seen before the exploration begins. Counter 0 was not:
/// it holds the floor, and one more id alone is below the limit.
pub(crate) const FIRST_FREE: u64 = 63;

/// One stripe.
pub(crate) const LAYOUT: IdLayout = IdLayout { id_bits: 56, stripes_log2: 0 };

pub(crate) fn geometry() -> Geometry {
    Geometry::new(64, 64).expect("records of 64 bytes are permitted")
}

pub(crate) fn index_bits() -> IndexBits {
    IndexBits::new(8).expect("8 bits are permitted")
}

/// Seals a control packet under the current epoch.
pub(crate) fn seal_control(keys: &mut SealKeys, number: u64, body: Body) -> Vec<u8> {
    keys.count_control().expect("a key seals millions");
    let mut sealed = body.bytes();
    let key = keys.control().expect("the model's ciphers are there");
    let tag = key.seal(number, b"", &mut sealed);
    sealed.extend_from_slice(&tag.expect("the model's ciphers can be tried"));
    sealed
}

/// Opens a control packet. Returns the epoch that opened it.
pub(crate) fn open_control(
    keys: &mut OpenKeys,
    epoch: u32,
    number: u64,
    sealed: &[u8],
) -> Option<u32> {
    let byte = epoch.to_le_bytes()[0];
    let (epoch, key) = keys.control(byte).ok()?;
    let mut text = sealed.to_vec();
    key.open_in_place(number, b"", &mut text).ok()?;
    (text.len() > TAG_LEN).then_some(epoch)
}

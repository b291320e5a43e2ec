// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The place of a packet in its segment, which its own offset follows from (SPEC §15.2).
//!
//! Over IPv4 the place is in the header of IP, which no ICV of PSP covers. A packet that is sealed
//! for itself therefore gets its own offset first, as if it had left alone.

use crate::big_endian::u16_at;
use crate::headers::{Headers, IpVersion};
use crate::receive::coalescing::{DataFields, write_alone};

/// Whether each packet of a segment with these headers has an own offset.
pub(crate) fn has_places(header: &[u8], headers: &Headers, packets: u64) -> bool {
    let Some(data) = marked(header, headers) else {
        return true;
    };
    let last = match headers.ip {
        // The device counts from the first packet's identification, and must not come round.
        IpVersion::V4 => match u16_at(header, 4) {
            0 => return false,
            first => u64::from(first) + packets - 1,
        },
        IpVersion::V6 if packets > 2 || (packets == 2 && !data.is_pushed) => return false,
        IpVersion::V6 => 1 + u64::from(data.is_pushed),
    };
    let distance = (last - 1) * u64::from(data.stride);
    let end = u64::from(data.offset) + distance;
    last <= u64::from(u16::MAX) && u32::try_from(end).is_ok()
}

/// Gives a packet of a segment its own offset, and takes the marks of the segment off. `None`: it
/// has no place in any. Other packets stay as they are.
pub(crate) fn take_alone(packet: &mut [u8], headers: &Headers) -> Option<()> {
    if let Some(data) = marked(packet, headers) {
        let offset = data.own_offset(packet, headers)?;
        write_alone(packet, headers, offset);
    }
    Some(())
}

/// Whether a packet claims to be of a segment.
pub(crate) fn is_marked(packet: &[u8], headers: &Headers) -> bool {
    marked(packet, headers).is_some()
}

fn marked(packet: &[u8], headers: &Headers) -> Option<DataFields> {
    DataFields::read(packet, headers).filter(|data| data.stride != 0)
}

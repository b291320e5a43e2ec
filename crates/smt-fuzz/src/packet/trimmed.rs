// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The same bytes as a packet that a switch has trimmed (SPEC §9.10): a DATA header, and nothing
//! behind it counts.
//!
//! Taken is exactly what DATA packets begin with: a header that is taken parses before any payload,
//! and the header of a packet that parses is taken wherever behind it the packet was cut.

use smt_wire::{Data, DataHeader, Packet, ParseError, parse};

use super::is_one_line;
use super::model::is_trimmed;

/// Checks what is left of some packet.
pub(super) fn check(version: u8, left: &[u8]) {
    let taken = DataHeader::of_trimmed(version, left);
    assert_eq!(
        taken.is_ok(),
        is_trimmed(version, left),
        "what the specification permits is not what is taken: {taken:?}"
    );
    match taken {
        Ok(header) => check_header(version, &header, left),
        Err(error) => {
            assert!(is_one_line(&error.to_string()));
            let is_short = left.len() < DataHeader::LEN;
            assert_eq!(error == ParseError::Truncated, is_short);
        }
    }
}

/// Checks the packet that these bytes are, wherever it is cut.
pub(super) fn check_cuts(version: u8, data: &Data<'_>, packet: &[u8]) {
    for end in [DataHeader::LEN, packet.len() - 1, packet.len()] {
        let trimmed = DataHeader::of_trimmed(version, &packet[..end]);
        assert_eq!(trimmed, Ok(data.header), "another header with {end} bytes");
    }
    let trimmed = DataHeader::of_trimmed(version, &packet[..DataHeader::LEN - 1]);
    assert_eq!(trimmed, Err(ParseError::Truncated));
}

fn check_header(version: u8, header: &DataHeader, left: &[u8]) {
    let mut whole = left[..DataHeader::LEN].to_vec();
    let alone = DataHeader::of_trimmed(version, &whole);
    assert_eq!(alone, Ok(*header), "what stands behind it was looked at");
    // The packet it was: its length is gone with its payload.
    whole[LENGTH..LENGTH + 2].fill(0);
    whole.push(0x42);
    match parse(version, &whole) {
        Ok((Packet::Data(data), [])) => assert_eq!(data.header, *header),
        other => panic!("no DATA begins so: {other:?}"),
    }
}

/// The length field (SPEC §3.1).
const LENGTH: usize = 6;

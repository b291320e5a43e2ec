// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Early data (SPEC §6.8): requests that travel in flight 1, written as members of a bundle.

use crate::bundle::Members;
use crate::inner_header::Kind;

/// Requests in the early data of a flight (SPEC [6.8-9]).
pub const EARLY_CALLS_MAX: usize = 16;

/// The requests of early data; `None` if it must not be taken, all of it or none (SPEC [6.8-3],
/// [6.8-9]): it is not well formed, has something else than requests, or has more than
/// [`EARLY_CALLS_MAX`].
#[must_use]
pub fn early_requests(bytes: &[u8]) -> Option<Members<'_>> {
    let members = Members::parse(bytes).ok()?;
    // One more is looked at than there may be: their number is the peer's choice.
    let requests = members
        .take(EARLY_CALLS_MAX + 1)
        .map_while(|(header, place)| (header.kind == Kind::Request).then_some(place.end));
    let (count, end) = requests.fold((0, 0), |(count, _), end| (count + 1, end));
    (count <= EARLY_CALLS_MAX && end == bytes.len()).then_some(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemberHeader, MessageId, PartMarks};
    use std::vec::Vec;

    fn member(kind: Kind, body: &[u8]) -> Vec<u8> {
        let header = MemberHeader {
            id: MessageId(0),
            kind,
            length: body.len() as u16,
            deadline_us: 0,
            reply_unscheduled: 0,
            failure: None,
            has_metadata: false,
            parts: PartMarks::default(),
        };
        let mut bytes = [0; MemberHeader::LEN];
        header.emit(&mut bytes);
        [&bytes[..], body].concat()
    }

    // SMT [6.8-9]
    #[test]
    fn early_data_is_1_to_16_requests_and_nothing_else() {
        let request = member(Kind::Request, b"hi");
        assert_eq!(early_requests(&request.repeat(16)).map(Iterator::count), Some(16));
        assert_eq!(early_requests(&request).map(Iterator::count), Some(1));
        let other = member(Kind::OneWay, b"hi");
        for bytes in [
            Vec::new(),
            request.repeat(17),
            request.repeat(3_000),
            other.clone(),
            [&request[..], &other, &request].concat(),
            [&request[..], &request[..request.len() - 1]].concat(),
            [&request[..], &[0]].concat(),
        ] {
            assert!(early_requests(&bytes).is_none(), "{}", bytes.len());
        }
    }
}

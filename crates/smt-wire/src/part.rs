// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parts of a call: messages of kind PART, each with the id of the request that it belongs to (SPEC
//! §5.9).

use crate::error::ParseError;
use crate::field::u64_at;
use crate::ids::MessageId;

/// The marks of parts in a header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PartMarks {
    /// REQUEST: whether the reply may come in parts.
    pub reply_in_parts: bool,
    /// REQUEST, PART: whether further parts of the sender follow.
    pub more: bool,
    /// PART: its number, from 0. REPLY: how many parts belong to it. Else 0.
    pub number: u32,
}

/// Bytes of the request's id, with which the application bytes of a part begin.
pub const PART_PREFIX_LEN: usize = 8;

/// The id of the request that a part belongs to, by the part's application bytes.
///
/// # Errors
/// `Malformed` if the bytes are too few: the peer broke a rule, since they are authenticated.
pub fn request_of_part(bytes: &[u8]) -> Result<MessageId, ParseError> {
    let prefix = bytes.first_chunk::<PART_PREFIX_LEN>();
    let prefix = prefix.ok_or(ParseError::Malformed("part without the id of its request"))?;
    Ok(MessageId(u64_at(prefix, 0..PART_PREFIX_LEN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // SMT [5.9-4]
    #[test]
    fn the_application_bytes_of_a_part_begin_with_the_id_of_its_request() {
        let id = MessageId(0x0102_0304_0506_0708);
        assert_eq!(request_of_part(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), Ok(id));
        assert_eq!(request_of_part(&[1, 2, 3, 4, 5, 6, 7, 8]), Ok(id));
        assert!(request_of_part(&[1, 2, 3, 4, 5, 6, 7]).is_err());
    }
}

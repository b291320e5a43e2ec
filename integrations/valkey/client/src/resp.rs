// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a reply ends in the bytes of a connection (RESP 2 and 3), without reading what it says.

/// The bytes are no reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoReply;

/// Bytes of the reply that `bytes` begin with; `None` if it is not complete.
///
/// # Errors
/// They begin with something else.
pub fn reply_length(bytes: &[u8]) -> Result<Option<usize>, NoReply> {
    let mut position = 0;
    // Elements that are still to come, of all aggregates that are open.
    let mut left: usize = 1;
    while left > 0 {
        let Some(head) = head_of(&bytes[position..])? else {
            return Ok(None);
        };
        position = position.saturating_add(head.length);
        if position > bytes.len() {
            return Ok(None);
        }
        left = (left - 1).saturating_add(head.elements);
    }
    Ok(Some(position))
}

/// An element without those that it has inside.
struct Head {
    length: usize,
    elements: usize,
}

fn head_of(bytes: &[u8]) -> Result<Option<Head>, NoReply> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let (line, length) = (&bytes[1..end.max(1)], end + 2);
    let count = || {
        let text = std::str::from_utf8(line).map_err(|_| NoReply)?;
        let number: i64 = text.parse().map_err(|_| NoReply)?;
        // A length of -1 is nothing.
        Ok(usize::try_from(number).ok())
    };
    let elements = match bytes[0] {
        b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => 0,
        b'$' | b'=' | b'!' => {
            let body = count()?.map_or(0, |bytes| bytes.saturating_add(2));
            return Ok(Some(Head { length: length.saturating_add(body), elements: 0 }));
        }
        b'*' | b'~' | b'>' => count()?.unwrap_or(0),
        b'%' => count()?.unwrap_or(0).saturating_mul(2),
        // Attributes stand before the element that they belong to.
        b'|' => count()?.unwrap_or(0).saturating_mul(2).saturating_add(1),
        _ => return Err(NoReply),
    };
    Ok(Some(Head { length, elements }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_where_its_last_element_does() {
        for reply in [
            "+OK\r\n",
            "$-1\r\n",
            "$5\r\na\r\nbc\r\n",
            "*2\r\n*1\r\n:7\r\n$0\r\n\r\n",
            "*-1\r\n",
            "%1\r\n+k\r\n~2\r\n#t\r\n,1.5\r\n",
            "|1\r\n+k\r\n+v\r\n:1\r\n",
        ] {
            let (bytes, more) = (reply.as_bytes(), format!("{reply}+next\r\n"));
            assert_eq!(reply_length(more.as_bytes()), Ok(Some(bytes.len())), "{reply}");
            for end in 0..bytes.len() {
                assert_eq!(reply_length(&bytes[..end]), Ok(None), "{reply} to {end}");
            }
        }
        assert_eq!(reply_length(b"hello\r\n"), Err(NoReply));
    }

    #[test]
    fn counts_that_no_reply_can_have_are_waited_for() {
        let most = i64::MAX;
        for kind in ["*", "%", "|", "$"] {
            let nested = format!("%{most}\r\n{kind}{most}\r\n");
            assert_eq!(reply_length(nested.as_bytes()), Ok(None), "{kind}");
        }
    }
}

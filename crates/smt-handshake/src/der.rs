// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of DER, as far as certificates need them.

/// Elements of DER that follow each other. Ends at the first that is not whole.
#[derive(Clone, Copy)]
pub(crate) struct Elements<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Elements<'a> {
    /// Tag and content.
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7F => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x0F))?;
                let length = bytes.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
                (usize::try_from(length).ok()?, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }
}

/// The content of the first element with this tag.
pub(crate) fn first(within: &[u8], tag: u8) -> Option<&[u8]> {
    let mut elements = Elements(within);
    elements.find(|(of, _)| *of == tag).map(|(_, content)| content)
}

/// An object identifier with dots, from its DER (X.690 §8.19). One that is no identifier is shown
/// as far as it is one.
pub(crate) fn object_id_text(content: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in content {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    // The first two share a number.
    if let Some(first) = numbers.first().copied() {
        let arc = (first / 40).min(2);
        drop(numbers.splice(..1, [arc, first - 40 * arc]));
    }
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(".")
}

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_identifiers_have_their_numbers_with_dots() {
        for (content, text) in [
            (&[0x55, 0x1D, 0x20][..], "2.5.29.32"),
            (&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1], "1.2.840.113549.1.1.1"),
            (&[0x88, 0x37, 3], "2.999.3"),
            (&[], ""),
            (&[0xFF; 40], ""),
        ] {
            assert_eq!(object_id_text(content), text);
        }
    }

    #[test]
    fn elements_end_where_one_is_not_whole() {
        let whole = [0x04, 1, 7, 0x0C, 0x81, 2, b'a', b'b', 0x30, 0];
        let all: Vec<_> = Elements(&whole).collect();
        assert_eq!(all, [(4, &[7][..]), (0x0C, b"ab"), (0x30, b"")]);
        for length in 0..whole.len() {
            let cut = Elements(&whole[..length]);
            assert!(cut.count() < 3);
        }
        let endless = [0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 1];
        assert_eq!(Elements(&endless).count(), 0);
        let indefinite = [0x30, 0x80, 1, 0, 0];
        assert_eq!(Elements(&indefinite).count(), 0);
    }
}

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

pub(crate) const SEQUENCE: u8 = 0x30;

#[cfg(test)]
mod tests {
    use super::*;

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

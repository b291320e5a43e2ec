// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Byte strings with their length before them, as tickets and flights hold them.

/// Reads values from the front of a byte string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

/// The bytes end in the middle of a value, or go on behind the last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct BadLength;

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], BadLength> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(BadLength)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadLength> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| BadLength)
    }

    pub(super) fn u8(&mut self) -> Result<u8, BadLength> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, BadLength> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, BadLength> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with a u8 before it.
    pub(super) fn short(&mut self) -> Result<&'a [u8], BadLength> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// A string with a u16 before it.
    pub(super) fn long(&mut self) -> Result<&'a [u8], BadLength> {
        let length = self.u16()?;
        self.take(length.into())
    }

    /// All that is left.
    pub(super) const fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// # Errors
    /// Bytes are left.
    pub(super) const fn end(self) -> Result<(), BadLength> {
        match self.is_empty() {
            true => Ok(()),
            false => Err(BadLength),
        }
    }
}

/// Appends a string with a u8 before it; `None` if it is longer than 255 bytes.
pub(super) fn put_short(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    out.push(u8::try_from(bytes.len()).ok()?);
    out.extend_from_slice(bytes);
    Some(())
}

/// Appends a string with a u16 before it; `None` if it is longer than 65,535 bytes.
pub(super) fn put_long(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    let length = u16::try_from(bytes.len()).ok()?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_and_a_cut_one_does_not() {
        let mut bytes = Vec::new();
        put_short(&mut bytes, b"short").unwrap();
        put_long(&mut bytes, &[7; 300]).unwrap();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.short(), Ok(&b"short"[..]));
        assert_eq!(reader.long(), Ok(&[7; 300][..]));
        assert_eq!(reader.end(), Ok(()));
        let mut cut = Reader::new(&bytes[..bytes.len() - 1]);
        cut.short().unwrap();
        assert_eq!(cut.long(), Err(BadLength));
        assert_eq!(Reader::new(&bytes).end(), Err(BadLength));
    }

    #[test]
    fn a_string_longer_than_its_length_can_say_is_not_written() {
        assert_eq!(put_short(&mut Vec::new(), &[0; 256]), None);
        assert_eq!(put_long(&mut Vec::new(), &[0; 65_536]), None);
    }
}

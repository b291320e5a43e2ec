// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fields of commands and responses. Numbers are big-endian.

/// The bytes of a command's handles or parameters, as they are put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(pub(super) Vec<u8>);

impl Fields {
    pub(super) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(super) fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A TPM2B: the length in two bytes, and the bytes. They must be fewer than 64 Ki, which the
    /// caller sees to: a longer length would be cut. Ours are constants, answers of the TPM, fields
    /// of a file with such lengths, and credentials, whose parts [`super::Credential`] bounds.
    pub(super) fn sized(self, bytes: &[u8]) -> Self {
        self.u16(bytes.len() as u16).bytes(bytes)
    }
}

/// Takes `N` bytes off the front.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

pub(super) fn u16(rest: &mut &[u8]) -> Option<u16> {
    take(rest).map(u16::from_be_bytes)
}

pub(super) fn u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_be_bytes)
}

/// Takes a TPM2B off the front.
pub(super) fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::from(u16(rest)?);
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The application bytes of a message to be sent: a chain of buffers that are not copied together.
//!
//! Most bodies are one buffer, and cost no more than that. Records are sealed straight from a
//! buffer where they lie in one.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

/// The application bytes of a message: one buffer, or several one behind the other.
#[derive(Clone, Debug)]
pub struct Body(Buffers);

#[derive(Clone, Debug)]
enum Buffers {
    One(Bytes),
    /// Two or more, none of them empty.
    Chain(Box<[Part]>),
}

/// A buffer, and where in the body its end is.
#[derive(Clone, Debug)]
struct Part {
    end: usize,
    bytes: Bytes,
}

impl Body {
    /// A body without a byte.
    #[must_use]
    pub const fn new() -> Self {
        Self(Buffers::One(Bytes::new()))
    }

    /// A body of bytes that live as long as the program: they are not copied.
    #[must_use]
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self(Buffers::One(Bytes::from_static(bytes)))
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Buffers::One(bytes) => bytes.len(),
            Buffers::Chain(parts) => parts.last().map_or(0, |part| part.end),
        }
    }

    /// Whether the body has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffers, none of them empty but that of an empty body.
    pub fn buffers(&self) -> impl Iterator<Item = &Bytes> {
        let (one, chain) = match &self.0 {
            Buffers::One(bytes) => (Some(bytes), &[][..]),
            Buffers::Chain(parts) => (None, &parts[..]),
        };
        one.into_iter().chain(chain.iter().map(|part| &part.bytes))
    }

    /// Copies all bytes behind those of `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Buffers::One(bytes) => out.extend_from_slice(bytes),
            Buffers::Chain(parts) => {
                for part in parts {
                    out.extend_from_slice(&part.bytes);
                }
            }
        }
    }

    /// The body with a buffer before it.
    #[must_use]
    pub fn behind(self, front: Bytes) -> Self {
        let others = self.buffers().cloned();
        core::iter::once(front).chain(others).collect()
    }

    /// Copies each buffer that others may have, so that from now on nobody can change a byte. A
    /// buffer that was given away as a whole stays where it is.
    pub(crate) fn make_own(&mut self) {
        let (one, chain) = match &mut self.0 {
            Buffers::One(bytes) => (Some(bytes), &mut [][..]),
            Buffers::Chain(parts) => (None, &mut parts[..]),
        };
        let chain = chain.iter_mut().map(|part| &mut part.bytes);
        for bytes in one.into_iter().chain(chain) {
            if !bytes.is_unique() {
                *bytes = Bytes::copy_from_slice(bytes);
            }
        }
    }

    /// The bytes of a range, if they lie in one buffer.
    ///
    /// # Panics
    /// If the range goes past the end.
    pub(crate) fn contiguous(&self, from: usize, length: usize) -> Option<&[u8]> {
        let (buffer, from) = self.buffer_at(from);
        buffer.get(from..from + length)
    }

    /// Copies bytes from `from` on, as many as `out` has.
    ///
    /// # Panics
    /// If they go past the end.
    pub(crate) fn copy_to(&self, mut from: usize, mut out: &mut [u8]) {
        while !out.is_empty() {
            let (buffer, start) = self.buffer_at(from);
            let count = out.len().min(buffer.len() - start);
            assert!(count > 0, "a range within the body");
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&buffer[start..start + count]);
            (from, out) = (from + count, later);
        }
    }

    /// The buffer with the byte at `from`, and where in the buffer the byte is. The last buffer
    /// takes what is behind all.
    fn buffer_at(&self, from: usize) -> (&Bytes, usize) {
        match &self.0 {
            Buffers::One(bytes) => (bytes, from),
            Buffers::Chain(parts) => {
                let at = parts.partition_point(|part| part.end <= from);
                let part = &parts[at.min(parts.len() - 1)];
                (&part.bytes, from - (part.end - part.bytes.len()))
            }
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::new()
    }
}

/// Buffers one behind the other. Empty ones are left out.
impl FromIterator<Bytes> for Body {
    fn from_iter<I: IntoIterator<Item = Bytes>>(buffers: I) -> Self {
        let mut buffers = buffers.into_iter().filter(|buffer| !buffer.is_empty());
        let first = buffers.next().unwrap_or_default();
        let Some(second) = buffers.next() else {
            return Self(Buffers::One(first));
        };
        let mut end = 0;
        let all = [first, second].into_iter().chain(buffers);
        let parts = all.map(|bytes| {
            end += bytes.len();
            Part { end, bytes }
        });
        Self(Buffers::Chain(parts.collect()))
    }
}

impl From<Bytes> for Body {
    fn from(first: Bytes) -> Self {
        Self(Buffers::One(first))
    }
}

impl From<Vec<Bytes>> for Body {
    fn from(buffers: Vec<Bytes>) -> Self {
        buffers.into_iter().collect()
    }
}

impl<const N: usize> From<[Bytes; N]> for Body {
    fn from(buffers: [Bytes; N]) -> Self {
        buffers.into_iter().collect()
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

/// Copied; [`Body::from_static`] copies nothing.
impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        Bytes::copy_from_slice(bytes).into()
    }
}

/// Copied; [`Body::from_static`] copies nothing.
impl<const N: usize> From<&[u8; N]> for Body {
    fn from(bytes: &[u8; N]) -> Self {
        Bytes::copy_from_slice(bytes).into()
    }
}

/// Shared: nothing is copied.
impl From<&Bytes> for Body {
    fn from(bytes: &Bytes) -> Self {
        bytes.clone().into()
    }
}

/// Copied; a `Vec` that is given away is not.
impl From<&Vec<u8>> for Body {
    fn from(bytes: &Vec<u8>) -> Self {
        Bytes::copy_from_slice(bytes).into()
    }
}

impl<const N: usize> From<[u8; N]> for Body {
    fn from(bytes: [u8; N]) -> Self {
        Bytes::copy_from_slice(&bytes).into()
    }
}

/// Copied; [`Body::from_static`] copies nothing.
impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

/// Copied; a `String` that is given away is not.
impl From<&String> for Body {
    fn from(text: &String) -> Self {
        text.as_bytes().into()
    }
}

// Most bodies are one buffer, and cost no more.
const _: () = assert!(size_of::<Body>() == size_of::<Bytes>());

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn chain(parts: &[&'static str]) -> Body {
        parts.iter().map(|part| Bytes::from_static(part.as_bytes())).collect()
    }

    #[test]
    fn every_range_of_a_chain_is_that_of_the_bytes_put_together() {
        let chains: [&[&'static str]; 5] =
            [&[], &["abc"], &["", "ab", "", "cde", "f"], &["a", "b", "c", "d"], &["", ""]];
        for parts in chains {
            let (body, whole) = (chain(parts), parts.concat());
            assert_eq!(body.len(), whole.len());
            assert_eq!(body.buffers().flatten().copied().collect::<Vec<u8>>(), whole.as_bytes());
            for from in 0..=whole.len() {
                for end in from..=whole.len() {
                    let mut out = vec![0; end - from];
                    body.copy_to(from, &mut out);
                    assert_eq!(out, &whole.as_bytes()[from..end], "{parts:?} {from}..{end}");
                    if let Some(bytes) = body.contiguous(from, end - from) {
                        assert_eq!(bytes, out);
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_borrowed_are_copied_and_static_ones_need_not_be() {
        let (text, bytes) = ("text".to_owned(), vec![1, 2, 3]);
        let of_text = [Body::from(&text), Body::from(text.as_str())];
        let of_bytes = [Body::from(&bytes), Body::from(&bytes[..]), Body::from(&[1, 2, 3])];
        drop((text, bytes));
        assert!(of_text.iter().all(|body| body.contiguous(0, 4) == Some(&b"text"[..])));
        assert!(of_bytes.iter().all(|body| body.contiguous(0, 3) == Some(&[1, 2, 3][..])));
        let shared = Bytes::from(vec![5; 3]);
        let body = Body::from(&shared);
        assert_eq!(body.contiguous(0, 3).map(<[u8]>::as_ptr), Some(shared.as_ptr()));
        static LONG_LIVED: [u8; 3] = [7; 3];
        let body = Body::from_static(&LONG_LIVED);
        assert_eq!(body.contiguous(0, 3).map(<[u8]>::as_ptr), Some(LONG_LIVED.as_ptr()));
    }

    #[test]
    fn a_range_is_contiguous_where_it_lies_in_one_buffer() {
        let body = chain(&["ab", "cde"]);
        let is_contiguous = |from, length| body.contiguous(from, length).is_some();
        assert!(is_contiguous(0, 2) && is_contiguous(2, 3) && is_contiguous(3, 2));
        assert!(!is_contiguous(1, 2) && !is_contiguous(0, 5));
    }

    #[test]
    fn a_buffer_that_others_may_have_is_copied_and_one_that_was_given_away_is_not() {
        let place = |body: &Body| body.buffers().next().unwrap().as_ptr();
        let mut given: Body = vec![1, 2, 3].into();
        let before = place(&given);
        given.make_own();
        assert_eq!(place(&given), before);
        let bytes = Bytes::from(vec![1, 2, 3]);
        let owned = Bytes::from_owner(vec![1, 2, 3]);
        for shared in [bytes.clone().into(), owned.into(), Body::from(b"abc")] {
            let mut own = shared.clone();
            drop(shared.clone());
            own.make_own();
            assert_ne!(place(&own), place(&shared));
            assert!(own.buffers().eq(shared.buffers()));
        }
        let mut chain: Body = vec![bytes.clone(), Bytes::from(vec![4])].into();
        chain.make_own();
        assert!(chain.buffers().all(Bytes::is_unique));
    }

    #[test]
    fn a_buffer_goes_before_a_body() {
        let body = chain(&["c", "de"]).behind(Bytes::from_static(b"ab"));
        let buffers: Vec<&Bytes> = body.buffers().collect();
        assert_eq!(buffers, ["ab", "c", "de"]);
        assert_eq!(Body::new().behind(Bytes::from_static(b"ab")).len(), 2);
    }
}

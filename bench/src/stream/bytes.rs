// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Any number of bytes that nobody can foretell without the seed, and what is known of them where
//! they come from and where they arrive: how many, and their SHA-256.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use aws_lc_rs::digest::{self, SHA256};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A count, and a SHA-256.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Seen {
    pub(super) bytes: u64,
    pub(super) digest: [u8; 32],
}

impl Seen {
    /// As the text of a reply.
    pub(super) fn text(&self) -> String {
        let digest = self.digest.iter().map(|byte| format!("{byte:02x}"));
        format!("{} {}", self.bytes, digest.collect::<String>())
    }
}

/// Sees bytes.
struct Digest {
    bytes: u64,
    context: digest::Context,
}

impl Digest {
    fn new() -> Self {
        Self { bytes: 0, context: digest::Context::new(&SHA256) }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.context.update(bytes);
    }

    fn seen(self) -> Seen {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.context.finish().as_ref());
        Seen { bytes: self.bytes, digest }
    }
}

/// Bytes made of a seed (SplitMix64).
pub(super) struct Source {
    left: u64,
    state: u64,
    digest: Digest,
}

impl Source {
    pub(super) fn new(bytes: u64, seed: u64) -> Self {
        Self { left: bytes, state: seed, digest: Digest::new() }
    }

    /// The bytes that have been read.
    pub(super) fn seen(self) -> Seen {
        self.digest.seen()
    }

    fn word(&mut self) -> [u8; 8] {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)).to_le_bytes()
    }
}

impl AsyncRead for Source {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.left.min(buffer.remaining() as u64);
        let bytes = buffer.initialize_unfilled_to(length as usize);
        for chunk in bytes.chunks_mut(8) {
            let word = self.word();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        self.digest.update(bytes);
        self.left -= length;
        buffer.advance(length as usize);
        Poll::Ready(Ok(()))
    }
}

/// Takes bytes, and keeps none.
pub(super) struct Drain(Digest);

impl Drain {
    pub(super) fn new() -> Self {
        Self(Digest::new())
    }

    /// The bytes that have been written.
    pub(super) fn seen(self) -> Seen {
        self.0.seen()
    }
}

impl AsyncWrite for Drain {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.update(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn seen(bytes: u64, seed: u64) -> (Seen, Seen) {
        let (mut source, mut drain) = (Source::new(bytes, seed), Drain::new());
        let copied = tokio::io::copy(&mut source, &mut drain).await.unwrap();
        assert_eq!(copied, bytes);
        (source.seen(), drain.seen())
    }

    #[tokio::test]
    async fn both_ends_see_the_same_and_another_seed_is_seen() {
        let (read, written) = seen(100_003, 1).await;
        assert_eq!(read, written);
        assert_eq!(read.bytes, 100_003);
        assert_ne!(seen(100_003, 2).await.0.digest, read.digest);
        assert_ne!(seen(100_002, 1).await.0.digest, read.digest);
    }
}

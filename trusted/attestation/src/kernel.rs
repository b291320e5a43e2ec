// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel: a device in one epoch, with its streams.

use crate::attestation::StreamId;
use crate::error::Misuse;
use crate::mac::GroupSecret;
use crate::stream::{Group, Stream};
use crate::vote::Start;

/// A device in one epoch (paper §4.1).
///
/// `STREAMS` is the most groups, `PEERS` the most other members of a group, and `RECENT` how many
/// of its last attestations the device can give again; all memory is inside. The kernel has no
/// `Clone`: two copies would give one counter twice.
pub struct Kernel<const STREAMS: usize, const PEERS: usize, const RECENT: usize> {
    own: Start,
    streams: [Option<Stream<PEERS, RECENT>>; STREAMS],
}

impl<const STREAMS: usize, const PEERS: usize, const RECENT: usize> Kernel<STREAMS, PEERS, RECENT> {
    /// Starts the device `own` in an epoch.
    ///
    /// The caller vouches that no kernel of this device was ever started in this epoch: the number
    /// comes from a counter that only grows. All the kernel's promises stand on it. The nonce is
    /// random.
    pub fn start(own: Start) -> Self {
        Self { own, streams: [const { None }; STREAMS] }
    }

    /// Opens the device's stream in `group`. It stays open, so that its counter never restarts in
    /// this epoch.
    ///
    /// # Errors
    /// [`Misuse::Group`], [`Misuse::Full`], [`Misuse::StreamExists`].
    pub fn open(&mut self, secret: &GroupSecret, group: &Group<'_>) -> Result<(), Misuse> {
        if self.stream(group.stream).is_some() {
            return Err(Misuse::StreamExists);
        }
        let own = self.own;
        let slot = self.streams.iter_mut().find(|slot| slot.is_none()).ok_or(Misuse::Full)?;
        *slot = Some(Stream::new(own, secret, group)?);
        Ok(())
    }

    /// An open stream, to attest and to take messages.
    pub fn stream_mut(&mut self, id: StreamId) -> Option<&mut Stream<PEERS, RECENT>> {
        self.streams.iter_mut().flatten().find(|stream| stream.id == id)
    }

    /// An open stream, to check messages.
    pub fn stream(&self, id: StreamId) -> Option<&Stream<PEERS, RECENT>> {
        self.streams.iter().flatten().find(|stream| stream.id == id)
    }
}

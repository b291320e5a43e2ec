// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Associations of a carrier that seals and opens whole packets itself (PSP, SPEC §15.3).

use core::fmt;

use zeroize::Zeroize;

use crate::keys::NoRoom;

/// The associations of a carrier that seals and opens whole packets.
///
/// The receiver of packets allocates an association, and tells its peer under the protection of
/// their session. The peer installs it, and seals under it.
pub trait Associations: Send + Sync {
    /// The versions of PSP that the carrier seals and opens by, the preferred one first: 0 for
    /// AES-128-GCM, 1 for AES-256-GCM.
    fn versions(&self) -> &[u8];

    /// Sets room aside for one association of a peer, until [`Self::release`]. A session does so
    /// before it agrees that its packets are sealed: without room nothing of it could ever leave.
    ///
    /// # Errors
    /// There is no room for another one.
    fn reserve(&self) -> Result<(), NoRoom>;

    /// Gives room back that was set aside, once nothing is installed in it any more.
    fn release(&self);

    /// A new association for receiving. A datagram that the carrier has opened under it arrives
    /// with its SPI ([`Arrival::spi`](crate::Arrival::spi)). No SPI is given twice under one key of
    /// the device.
    ///
    /// # Errors
    /// The carrier has no such version, or no association at present.
    fn allocate(&self, version: u8) -> Result<Association, NoRoom>;

    /// Takes an association that the peer has allocated, for sending, into room that was set aside.
    /// The carrier numbers the packets under it, and uses no number twice. The handle is new: a
    /// batch that waited may name an association that was removed, and must find no other in its
    /// place.
    ///
    /// # Errors
    /// [`NotInstalled`]: the carrier has no such version or no room, or has had the association
    /// before.
    fn install(&self, association: Association) -> Result<AssociationHandle, NotInstalled>;

    /// Takes an association for sending back; one that is not there is no error. A batch that
    /// waited and names it is as good as lost.
    fn remove(&self, association: AssociationHandle);

    /// How often the device has replaced one of its two keys. An association that was allocated
    /// when this was n ends when it becomes n + 2.
    fn rotations(&self) -> u64;
}

/// An association, as the receiver of its packets allocates it and tells its sender. Not `Clone`:
/// it has one sending context.
#[derive(Debug)]
pub struct Association {
    /// The version of PSP: 0 for AES-128-GCM, 1 for AES-256-GCM.
    pub version: u8,
    /// The SPI in its packets.
    pub spi: u32,
    /// The key.
    pub key: AssociationKey,
}

/// The key of an association: 32 bytes, or 16 with zeros behind. It is erased when it is dropped.
pub struct AssociationKey([u8; ASSOCIATION_KEY_BYTES]);

impl AssociationKey {
    /// The key of these bytes.
    #[must_use]
    pub fn new(bytes: [u8; ASSOCIATION_KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; ASSOCIATION_KEY_BYTES] {
        &self.0
    }
}

impl Drop for AssociationKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// No byte of the key.
impl fmt::Debug for AssociationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssociationKey").finish_non_exhaustive()
    }
}

/// The reason for which an association for sending was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotInstalled {
    /// The carrier has no such version, or no room at present.
    NoRoom,
    /// The carrier has had the association before, and its packets have used numbers under it. Its
    /// receiver's device was given a key that it had before.
    UsedBefore,
}

impl fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoom => "the carrier has no room for another association",
            Self::UsedBefore => "packets have left under the association before",
        })
    }
}

impl core::error::Error for NotInstalled {}

/// An association for sending that was installed ([`Associations::install`]).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AssociationHandle(pub u64);

/// Bytes of an association's key, zeros behind a shorter one among them.
pub const ASSOCIATION_KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::AssociationKey;
    use std::format;

    #[test]
    fn a_key_is_not_shown() {
        let shown = format!("{:?}", AssociationKey::new([7; 32]));
        assert!(!shown.contains('7'), "{shown}");
    }
}

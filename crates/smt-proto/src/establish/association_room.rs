// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Room for an association of the peer at a carrier that seals packets (SPEC §15.4).

use alloc::sync::Arc;

use smt_carrier::Associations;

use crate::establish::agreement::Agreement;

/// Room for one association of the peer, from before the sides agree until the session ends.
///
/// Were it only looked for once they have agreed, many handshakes at a time could agree on the last
/// room, and all but one of their sessions would never send anything.
pub(crate) struct AssociationRoom {
    device: Arc<dyn Associations>,
}

impl AssociationRoom {
    /// Sets room aside. `None`: there is none, or nothing to seal by.
    pub(crate) fn reserve(device: &Arc<dyn Associations>) -> Option<Self> {
        if device.versions().is_empty() {
            return None;
        }
        device.reserve().ok()?;
        let device = Arc::clone(device);
        Some(Self { device })
    }

    /// Takes the room that was set aside, if the sides have agreed on it; else gives it back.
    // A frame of its own: a kernel's stack has 16 KB.
    #[inline(never)]
    pub(crate) fn agreed(reserved: &mut Option<Self>, agreement: &Agreement) -> Option<Self> {
        let room = reserved.take();
        room.filter(|_| agreement.psp_version.is_some())
    }

    pub(crate) fn device(&self) -> &Arc<dyn Associations> {
        &self.device
    }
}

impl Drop for AssociationRoom {
    fn drop(&mut self) {
        self.device.release();
    }
}

/// The versions of PSP that room was set aside for, the preferred one first; none without room.
pub(crate) fn versions_of(room: Option<&AssociationRoom>) -> &[u8] {
    room.map_or(&[], |room| room.device.versions())
}

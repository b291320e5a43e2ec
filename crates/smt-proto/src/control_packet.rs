// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Control packets as the keys see them (SPEC §3.4): sealed into a buffer, opened from a packet.
//!
//! Handshakes confirm with them before there is a session, and sessions send them afterwards. Not
//! here: which numbers have been used, and what a packet means.

use smt_carrier::AssociationKey;
use smt_record::{NoKey, OpenFailed, OpenKeys, SealKeys, Unavailable};
use smt_wire::{
    ASSOCIATION_KEY_LEN, Body, Control, ControlHeader, ControlNumber, SessionIndex, TAG_LEN,
};
use zeroize::Zeroizing;

use crate::send::buffer::TransmitBuffer;

/// Where a control packet goes, and its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlRoute {
    pub(crate) version: u8,
    /// The peer's index.
    pub(crate) session: SessionIndex,
    pub(crate) number: ControlNumber,
}

/// Appends a sealed control packet. `secret` is encrypted in it: of CONFIRM this side's reset
/// token, of ASSOCIATION the key, of others nothing. The caller has counted it
/// ([`SealKeys::count_control`]). A packet that could not be sealed is not appended, as if the
/// network had lost it: its content is sent again later.
pub(crate) fn seal(
    keys: &mut SealKeys,
    route: ControlRoute,
    body: &Body<'_>,
    secret: &[u8],
    out: &mut TransmitBuffer,
) {
    let header =
        ControlHeader { epoch: keys.epoch() as u8, session: route.session, number: route.number };
    let start = out.len();
    let packet = out.grow_zeroed(ControlHeader::packet_len(body));
    let length = header.emit(route.version, body, packet);
    let (aad, sealed) = packet.split_at_mut(length);
    let (plaintext, tag) = sealed.split_at_mut(sealed.len() - TAG_LEN);
    for (place, byte) in plaintext.iter_mut().zip(secret) {
        *place = *byte;
    }
    let cipher = keys.control();
    match cipher.and_then(|cipher| cipher.seal(route.number.to_u64(), aad, plaintext)) {
        Ok(computed) => tag.copy_from_slice(&computed),
        Err(Unavailable) => out.truncate(start),
    }
}

/// A control packet that has opened.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The peer's reset token (SPEC §12.1), if it is CONFIRM.
    pub(crate) reset_token: Option<[u8; TAG_LEN]>,
    /// The key, if it is ASSOCIATION (SPEC §15.4).
    pub(crate) association_key: Option<AssociationKey>,
}

/// Opens a control packet. One that is forged counts towards the cipher's integrity limit.
pub(crate) fn open(keys: &mut OpenKeys, control: &Control<'_>) -> Result<Opened, OpenFailed> {
    let key = keys.control(control.header.epoch);
    let (epoch, aead) = key.map_err(|error| match error {
        NoKey::NoSuchEpoch => OpenFailed::Forged,
        NoKey::Unavailable(unavailable) => unavailable.into(),
    })?;
    let mut sealed = Zeroizing::new([0; SEALED_LEN_MAX]);
    let sealed = &mut sealed[..control.sealed.len()];
    sealed.copy_from_slice(control.sealed);
    let number = control.header.number.to_u64();
    if let Err(failure) = aead.open_in_place(number, control.aad, sealed) {
        if failure == OpenFailed::Forged {
            keys.failed();
        }
        return Err(failure);
    }
    keys.opened(epoch);
    let is_confirm = control.body == Body::Confirm;
    let association_key = match control.body {
        Body::Association(_) => sealed.first_chunk().copied().map(AssociationKey::new),
        _ => None,
    };
    Ok(Opened {
        reset_token: sealed[..TAG_LEN].try_into().ok().filter(|_| is_confirm),
        association_key,
    })
}

/// Bytes of the longest sealed part: that of ASSOCIATION.
const SEALED_LEN_MAX: usize = ASSOCIATION_KEY_LEN + TAG_LEN;

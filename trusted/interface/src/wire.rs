// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests and replies between members, each a kind in one byte and what follows.

use crate::identity::{PROOF_LEN, Proof};

const BIND: u8 = 1;
const FRAME: u8 = 2;

/// A request of a member.
pub(crate) enum Asked<'a> {
    /// Binds the session to the member's device.
    Bind(Proof),
    /// A frame of its node.
    Frame(&'a [u8]),
}

impl<'a> Asked<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&BIND, proof) => Proof::decode(proof).map(Self::Bind),
            (&FRAME, frame) => Some(Self::Frame(frame)),
            _ => None,
        }
    }
}

pub(crate) fn bind(proof: &Proof) -> Vec<u8> {
    [&[BIND][..], &proof.0].concat()
}

pub(crate) fn frame(bytes: &[u8]) -> Vec<u8> {
    [&[FRAME][..], bytes].concat()
}

/// A reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Told {
    /// The device has taken the frame, now or before, or it waits for earlier ones.
    Taken,
    /// There is no room or no epoch for it yet.
    Later,
    /// It is not authentic, or not the frame of the session's device.
    Refused,
    /// The session is bound to no device yet.
    NotBound,
}

impl Told {
    pub(crate) fn encode(self) -> Vec<u8> {
        vec![self as u8]
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let all = [Self::Taken, Self::Later, Self::Refused, Self::NotBound];
        all.into_iter().find(|told| *bytes == [*told as u8])
    }
}

/// The reply to [`Asked::Bind`]: the server's own proof, or none of its own.
pub(crate) fn proof_of(reply: &[u8]) -> Option<Proof> {
    (reply.len() == PROOF_LEN).then(|| Proof::decode(reply)).flatten()
}

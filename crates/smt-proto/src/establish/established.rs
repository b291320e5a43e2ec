// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The product of a handshake as a value, before and after the peer has confirmed it (SPEC §6.5).
//!
//! ```text
//!   key exchange finished ─▶ Unconfirmed ── the peer's CONFIRM opens ─▶ Established ─▶ one session
//! ```
//! Neither value is `Clone`, and each is consumed by what follows it: numbers under the keys go on
//! where CONFIRM left off, and no second user of the same keys can begin at zero.

use alloc::boxed::Box;

use smt_carrier::Path;
use smt_record::{Exporter, OpenKeys, SealKeys};
use smt_wire::ControlNumber;

use crate::establish::agreement::{Agreement, Indices};
use crate::establish::association_room::AssociationRoom;
use crate::establish::flight::FlightOut;
use crate::key_exchange::PeerIdentity;
use crate::session::CredentialEnds;
use crate::time::Time;

/// The agreement of both sides and the keys that follow from it. A session begins with it.
pub(crate) struct Established {
    /// When the key exchange finished.
    pub(crate) agreed_at: Time,
    pub(crate) path: Path,
    pub(crate) indices: Indices,
    pub(crate) agreement: Agreement,
    pub(crate) seal: SealKeys,
    pub(crate) open: OpenKeys,
    pub(crate) exporter: Exporter,
    pub(crate) peer: PeerIdentity,
    /// When the certificates of both sides end.
    pub(crate) ends: CredentialEnds,
    /// The token that a RESET of the peer must carry (SPEC §12.1); known once its CONFIRM has
    /// opened.
    pub(crate) peer_reset_token: Option<[u8; 16]>,
    /// A flight that leaves once, beside this side's CONFIRM.
    pub(crate) parting: Option<Box<FlightOut>>,
    /// Control packets that have left, all of them CONFIRM in stripe 0.
    pub(crate) controls: u64,
    /// Room for the peer's associations, if carriers seal the packets of the session.
    pub(crate) association_room: Option<AssociationRoom>,
    /// The number of the CONFIRM of the peer that has opened.
    pub(crate) confirmed_by: Option<ControlNumber>,
}

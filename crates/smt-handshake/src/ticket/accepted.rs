// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The tickets that a client's present trust accepts.
//!
//! A verifier has judged each ticket that is in a store, perhaps by a trust that its client has no
//! more. Therefore a client judges the certificates of a ticket once by its own trust, and again
//! whenever that was replaced.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use smt_proto::WallTime;
use smt_proto::key_exchange::{HandshakeFailure, PeerIdentity};

use super::verify::VerifiedTicket;
use crate::tls::TlsProvider;

/// The tickets that were judged well since the trust was last replaced.
#[derive(Debug, Default)]
pub(super) struct AcceptedTickets(Mutex<Judged>);

#[derive(Debug, Default)]
struct Judged {
    /// How often the client's configuration had been replaced by then.
    replaced: u64,
    hashes: BTreeSet<[u8; 32]>,
}

impl AcceptedTickets {
    /// Judges the certificates of a ticket by the trust of `tls`, unless that was done.
    ///
    /// # Errors
    /// The trust does not accept them.
    pub(super) fn check(
        &self,
        ticket: &VerifiedTicket,
        tls: &TlsProvider,
        now: Option<WallTime>,
    ) -> Result<(), HandshakeFailure> {
        let replaced = tls.client_replaced();
        let mut judged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if judged.replaced != replaced || judged.hashes.len() >= JUDGED_MAX {
            *judged = Judged { replaced, hashes: BTreeSet::new() };
        }
        if judged.hashes.contains(&ticket.hash) {
            return Ok(());
        }
        let server = PeerIdentity {
            server_name: Some(ticket.server_name().into()),
            certificates: ticket.chain.iter().map(|der| der.to_vec()).collect(),
            ..PeerIdentity::default()
        };
        tls.peer_judge().check(&server, now)?;
        judged.hashes.insert(ticket.hash);
        Ok(())
    }
}

/// Tickets that are remembered: as many as a store has.
const JUDGED_MAX: usize = 4_096;

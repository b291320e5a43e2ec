// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From a name to a verified ticket in the client's store.

use std::time::Duration;

use smt_handshake::{TicketStore, TicketVerifier, VerifiedTicket};
use smt_proto::WallTime;

use crate::chains::KnownChains;
use crate::error::LookupError;
use crate::resolver::{FoundRecord, TicketResolver};
use crate::server::Server;
use crate::ttl::kept_for;

/// All that a client needs to get tickets by DNS. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TicketLookup {
    /// Asks DNS.
    pub resolver: TicketResolver,
    /// Judges what comes from there.
    pub verifier: TicketVerifier,
    /// Gets the tickets; the client's builder has it too.
    pub store: TicketStore,
    /// Chains for records without one.
    pub chains: KnownChains,
}

/// A ticket that is in the store now.
#[derive(Clone, Debug)]
pub struct FoundTicket {
    /// SHA-256 of the ticket.
    pub hash: [u8; 32],
    /// When it ends, in seconds since 1970.
    pub ends: u64,
    /// The time after which the name is to be looked up again.
    pub kept_for: Duration,
}

impl TicketLookup {
    /// Looks a server's ticket up, verifies it, and puts it in the store: of several the one that
    /// begins last.
    ///
    /// # Errors
    /// [`LookupError`]; the store is as it was.
    pub async fn look_up(
        &self,
        server: &Server,
        now: impl Fn() -> WallTime,
    ) -> Result<FoundTicket, LookupError> {
        let records = self.resolver.look_up(server).await?;
        let now = now();
        let ttl = records.iter().map(|found| found.ttl).min().unwrap_or(0);
        let ticket = self.newest(server, &records, now)?;
        let ends = *ticket.ticket().validity().end();
        let found = FoundTicket {
            hash: ticket.ticket().hash(),
            ends,
            kept_for: kept_for(ttl, ends.saturating_sub(now.as_secs())),
        };
        self.store.insert(ticket);
        Ok(found)
    }

    /// The one that begins last, among those that are good for the server.
    fn newest(
        &self,
        server: &Server,
        records: &[FoundRecord],
        now: WallTime,
    ) -> Result<VerifiedTicket, LookupError> {
        let mut wrong = LookupError::Absent;
        let mut newest: Option<VerifiedTicket> = None;
        for FoundRecord { record, .. } in records {
            match self.verify(server, record, now) {
                Ok(ticket) => {
                    let begins = |of: &VerifiedTicket| *of.ticket().validity().start();
                    if newest.as_ref().is_none_or(|newest| begins(newest) < begins(&ticket)) {
                        newest = Some(ticket);
                    }
                }
                Err(error) => wrong = error,
            }
        }
        newest.ok_or(wrong)
    }

    fn verify(
        &self,
        server: &Server,
        record: &crate::record::TicketRecord,
        now: WallTime,
    ) -> Result<VerifiedTicket, LookupError> {
        let ticket = record.ticket();
        let chain = match record.chain() {
            Some(chain) => chain.to_vec(),
            None => {
                let known = self.chains.get(&ticket.chain_hash());
                known.ok_or(LookupError::NoChain)?
            }
        };
        let verified = self.verifier.verify(ticket.as_bytes(), &chain, server.name(), now);
        let verified = verified.map_err(|failure| LookupError::Refused(failure.to_string()))?;
        // A chain that a trusted authority has signed: a later record may be without it.
        self.chains.insert(&chain);
        Ok(verified)
    }
}

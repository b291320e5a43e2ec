// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Verifies a ticket once, before it is used: the server's certificate, its name, its signature
//! over the ticket, and the time. The channel that tickets come by (DNS, a file) need not be
//! trusted.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use smt_proto::WallTime;
use smt_proto::key_exchange::{FailureKind, Fault, HandshakeFailure};

use super::format::Ticket;
use super::keys::CLOCK_SKEW;
use super::provider::check_form;
use super::signature::{Context, is_valid};
use crate::failure::caller;
use crate::peer_certificate::PeerCertificate;
use crate::tls::algorithms::Algorithms;
use crate::tls::verifiers::server_verifier;
use crate::tls::{TlsConfigError, failure};
use crate::trust::Trust;
use smt_record::Side;

/// Judges tickets as a client judges servers. Cheap to clone: all clones have one trust.
#[derive(Clone, Debug)]
pub struct TicketVerifier {
    servers: Arc<RwLock<Servers>>,
    provider: Arc<CryptoProvider>,
}

/// The judgement of servers.
#[derive(Clone, Debug)]
struct Servers {
    verifier: Arc<dyn ServerCertVerifier>,
    judges_dates: bool,
}

impl Servers {
    fn new(trust: Trust, provider: &Arc<CryptoProvider>) -> Result<Self, TlsConfigError> {
        check_form(trust.form())?;
        Ok(Self { judges_dates: trust.judges_dates(), verifier: server_verifier(trust, provider)? })
    }
}

/// A ticket that is good for one server.
#[derive(Clone, Debug)]
pub struct VerifiedTicket {
    pub(super) ticket: Ticket,
    pub(super) hash: [u8; 32],
    /// When the server's certificate counts no more.
    pub(super) expires: Option<WallTime>,
    pub(super) chain: Vec<CertificateDer<'static>>,
    server_name: String,
}

impl TicketVerifier {
    /// Accepts tickets of the servers that `trust` says.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the trust cannot be used.
    pub fn new(trust: Trust) -> Result<Self, TlsConfigError> {
        let provider = Arc::new(Algorithms::default().provider());
        Ok(Self { servers: Arc::new(RwLock::new(Servers::new(trust, &provider)?)), provider })
    }

    /// Judges tickets by another trust from now on, in all clones. Tickets that were verified stay
    /// in their stores until their client is given another trust too, which clears its store.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the trust cannot be used. Then nothing has changed.
    pub fn set_trust(&self, trust: Trust) -> Result<(), TlsConfigError> {
        let servers = Servers::new(trust, &self.provider)?;
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = servers;
        Ok(())
    }

    fn servers(&self) -> Servers {
        let servers = self.servers.read();
        servers.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Verifies a ticket for the server of this name (a DNS name or an IP address). `chain` is the
    /// server's, leaf first, in DER.
    ///
    /// # Errors
    /// The ticket is another server's, over, not yet good, or signed by a certificate that is not
    /// trusted: the peer's fault, in words. A server of this name is still reached by TLS.
    pub fn verify(
        &self,
        ticket: &[u8],
        chain: &[Vec<u8>],
        server_name: &str,
        now: WallTime,
    ) -> Result<VerifiedTicket, HandshakeFailure> {
        let ticket = Ticket::from_bytes(ticket).map_err(|error| refused(error.to_string()))?;
        let name = ServerName::try_from(server_name.to_owned()).map_err(|_| {
            caller(format!("{server_name:?} is no server name: give a DNS name or an IP address"))
        })?;
        if !ticket.names().any(|of| of.eq_ignore_ascii_case(server_name)) {
            return Err(refused(format!("the ticket is not for {server_name:?}")));
        }
        check_time(&ticket, now)?;
        if !ticket.has_chain(chain) {
            return Err(refused(
                "the ticket belongs to other certificates than came with it".to_owned(),
            ));
        }
        let chain: Vec<_> = chain.iter().cloned().map(CertificateDer::from).collect();
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err(refused("no certificate came with the ticket".to_owned()));
        };
        let at = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()));
        let servers = self.servers();
        let expires = PeerCertificate::expiry(leaf).filter(|_| servers.judges_dates);
        servers
            .verifier
            .verify_server_cert(leaf, intermediates, &name, &[], at)
            .map_err(|error| failure::from_tls(&error, Side::Client))?;
        let algorithms = &self.provider.signature_verification_algorithms;
        let signed = ticket.signed_bytes();
        if !is_valid(algorithms, leaf, Context::Ticket, signed, &ticket.signature) {
            return Err(refused(
                "the ticket's signature is not by the key of the server's certificate".to_owned(),
            ));
        }
        Ok(VerifiedTicket {
            hash: ticket.hash(),
            expires,
            ticket,
            chain,
            server_name: server_name.to_owned(),
        })
    }
}

impl VerifiedTicket {
    /// The server that the ticket is for, as it was verified.
    #[must_use]
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// The ticket.
    #[must_use]
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Whether the ticket is good at `now`, and the certificate that signed it, whose dates count.
    pub(super) fn is_good(&self, now: WallTime) -> bool {
        check_time(&self.ticket, now).is_ok() && !self.has_certificate_ended(now)
    }

    /// Whether neither the ticket nor its certificate will be good any more.
    pub(super) fn is_over(&self, now: WallTime) -> bool {
        now.as_secs() > *self.ticket.validity().end() || self.has_certificate_ended(now)
    }

    fn has_certificate_ended(&self, now: WallTime) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

fn check_time(ticket: &Ticket, now: WallTime) -> Result<(), HandshakeFailure> {
    let (now, validity) = (now.as_secs(), ticket.validity());
    if now.saturating_add(CLOCK_SKEW) < *validity.start() {
        let early = validity.start() - now;
        return Err(refused(format!(
            "the ticket begins in {early} seconds; are the clocks right?"
        )));
    }
    if now > *validity.end() {
        let late = now - validity.end();
        return Err(refused(format!("the ticket is over since {late} seconds")));
    }
    Ok(())
}

fn refused(text: String) -> HandshakeFailure {
    HandshakeFailure { fault: Fault::Peer, kind: FailureKind::CertificateRefused, text }
}

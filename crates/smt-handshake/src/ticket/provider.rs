// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tickets as a key exchange of an endpoint: the client's with TLS to fall back to, and the
//! server's.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use smt_proto::WallTime;
use smt_proto::key_exchange::{Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider};
use smt_record::{Side, Suite};
use smt_wire::KeyExchange;

use super::accepted::AcceptedTickets;
use super::exchange::client::{ClientExchange, ClientSide};
use super::exchange::server::{ServerExchange, ServerSide};
use super::keys::TicketKeys;
use super::store::TicketStore;
use crate::failure::{caller, environment, nothing_common, parse_params};
use crate::identity::Identity;
use crate::tls::algorithms::{Algorithms, Group};
use crate::tls::verifiers::client_verifier;
use crate::tls::verify::Form;
use crate::tls::{ClientAuth, TlsConfigError, TlsProvider};

/// A client that begins sessions by ticket where it has one, and else by TLS.
///
/// A ticket is tried once in each connection: whatever comes of it, the next attempt is by TLS.
pub struct TicketClient {
    tls: Arc<TlsProvider>,
    store: TicketStore,
    accepted: AcceptedTickets,
    identity: RwLock<Option<CertifiedKey>>,
    suites: Vec<Suite>,
    forward_secrecy: bool,
    requires_post_quantum: bool,
}

impl TicketClient {
    /// A client with the tickets of `store`, which uses `tls` for servers without one.
    #[must_use]
    pub fn new(tls: Arc<TlsProvider>, store: TicketStore) -> Self {
        Self {
            tls,
            store,
            accepted: AcceptedTickets::default(),
            identity: RwLock::new(None),
            suites: Algorithms::default().suites,
            forward_secrecy: true,
            requires_post_quantum: false,
        }
    }

    /// Shows this identity to servers that want a certificate. A key pair alone is none: a server
    /// that wants it is called by TLS.
    #[must_use]
    pub fn with_identity(self, identity: &Identity) -> Self {
        self.set_identity(Some(identity));
        self
    }

    /// Shows another identity from now on, or none.
    pub fn set_identity(&self, identity: Option<&Identity>) {
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = identity
            .filter(|identity| identity.form() == Form::Certificate)
            .map(Identity::certified);
    }

    fn identity(&self) -> Option<CertifiedKey> {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Accepts these suites alone, preferred first.
    #[must_use]
    pub fn with_suites(mut self, suites: Vec<Suite>) -> Self {
        self.suites = suites;
        self
    }

    /// Begins sessions without ephemeral shares unless a server demands them. The ticket's private
    /// key then opens all of such a session.
    #[must_use]
    pub fn without_forward_secrecy(mut self) -> Self {
        self.forward_secrecy = false;
        self
    }

    /// Uses tickets with a post-quantum share alone.
    #[must_use]
    pub fn requiring_post_quantum(mut self) -> Self {
        self.requires_post_quantum = true;
        self
    }

    /// The store of its tickets.
    #[must_use]
    pub fn store(&self) -> &TicketStore {
        &self.store
    }

    fn by_ticket(&self, request: &ClientRequest<'_>) -> Option<Attempt> {
        let ticket = self.store.get(request.server_name, now(request.wall)?)?;
        if self.accepted.check(&ticket, &self.tls, request.wall).is_err() {
            // TLS will say why the server is not trusted.
            self.store.remove(&ticket);
            return None;
        }
        let content = &ticket.ticket.content;
        if self.requires_post_quantum && content.group != Group::X25519MlKem768 {
            return None;
        }
        let identity = self.identity();
        if content.requires.client_certificate && identity.is_none() {
            return None;
        }
        // The server's order decides, as in TLS.
        let mut suites = content.suites.iter();
        let suite = *suites.find(|suite| self.suites.contains(suite))?;
        let early_max = match content.takes_early_data {
            true => EARLY_DATA_MAX,
            false => 0,
        };
        let side = ClientSide {
            suite,
            forward_secrecy: self.forward_secrecy || content.requires.forward_secrecy,
            identity,
            store: self.store.clone(),
            ticket,
        };
        Some(Attempt {
            kind: KeyExchange::Ticket,
            suites: vec![suite],
            key: None,
            early_max,
            exchange: Box::new(ClientExchange::new(side)),
        })
    }
}

impl KeyExchangeProvider for TicketClient {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        let by_ticket = match request.is_retry {
            true => None,
            false => self.by_ticket(&request),
        };
        by_ticket.map_or_else(|| self.tls.client(request), Ok)
    }

    fn server(&self, _: &[u8], _: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        Err(caller("this endpoint is only a client: give it a TicketServer to answer".to_owned()))
    }
}

/// A server that answers to tickets. Beside it, [`crate::SeveralKinds`] has the server's TLS.
pub struct TicketServer {
    side: RwLock<ServerSide>,
    suites: Vec<Suite>,
    provider: Arc<CryptoProvider>,
}

impl TicketServer {
    /// A server with these keys, which asks clients for certificates as `client_auth` says.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the trust in clients cannot be used.
    pub fn new(keys: TicketKeys, client_auth: ClientAuth) -> Result<Self, TlsConfigError> {
        check_form(client_auth.form())?;
        let provider = Arc::new(Algorithms::default().provider());
        let side = ServerSide {
            keys,
            judges_dates: client_auth.judges_dates(),
            clients: client_verifier(client_auth, &provider)?,
            algorithms: provider.signature_verification_algorithms,
        };
        Ok(Self { suites: Algorithms::default().suites, side: RwLock::new(side), provider })
    }

    /// Judges clients that begin from now on by this.
    ///
    /// # Errors
    /// [`TlsConfigError`] if the trust in clients cannot be used. Then nothing has changed.
    pub fn set_client_auth(&self, client_auth: ClientAuth) -> Result<(), TlsConfigError> {
        check_form(client_auth.form())?;
        let judges_dates = client_auth.judges_dates();
        let clients = client_verifier(client_auth, &self.provider)?;
        let mut side = self.side.write().unwrap_or_else(PoisonError::into_inner);
        (side.clients, side.judges_dates) = (clients, judges_dates);
        Ok(())
    }

    fn side(&self) -> ServerSide {
        self.side.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Tickets and clients' proofs are signed by certificates (SPEC §6.7).
pub(super) fn check_form(form: Form) -> Result<(), TlsConfigError> {
    match form {
        Form::Certificate => Ok(()),
        Form::RawPublicKey => Err(TlsConfigError::Trust(
            "tickets go by certificates, and public keys alone by TLS: leave the tickets out, or \
             give certificates"
                .to_owned(),
        )),
    }
}

impl KeyExchangeProvider for TicketServer {
    fn client(&self, _: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        Err(caller(
            "this endpoint answers to tickets alone: give it a TicketClient to make calls"
                .to_owned(),
        ))
    }

    fn server(
        &self,
        client_params: &[u8],
        wall: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure> {
        let params = parse_params(client_params, Side::Client)?;
        if params.key_exchange != KeyExchange::Ticket {
            let wanted = params.key_exchange;
            return Err(nothing_common(format!(
                "the client wants key exchange {wanted:?}, and this server has tickets alone"
            )));
        }
        let now = now(wall).ok_or_else(|| environment("the host has no clock".to_owned()))?;
        Ok(Attempt {
            kind: KeyExchange::Ticket,
            suites: self.suites.clone(),
            key: None,
            early_max: 0,
            exchange: Box::new(ServerExchange::new(self.side(), client_params, now)),
        })
    }
}

/// Bytes of early data in a flight: its datagrams leave at once.
const EARLY_DATA_MAX: usize = 16_384;

/// The wall time, by the host's clock if the endpoint was not told it.
fn now(wall: Option<WallTime>) -> Option<WallTime> {
    wall.or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(WallTime::from_secs(since.as_secs()))
    })
}

impl std::fmt::Debug for TicketClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketClient")
            .field("tickets", &self.store.len())
            .field("forward_secrecy", &self.forward_secrecy)
            .field("requires_post_quantum", &self.requires_post_quantum)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TicketServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TicketServer")
            .field("tickets", &self.side().keys.len())
            .finish_non_exhaustive()
    }
}

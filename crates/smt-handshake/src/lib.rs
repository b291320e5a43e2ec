// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session establishment of SMT (SPEC §6, §7.1, §7.2): who the peer is, and the session's secrets.
//!
//! The core (`smt-proto`) moves flights and knows nothing of TLS; this crate implements its
//! traits. There are five key exchanges, each with a provider that an endpoint holds:
//!
//! - [`TlsProvider`]: TLS 1.3 by rustls, carried in messages; post-quantum by default. Made from
//!   a [`ClientTls`], a [`ServerTls`] or both; they are made from an [`Identity`] and a [`Trust`].
//! - [`RegisteredProvider`]: external PSKs, which the application negotiated itself
//!   ([`RegisteredKey`]).
//! - [`Adopter`]: sessions that another process has agreed on and handed over ([`Handover`]).
//! - [`TicketClient`] and [`TicketServer`]: SMT-tickets, shares that the client has verified
//!   before.
//! - [`PlaintextProvider`]: none, for the measurement version alone.
//!
//! [`SeveralKinds`] holds providers of different kinds for one endpoint.
//!
//! Beside them: [`HmacTokens`] for cookies, reset tokens and tables. Certificates are made and read
//! by the crate `smt-pki`:
//!
//! ```
//! use smt_handshake::{ClientTls, ServerTls};
//! use smt_pki::EphemeralCa;
//!
//! let authority = EphemeralCa::new()?;
//! let server = ServerTls::new(authority.server(&["localhost"])?).build()?;
//! let client = ClientTls::new(authority.trust()?).build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod certificate_extensions;
mod credential_error;
mod der;
mod der_time;
mod external_psk;
mod failure;
mod handover;
mod hmac_tokens;
mod identity;
mod key_pairs;
pub mod limits;
mod params_exchange;
mod peer_certificate;
mod pem;
mod plaintext;
mod private_key_kind;
mod revocation;
mod several_kinds;
mod spiffe_id;
mod ticket;
mod tls;
mod told_time;
mod trust;

pub use credential_error::CredentialError;
pub use external_psk::RegisteredProvider;
pub use external_psk::key::{KeyEnds, RegisteredKey, RegisteredKeyError, TlsTrafficKey};
pub use handover::{
    Adopter, AdopterId, EXPORTED_LEN, HANDOVER_LABEL, HANDOVER_LEN_MAX, Handover, HandoverError,
    HandoverTerms,
};
pub use hmac_tokens::HmacTokens;
pub use identity::Identity;
pub use key_pairs::{KEY_PAIRS_MAX, KeyPairPool};
pub use peer_certificate::PeerCertificate;
pub use pem::{KeyEncryption, Pem};
pub use plaintext::PlaintextProvider;
pub use revocation::RevocationLists;
pub use several_kinds::SeveralKinds;
pub use spiffe_id::{SpiffeId, SpiffeIdError};
pub use ticket::{
    IssuedTicket, Ticket, TicketClient, TicketError, TicketIssuer, TicketKey, TicketKeys,
    TicketPlan, TicketServer, TicketStore, TicketVerifier, VerifiedTicket, chain_hash,
};
pub use tls::algorithms::{Algorithms, Group};
pub use tls::entropy::EntropySources;
pub use tls::{ALPN, ClientAuth, ClientTls, PeerJudge, ServerTls, TlsConfigError, TlsProvider};
pub use trust::Trust;

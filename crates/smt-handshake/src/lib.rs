// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session establishment of SMT (SPEC §6, §7.1, §7.2): who the peer is, and the session's secrets.
//!
//! The core (`smt-proto`) moves flights and knows nothing of TLS; this crate implements its
//! traits. There are three key exchanges, each with a provider that an endpoint holds:
//!
//! - [`TlsProvider`]: TLS 1.3 by rustls, carried in messages; post-quantum by default. Made from
//!   a [`ClientTls`], a [`ServerTls`] or both; they are made from an [`Identity`] and a [`Trust`].
//! - [`RegisteredProvider`]: keys that the application negotiated itself ([`RegisteredKey`]).
//! - [`PlaintextProvider`]: none, for the measurement version alone.
//!
//! Beside them: [`HmacTokens`] for cookies, reset tokens and tables. Certificates are made and read by
//! the crate `smt-pki`:
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

mod algorithms;
mod chain_signatures;
mod failure;
mod hmac_tokens;
mod identity;
pub mod limits;
mod params_exchange;
mod pem;
mod pinned;
mod plaintext;
mod registered;
mod registered_key;
mod sources;
mod tls;
mod tls_exchange;
mod tls_failure;
mod trust;

pub use algorithms::{Algorithms, Group};
pub use hmac_tokens::HmacTokens;
pub use identity::Identity;
pub use pem::{CredentialError, Pem};
pub use plaintext::PlaintextProvider;
pub use registered::RegisteredProvider;
pub use registered_key::{KeyEnds, RegisteredKey, RegisteredKeyError};
pub use sources::Sources;
pub use tls::{ALPN, ClientAuth, ClientTls, ServerTls, TlsConfigError, TlsProvider};
pub use trust::Trust;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The roles of an endpoint: which side of sessions it may be, and by which credentials.

mod both;
mod client;
mod handover;
mod server;
#[cfg(feature = "unstable-plaintext")]
mod unprotected;

pub use both::Both;
pub use client::{KeyClient, TlsClient};
pub use handover::{HandoverClient, HandoverServer};
pub use server::{KeyServer, TlsServer};
#[cfg(feature = "unstable-plaintext")]
pub(crate) use unprotected::Unprotected;

use crate::credentials::KeyExchanges;
use crate::error::OpenError;

/// A role of an endpoint. The roles are those of this crate.
pub trait Role: Clone + sealed::Sealed {}

/// A role that connects to servers.
pub trait ClientRole: Role {}

/// A role that takes clients.
pub trait ServerRole: Role {}

/// A role by TLS 1.3.
pub trait TlsRole: Role + sealed::WithAlgorithms {}

impl<R: Clone + sealed::Sealed> Role for R {}

impl<R: Role + sealed::WithAlgorithms> TlsRole for R {}

pub(crate) mod sealed {
    use smt_handshake::Algorithms;

    use super::{KeyExchanges, OpenError};

    /// The algorithms of a role by TLS.
    #[expect(unnameable_types, reason = "other crates add no roles")]
    pub trait WithAlgorithms {
        /// To be changed.
        fn algorithms(&mut self) -> &mut Algorithms;
    }

    /// The parts of a role that only this crate uses.
    #[expect(unnameable_types, reason = "other crates add no roles")]
    pub trait Sealed {
        /// Whether handshakes of clients are answered.
        const ACCEPTS: bool;
        /// The wire version.
        const VERSION: u8 = smt_wire::VERSION;

        /// The key exchanges of the role.
        fn key_exchanges(&self) -> Result<KeyExchanges, OpenError>;

        /// The name that every server's certificate must have, if one was chosen.
        fn server_name(&self) -> Option<&str> {
            None
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The roles of the plaintext measurement version (SPEC §14). Only the endpoint types of
//! `plaintext` use them.

use smt_handshake::PlaintextProvider;

use super::sealed::Sealed;
use super::{ClientRole, ServerRole};
use crate::credentials::KeyExchanges;
use crate::error::OpenError;

/// A side without any protection: a server if `ACCEPTS`, else a client.
#[derive(Clone, Copy, Debug)]
#[must_use = "a role opens nothing by itself"]
pub(crate) struct Unprotected<const ACCEPTS: bool>;

impl ServerRole for Unprotected<true> {}

impl ClientRole for Unprotected<false> {}

impl<const ACCEPTS: bool> Sealed for Unprotected<ACCEPTS> {
    const ACCEPTS: bool = ACCEPTS;
    const VERSION: u8 = smt_wire::PLAINTEXT_VERSION;

    fn key_exchanges(&self) -> Result<KeyExchanges, OpenError> {
        Ok(PlaintextProvider.into())
    }
}

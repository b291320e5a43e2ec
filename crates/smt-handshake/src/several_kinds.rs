// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Several kinds of key exchange at one endpoint, each by the provider that has it (SPEC §6.3).

use std::sync::Arc;

use smt_proto::WallTime;
use smt_proto::key_exchange::{Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider};
use smt_record::Side;
use smt_wire::KeyExchange;

use crate::failure::{caller, nothing_common, parse_params};

/// Providers of different kinds: one for calls, and one for each kind that clients may want.
///
/// The plaintext measurement version is no such kind: clients that want it are refused (SPEC §14).
///
/// Each kind judges its own clients: a client that comes with a registered key is who the key says
/// (SPEC §7.2), and shows no certificate, even if TLS clients must.
pub struct SeveralKinds {
    calls: Option<Arc<dyn KeyExchangeProvider>>,
    answers: Vec<(KeyExchange, Arc<dyn KeyExchangeProvider>)>,
}

impl SeveralKinds {
    /// An endpoint that neither calls nor answers yet.
    #[must_use]
    pub fn new() -> Self {
        Self { calls: None, answers: Vec::new() }
    }

    /// Makes calls by this provider, in place of one that was given before.
    #[must_use]
    pub fn calls_by(mut self, provider: Arc<dyn KeyExchangeProvider>) -> Self {
        self.calls = Some(provider);
        self
    }

    /// Answers clients that want this kind by this provider, in place of one that was given before.
    /// [`KeyExchange::Plaintext`] stays refused.
    #[must_use]
    pub fn answers_by(mut self, kind: KeyExchange, provider: Arc<dyn KeyExchangeProvider>) -> Self {
        self.answers.retain(|(of, _)| *of != kind);
        if kind != KeyExchange::Plaintext {
            self.answers.push((kind, provider));
        }
        self
    }

    fn kinds(&self) -> Vec<KeyExchange> {
        self.answers.iter().map(|(kind, _)| *kind).collect()
    }
}

impl Default for SeveralKinds {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyExchangeProvider for SeveralKinds {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        let provider = self.calls.as_ref().ok_or_else(|| {
            caller("this endpoint has no key exchange to make calls with".to_owned())
        })?;
        provider.client(request)
    }

    fn server(
        &self,
        client_params: &[u8],
        wall: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure> {
        let wanted = parse_params(client_params, Side::Client)?.key_exchange;
        let answers = self.answers.iter().find(|(kind, _)| *kind == wanted);
        let (_, provider) = answers.ok_or_else(|| {
            let kinds = self.kinds();
            nothing_common(format!(
                "the client wants key exchange {wanted:?}, and this server has {kinds:?}"
            ))
        })?;
        provider.server(client_params, wall)
    }
}

impl std::fmt::Debug for SeveralKinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeveralKinds")
            .field("calls", &self.calls.is_some())
            .field("answers", &self.kinds())
            .finish()
    }
}

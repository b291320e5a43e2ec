// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key exchange of an endpoint whose sessions are agreed on elsewhere (SPEC §7.5).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Failed, HandshakeFailure, Input, KeyExchange, KeyExchangeProvider,
    NamedKey, Step,
};
use smt_record::Side;

use super::HandoverError;
use super::adopted::{Adopted, AdoptedValues, Unnamed};
use super::value::{AdopterId, Handover};
use crate::external_psk::key::display_name;
use crate::failure::{environment, nothing_common, parse_params};
use crate::params_exchange::{ParamsExchange, SecretSource};

/// Adopts sessions, each once, and is the key exchange of the endpoint that uses them. Clones are
/// the same adopter: one stays with what receives the values.
#[derive(Clone)]
pub struct Adopter(Arc<Inner>);

struct Inner {
    id: AdopterId,
    values: Mutex<AdoptedValues>,
}

impl Adopter {
    /// A new adopter, which nobody has handed anything yet.
    ///
    /// # Errors
    /// [`HandoverError::Random`].
    pub fn new() -> Result<Self, HandoverError> {
        Ok(Self(Arc::new(Inner { id: AdopterId(random()?), values: Mutex::default() })))
    }

    /// The id for which sessions are to be handed over. It is no secret.
    #[must_use]
    pub fn id(&self) -> AdopterId {
        self.0.id
    }

    /// Takes a session: one handshake may begin by it. `now` is the wall time.
    ///
    /// # Errors
    /// The value is for another adopter, was adopted before, is too old, or there are too many
    /// ([`HandoverError`]).
    pub fn adopt(&self, value: &Handover, now: WallTime) -> Result<(), HandoverError> {
        self.0.values().adopt(self.0.id, value, now)
    }

    /// How many sessions wait for their handshake.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.values().waiting()
    }

    fn attempt(
        &self,
        adopted: Adopted,
        exchange: ParamsExchange,
        side: Side,
    ) -> Result<Attempt, HandshakeFailure> {
        // Made first: it gives the value back if anything fails.
        let exchange =
            AdoptedExchange { inner: exchange, adopted, side, adopter: Arc::clone(&self.0) };
        let random = random().map_err(|error| environment(error.to_string()))?;
        let key = &exchange.adopted.key;
        Ok(Attempt {
            kind: smt_wire::KeyExchange::Registered,
            suites: vec![key.suite()],
            key: Some(NamedKey { name: key.name().to_vec(), random }),
            early_max: 0,
            exchange: Box::new(exchange),
        })
    }
}

impl fmt::Debug for Adopter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adopter").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Inner {
    /// A panic of another thread leaves the values whole: each change is one step.
    fn values(&self) -> MutexGuard<'_, AdoptedValues> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyExchangeProvider for Adopter {
    /// The server's name is the name that the other end has proved to the control process.
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        let name = request.server_name;
        let begun = self.0.values().begin(name, request.is_retry, request.wall);
        let adopted = begun.ok_or_else(|| {
            environment(format!(
                "no session with {name:?} is left that was handed over; have the key daemon hand \
                 over another"
            ))
        })?;
        let source = SecretSource::Registered(Arc::clone(&adopted.key));
        self.attempt(adopted, ParamsExchange::client(source), Side::Client)
    }

    fn server(
        &self,
        client_params: &[u8],
        wall: Option<WallTime>,
    ) -> Result<Attempt, HandshakeFailure> {
        let params = parse_params(client_params, Side::Client)?;
        let name = params.key_name.ok_or_else(|| {
            nothing_common(
                "the client names no session that was handed over, and this server takes no others"
                    .to_owned(),
            )
        })?;
        let answered = self.0.values().answer(name, wall);
        let adopted = answered.map_err(|why| {
            nothing_common(match why {
                Unnamed::UsedUp => format!(
                    "the session {} was adopted before; have the key daemon hand over another",
                    display_hex(name)
                ),
                Unnamed::Unknown => format!(
                    "the client names session {}, which was not handed over to this process",
                    display_hex(name)
                ),
            })
        })?;
        let source = SecretSource::Registered(Arc::clone(&adopted.key));
        source.check(client_params, Side::Client)?;
        let exchange = ParamsExchange::server(source, client_params);
        self.attempt(adopted, exchange, Side::Server)
    }
}

/// One attempt by an adopted value.
struct AdoptedExchange {
    inner: ParamsExchange,
    adopted: Adopted,
    side: Side,
    adopter: Arc<Inner>,
}

impl KeyExchange for AdoptedExchange {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        let mut step = self.inner.step(input)?;
        if let Some(finished) = &mut step.finished {
            finished.key_exchange = "handed over";
            finished.peer.key_identity = Some(self.adopted.peer_name.to_string());
            finished.peer.expires = self.adopted.credentials_end;
        }
        Ok(step)
    }

    fn confirmed(&mut self) -> Result<(), HandshakeFailure> {
        let name = display_hex(&self.adopted.name);
        let confirmed = self.adopter.values().confirm(&self.adopted.name);
        confirmed.map_err(|why| match why {
            Unnamed::UsedUp => nothing_common(format!(
                "the session {name} was adopted before: another handshake by it has been confirmed"
            )),
            Unnamed::Unknown => environment(format!(
                "the session {name} became too old during its handshake; have the key daemon hand \
                 over another"
            )),
        })
    }
}

impl Drop for AdoptedExchange {
    fn drop(&mut self) {
        if self.side == Side::Client {
            self.adopter.values().give_up(&self.adopted.name);
        }
    }
}

fn random<const N: usize>() -> Result<[u8; N], HandoverError> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| HandoverError::Random)?;
    Ok(bytes)
}

/// A name as logs show it: in hexadecimal digits if it is one of a value.
fn display_hex(name: &[u8]) -> String {
    match name.try_into() {
        Ok(bytes) => AdopterId(bytes).to_string(),
        Err(_) => display_name(name),
    }
}

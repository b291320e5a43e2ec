// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All that an endpoint of a conversation begins with, as a struct and as the file has it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use smt_handshake::{KeyEnds, RegisteredKey, RegisteredProvider};
use smt_proto::key_exchange::{
    Attempt, ClientRequest, HandshakeFailure, KeyExchangeProvider, MacPurpose, TokenMac,
};
use smt_proto::{Config, Endpoint, WallTime};
use smt_record::{KeyLog, KeyLogEntry, Suite};
use smt_sim::Random;
use smt_sim::crypto::{Credentials, SeededTls};
use smt_sim::net::HostId;

/// An endpoint of a conversation, before the first step.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) is_server: bool,
    pub(crate) config: Config,
    pub(crate) exchange: Exchange,
    /// The token of each session index that it issues.
    pub(crate) reset_token: [u8; 16],
}

/// Where the keys of a conversation come from.
#[derive(Clone, Copy)]
pub(crate) enum Exchange {
    /// The registered key, and this side's fresh random.
    Registered { random: [u8; 32] },
    /// TLS with certificates of both sides; all that is random is from the seed.
    Tls { seed: u64 },
}

impl Exchange {
    /// The registered key that all conversations have.
    pub(crate) fn registered(is_server: bool) -> Self {
        let byte = if is_server { 0xB0 } else { 0xA0 };
        Self::Registered { random: std::array::from_fn(|at| byte ^ at as u8) }
    }

    /// A handshake of TLS.
    pub(crate) fn tls(is_server: bool) -> Self {
        Self::Tls { seed: u64::from(is_server) }
    }
}

impl Setup {
    pub(crate) fn new(is_server: bool) -> Self {
        let mut config = Config::default();
        config.accept = is_server;
        config.boot = if is_server { 8 } else { 7 };
        // Datagrams of the least size: no larger size is probed for.
        config.datagram_limit = 1_200;
        let byte = if is_server { 0xB0 } else { 0xA0 };
        Self {
            is_server,
            config,
            exchange: Exchange::registered(is_server),
            reset_token: std::array::from_fn(|at| byte + at as u8),
        }
    }

    /// The same with keys from TLS.
    pub(crate) fn with_tls(self) -> Self {
        let exchange = Exchange::tls(self.is_server);
        Self { exchange, ..self }
    }

    /// The name by which a client connects.
    pub(crate) fn server_name(&self) -> &'static str {
        match self.exchange {
            Exchange::Registered { .. } => SERVER,
            Exchange::Tls { .. } => TLS_NAMES[1],
        }
    }

    pub(crate) fn endpoint(&self, lines: &Lines) -> Endpoint {
        let mac = Arc::new(GivenToken(self.reset_token));
        let config = self.config.clone();
        let mut endpoint = match self.exchange {
            Exchange::Registered { random } => {
                Endpoint::new(config, Arc::new(self.registered(random)), mac)
            }
            Exchange::Tls { seed } => {
                let (host, random) = (HostId(self.is_server.into()), Random::new(seed));
                let tls = SeededTls::new(&credentials(), host, &[SUITE], random);
                Endpoint::new(config, Arc::new(tls), mac)
            }
        };
        endpoint.set_key_log(Arc::new(lines.clone()));
        endpoint
    }

    /// The exchange by the registered key.
    fn registered(&self, random: [u8; 32]) -> GivenRandom {
        let (client, server) = (CLIENT.to_owned(), SERVER.to_owned());
        let (own, peer) = if self.is_server { (&server, &client) } else { (&client, &server) };
        let ends = KeyEnds { own, peer };
        let key = RegisteredKey::from_secret(KEY_NAME, ends, SUITE, IKM).expect(FITS);
        let provider = if self.is_server {
            RegisteredProvider::server(vec![key]).expect(FITS)
        } else {
            RegisteredProvider::client(key)
        };
        GivenRandom { provider, random }
    }

    /// The members of the file that say where the keys come from.
    fn exchange_json(&self) -> Value {
        match self.exchange {
            Exchange::Registered { random } => json!({
                "key": {
                    "name": hex(KEY_NAME),
                    "ikm": hex(IKM),
                    "suite": format!("{:04x}", SUITE.code()),
                    "client": CLIENT,
                    "server": SERVER,
                },
                "random": hex(&random),
            }),
            Exchange::Tls { seed } => {
                let credentials = credentials();
                let [client, server] = [0, 1].map(|host| {
                    let identity = credentials.identity(HostId(host));
                    let chain: Vec<String> = identity.certificates().map(hex).collect();
                    json!({ "name": TLS_NAMES[host as usize], "certificates": chain })
                });
                json!({
                    "tls": {
                        "suite": format!("{:04x}", SUITE.code()),
                        "group": "x25519",
                        "seed": seed,
                        "client": client,
                        "server": server,
                    },
                })
            }
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let config = &self.config;
        let mut file = json!({
            "side": if self.is_server { "server" } else { "client" },
            "reset_token": hex(&self.reset_token),
            "boot": config.boot,
            "durable_boot": config.durable_boot,
            "index_bits": config.index_bits,
            "record_size": config.record_size,
            "first_record_size": config.first_record_size,
            "window": config.window,
            "stripes": config.stripes_log2,
            "message_limit": config.message_limit,
            "unscheduled": config.unscheduled,
            "datagram_limit": config.datagram_limit,
            "takes_bundles": config.bundles,
            "part_window": config.part_window,
            "records_per_key": config.key_limits.records(),
            "update_at": config.key_limits.update_at(),
            "incoming_max": config.incoming_max,
        });
        if let (Some(file), Value::Object(exchange)) = (file.as_object_mut(), self.exchange_json())
        {
            file.extend(exchange);
        }
        file
    }
}

/// The certificates of client (host 0) and server (host 1).
fn credentials() -> Credentials {
    Credentials::new(2, 0)
}

/// The registered-key exchange with a random that is given.
struct GivenRandom {
    provider: RegisteredProvider,
    random: [u8; 32],
}

impl GivenRandom {
    fn give(&self, mut attempt: Attempt) -> Attempt {
        if let Some(key) = &mut attempt.key {
            key.random = self.random;
        }
        attempt
    }
}

impl KeyExchangeProvider for GivenRandom {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        self.provider.client(request).map(|begun| self.give(begun))
    }

    fn server(&self, params: &[u8], wall: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        self.provider.server(params, wall).map(|begun| self.give(begun))
    }
}

/// One token for all that would be a MAC: conversations need those of reset alone.
struct GivenToken([u8; 16]);

impl TokenMac for GivenToken {
    fn mac(&self, _: MacPurpose, _: &[&[u8]]) -> [u8; 16] {
        self.0
    }
}

/// The lines of a key log.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no other thread"))
    }
}

impl KeyLog for Lines {
    fn log(&self, line: &KeyLogEntry<'_>) {
        let mut lines = self.0.lock().expect("no other thread");
        lines.push(line.to_string());
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("hex");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}

const KEY_NAME: &[u8] = b"conversations";
const IKM: &[u8] = b"a secret that everybody may read";
const CLIENT: &str = "web-1";
const SERVER: &str = "store-1";
/// The names in the certificates of client and server.
const TLS_NAMES: [&str; 2] = ["host-0.sim", "host-1.sim"];
const SUITE: Suite = Suite::Aes128Gcm;
const FITS: &str = "what a conversation has is within bounds";

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted bft client`: requests to a replicated service.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use smt_bft::{Client, KeyValueOperation, Output, SigningKey};
use smt_mesh::{Arrival, Mesh, SessionError, messages};

use crate::bft::config::{ClientConfig, ConfigError, ServiceName};

/// Calls a replicated service, and prints the answer that f + 1 replicas give
#[derive(Args)]
pub(crate) struct ClientArguments {
    /// The client's configuration file
    #[arg(long)]
    config: PathBuf,
    /// Gives a request up after so many seconds
    #[arg(long, default_value_t = 60)]
    deadline_s: u64,
    #[command(subcommand)]
    operation: Operation,
}

#[derive(Subcommand)]
enum Operation {
    /// Adds to the counter, and prints the sum
    Add {
        /// The number to add
        number: u64,
    },
    /// Prints the value of a key
    Get {
        /// The key
        key: String,
    },
    /// Sets the value of a key, and prints the one before
    Put {
        /// The key
        key: String,
        /// The value
        value: String,
    },
    /// Deletes a key, and prints the value that it had
    Delete {
        /// The key
        key: String,
    },
    /// Makes requests one after the other, and prints a line for each answer: 1 is added to the
    /// counter, or `load` set to the request's number
    Load {
        /// How many requests
        #[arg(long, default_value_t = 1000)]
        count: u64,
    },
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Sessions cannot be had.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Too few replicas answer.
    #[error(
        "the replicas: no answer of f + 1 of them in {0} seconds; the request may have run, or may yet"
    )]
    Deadline(u64),
    /// This process has closed its sessions.
    #[error("this client: its endpoint was closed before an answer came")]
    Ended,
    /// The service has no such operation.
    #[error("your request: the group serves {0}, which has no such operation")]
    OtherService(&'static str),
    /// The operation is longer than the group permits.
    #[error("your request: {0} bytes are more than the group's operation_bytes, {1}")]
    TooLong(usize, usize),
    /// An answer that is none of the service.
    #[error("the replicas: f + 1 of them have given an answer that the service does not give")]
    Answer,
    /// There is no randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// Standard output failed.
    #[error("the operating system: standard output failed")]
    Output(#[from] io::Error),
}

impl ClientArguments {
    pub(crate) fn run(self) -> Result<(), ClientError> {
        let config = ClientConfig::read(&self.config)?;
        let service = config.group.service;
        let mut caller = Caller::open(config, self.deadline_s)?;
        let mut out = io::stdout().lock();
        match self.operation {
            Operation::Load { count } => {
                let began = Instant::now();
                for number in 0..count {
                    let operation = match service {
                        ServiceName::Counter => add(1),
                        ServiceName::KeyValue => {
                            let value = number.to_string().into_bytes();
                            KeyValueOperation::Put(b"load".to_vec(), value).encode()
                        }
                    };
                    let answer = caller.call(operation)?;
                    writeln!(out, "{}", shown(service, &answer)?)?;
                    out.flush()?;
                }
                let seconds = began.elapsed().as_secs_f64();
                eprintln!("{count} requests in {seconds:.2} s");
            }
            one => {
                let operation = one.encode(service)?;
                let answer = caller.call(operation)?;
                writeln!(out, "{}", shown(service, &answer)?)?;
            }
        }
        Ok(())
    }
}

impl Operation {
    fn encode(self, service: ServiceName) -> Result<Vec<u8>, ClientError> {
        let bytes = String::into_bytes;
        let operation = match self {
            Self::Add { number } if service == ServiceName::Counter => return Ok(add(number)),
            Self::Get { key } => KeyValueOperation::Get(bytes(key)),
            Self::Put { key, value } => KeyValueOperation::Put(bytes(key), bytes(value)),
            Self::Delete { key } => KeyValueOperation::Delete(bytes(key)),
            Self::Add { .. } | Self::Load { .. } => {
                return Err(ClientError::OtherService("a key-value store"));
            }
        };
        match service {
            ServiceName::KeyValue => Ok(operation.encode()),
            ServiceName::Counter => Err(ClientError::OtherService("a counter")),
        }
    }
}

fn add(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// An answer as text.
fn shown(service: ServiceName, answer: &[u8]) -> Result<String, ClientError> {
    match service {
        ServiceName::Counter => {
            let sum = answer.try_into().map_err(|_| ClientError::Answer)?;
            Ok(u64::from_be_bytes(sum).to_string())
        }
        ServiceName::KeyValue => {
            let value = KeyValueOperation::decode_answer(answer).ok_or(ClientError::Answer)?;
            Ok(value.map_or_else(|| "(none)".to_owned(), |it| it.escape_ascii().to_string()))
        }
    }
}

/// A client of the group, and its sessions.
struct Caller {
    client: Client,
    mesh: Mesh,
    operation_max: usize,
    tick: Duration,
    deadline_s: u64,
}

impl Caller {
    fn open(config: ClientConfig, deadline_s: u64) -> Result<Self, ClientError> {
        let mesh = Mesh::open(&config.place)?;
        // Numbers grow over restarts of this process while its clock does not go back.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let last = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let key = SigningKey::from_bytes(&config.signing_key);
        let operation_max = config.group.group.options.operation;
        let tick = Duration::from_millis(config.group.tick_ms.into());
        let client = Client::new(config.group.group, config.client, key, last);
        let caller = Self { client, mesh, operation_max, tick, deadline_s };
        // Replicas reply in the session in which a client spoke last: all must know one.
        caller.greet();
        Ok(caller)
    }

    /// Makes a request, and waits for its answer.
    fn call(&mut self, operation: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        if operation.len() > self.operation_max {
            return Err(ClientError::TooLong(operation.len(), self.operation_max));
        }
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(ClientError::Random)?;
        self.client.submit(nonce, operation);
        let began = Instant::now();
        let mut next_tick = began + self.tick;
        loop {
            self.send();
            let wait = next_tick.saturating_duration_since(Instant::now());
            match self.mesh.next(wait) {
                Arrival::Packet(_, packet) => {
                    let answer = messages(&packet).find_map(|it| self.client.receive(it));
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                }
                Arrival::Nothing => {}
                Arrival::End => return Err(ClientError::Ended),
            }
            // Also while packets come: a liar's flood keeps no request from being sent again.
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + self.tick;
                self.client.tick();
                // A replica that has restarted knows no session.
                self.greet();
            }
            if began.elapsed().as_secs() >= self.deadline_s {
                return Err(ClientError::Deadline(self.deadline_s));
            }
        }
    }

    /// Says nothing to all, so that they know a session.
    fn greet(&self) {
        self.mesh.to_replicas(&[]);
    }

    fn send(&mut self) {
        for output in self.client.outputs() {
            match output {
                Output::Replica(to, bytes) => self.mesh.to_replica(to, bytes),
                Output::Replicas(bytes) => self.mesh.to_replicas(&bytes),
                Output::Client(..) => {}
            }
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.mesh.close(Duration::from_millis(200));
    }
}

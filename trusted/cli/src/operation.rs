// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Operations of replicated services, and answers as text.

use std::io::{self, Write};
use std::time::Instant;

use clap::Subcommand;
use smt_replica::KeyValueOperation;
use smt_trusted_process::{CallError, Caller, ClientProtocol, ConfigError};

use crate::service::ServiceName;

/// Why a request to a service has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The group gives no answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The service has no such operation.
    #[error("your request: the group serves {0}, which has no such operation")]
    OtherService(&'static str),
    /// An answer that is none of the service.
    #[error("the group: f + 1 of its members have given an answer that the service does not give")]
    Answer,
    /// Standard output failed.
    #[error("the operating system: standard output failed")]
    Output(#[from] io::Error),
}

/// Something that a client asks for.
#[derive(Subcommand)]
pub(crate) enum Operation {
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
    /// Makes many requests, and prints a line for each answer as it comes: 1 is added to the
    /// counter, or `load` set to the request's number
    Load {
        /// How many requests
        #[arg(long, default_value_t = 1000)]
        count: u64,
        /// How many of them are in progress at a time, up to 32
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
        in_progress: u32,
    },
}

impl Operation {
    /// Does what the user asks for, and prints each answer.
    pub(crate) fn run<P: ClientProtocol>(
        self,
        service: ServiceName,
        caller: &mut Caller<P>,
    ) -> Result<(), ClientError> {
        let mut out = io::stdout().lock();
        match self {
            Self::Load { count, in_progress } => {
                let began = Instant::now();
                let operations = (0..count).map(|number| of_load(service, number));
                caller.call_all(operations, in_progress as usize, |_, answer| {
                    writeln!(out, "{}", shown(service, &answer)?)?;
                    Ok::<(), ClientError>(out.flush()?)
                })?;
                let seconds = began.elapsed().as_secs_f64();
                eprintln!("{count} requests in {seconds:.2} s");
            }
            one => {
                let answer = caller.call(one.encode(service)?)?;
                writeln!(out, "{}", shown(service, &answer)?)?;
            }
        }
        Ok(())
    }

    /// The operation as bytes of a request. `load` is many of them.
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

/// The operation of one request of a load.
fn of_load(service: ServiceName, number: u64) -> Vec<u8> {
    match service {
        ServiceName::Counter => add(1),
        ServiceName::KeyValue => {
            let value = number.to_string().into_bytes();
            KeyValueOperation::Put(b"load".to_vec(), value).encode()
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Valkey over SMT, for clients.
//!
//! [`Stream`] is a connection as bytes (`AsyncRead` and `AsyncWrite` of tokio): what is written
//! before a flush leaves as one message. [`Options::connection`] puts the crate `redis` on top,
//! with its commands, pipelines and transactions; its `PubSub::new` and `Monitor::new` take a
//! [`Stream`] too. [`Options::open`] gives many connections one socket, which is faster than a
//! socket for each.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use redis::AsyncCommands;
//! let trust = smt::Trust::roots_from_pem_files(&["ca.pem"])?;
//! let identity = smt::Identity::from_pem_files("client.pem", "client.key")?;
//! let options = smt_valkey::Options::new(trust).identity(identity);
//! let mut valkey = options.connection("db.example:6380", &Default::default()).await?;
//! let () = valkey.set("greeting", "good day").await?;
//! # Ok(())
//! # }
//! ```

mod connector;
mod credentials;
mod frame;
mod options;
mod pushes;
mod reassembly;
mod reply_text;
mod resp;
mod stream;
mod words;

pub use connector::Connector;
pub use credentials::Credentials;
pub use options::Options;
pub use reply_text::{Form, reply_text};
pub use resp::{NoReply, reply_length};
pub use stream::Stream;
pub use words::{UnbalancedQuotes, words};

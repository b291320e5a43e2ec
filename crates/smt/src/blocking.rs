// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client and server for threads, without a runtime.
//!
//! The protocol runs in the thread that waits: an unloaded call is one send and one receive.
//! Handles are cheap to clone and may be used from many threads at once.
//!
//! ```
//! use smt::pki::EphemeralCa;
//!
//! let authority = EphemeralCa::new()?;
//! let identity = authority.server(&["localhost"])?;
//! let server = smt::server(identity).bind_blocking("127.0.0.1:0")?;
//! let address = server.local_address();
//! std::thread::spawn(move || {
//!     while let Some(request) = server.accept_request() {
//!         let body = request.body().clone();
//!         // A caller that has given up is no reason to stop.
//!         if let Err(error) = request.reply(body) {
//!             eprintln!("{error}");
//!         }
//!     }
//! });
//!
//! let client = smt::client(authority.trust()?)
//!     .server_name("localhost")
//!     .connect_blocking(address)?;
//! assert_eq!(client.call("hello").wait()?, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accept;
mod call;
mod client;
mod close;
mod endpoint;
mod server;

pub use call::{CallBuilder, SendBuilder};
pub use client::Client;
pub use endpoint::Endpoint;
pub use server::Server;

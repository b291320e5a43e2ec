// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files over HTTP/3: h3 and quinn as they are, on a socket with the QUIC engine below it.
//!
//! 1. [`server::endpoint`] makes the endpoint, [`server::serve`] answers `GET` and `HEAD`.
//! 2. [`files`] finds the file of a path.
#![forbid(unsafe_code)]

pub mod files;
pub mod server;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bodies of SMT's fuzz targets: each takes any bytes and panics if a promise is broken.
//!
//! A target in `fuzz_targets/` is one line that calls one of these; `tests/corpora.rs` calls them
//! for every committed input, without a fuzzer.
#![forbid(unsafe_code)]

pub mod bundle;
pub mod capture;
pub mod credentials;
pub mod epoch;
pub mod esp;
pub mod flight;
pub mod geometry;
pub mod handover;
pub mod hostile_peer;
pub mod inner_header;
pub mod key_exchange;
mod kind_fields;
pub mod packet;
pub mod quic_engine;
pub mod record;
pub mod scenario;
pub mod script;
pub mod ticket;
pub mod ticket_flight;
pub mod window;
mod world;

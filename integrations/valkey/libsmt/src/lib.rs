// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT for C: a server endpoint in an event loop of the program's own (`include/smt.h`).
//!
//! Flow: 1. `open` makes an endpoint of the options  2. the owner polls its descriptor and calls
//! `process`  3. `event` turns the endpoint's events into structs of C, which lend their bytes
//! until the next event  4. `message` sends replies and one-way messages  5. `reload` reads the
//! server's files again, and `clients` tells which sessions have lost their trust.
//!
//! Not here: clients, calls in parts, keys that are registered. The names that C sees begin with
//! `smt_`; the structs have the layout of the header.

mod clients;
mod endpoint;
mod error;
mod event;
mod message;
mod open;
mod peer;
mod reload;
mod session_data;

// The header's structs, as `module/test/input_test.c` asserts them too.
const _: () = assert!(size_of::<error::ErrorForC>() == 512);
const _: () = assert!(size_of::<event::EventForC>() == 80);
const _: () = assert!(size_of::<event::RpcForC>() == 16);
const _: () = assert!(size_of::<open::OptionsForC>() == 80);
const _: () = assert!(size_of::<peer::PeerForC>() == 144);

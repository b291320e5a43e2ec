// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Establishing a session (SPEC §6): the handshake's flights, parameters and cookies, until both
//! CONFIRM packets have opened.
//!
//! 1. `client` begins an attempt and repeats its flights; `server` answers each flight and never
//!    repeats.
//! 2. `flight` splits a flight into packets and reassembles it; `agreement` offers and chooses
//!    parameters.
//! 3. `session_factory` derives the session's keys from the result of the key exchange.
//! 4. `confirm` writes and opens CONFIRM; `established` is what a session begins with then.
//! 5. `early` has the calls that begin with their session.
//! 6. `admission` decides which new clients a server takes. `stateless` answers without state:
//!    COOKIE, VERSION, RESET, UNAVAILABLE. `address_shares` counts handshakes and sessions by
//!    address; `non_smt_packets` notes replies of other programs.
//!
//! Not here: what is inside the flights ([`crate::key_exchange`]), and which handshakes an endpoint
//! keeps (`endpoint`).

pub(crate) mod address_shares;
pub(crate) mod admission;
pub(crate) mod agreement;
pub(crate) mod association_room;
pub(crate) mod client;
pub(crate) mod confirm;
pub(crate) mod early;
pub(crate) mod established;
pub(crate) mod flight;
pub(crate) mod identity_shares;
pub(crate) mod non_smt_packets;
pub(crate) mod server;
pub(crate) mod session_factory;
pub(crate) mod stateless;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ESP engine behind its rings, against ESP in software (`smt-esp`), which has another parser
//! and other ciphers.

mod adversary;
mod host;
mod opening;
mod sealing;
mod software;
mod stream_order;
mod without_room;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transmission of a session.
//!
//! 1. `transmit`: what leaves next, a datagram of control packets or a batch of messages.
//! 2. `control`: control packets; `grant`: the GRANTs among them.
//! 3. `message`: the packets of one message; `bundle`: small messages that leave together.

mod bundle;
mod control;
mod grant;
mod message;
mod transmit;

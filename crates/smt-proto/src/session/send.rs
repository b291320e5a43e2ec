// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transmission of a session: control packets, messages, and bundles of small ones.

mod bundle;
mod transmit;

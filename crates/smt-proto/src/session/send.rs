// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a session sends: control packets, messages, and bundles of small ones.

mod bundle;
mod transmit;

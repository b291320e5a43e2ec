// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reception of a session: DATA, control packets, bundles, headers of trimmed packets.

mod bundle;
mod control;
mod data;
mod delivery;
pub(super) mod replies;
mod trimmed;

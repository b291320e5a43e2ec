// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The PSP engine behind its rings: two devices, one of which has allocated the associations that
//! the other one sends under.

mod adversary;
mod device_keys;
mod host;
mod ivs;
mod opening;
mod sealing;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a scenario that is well written cannot run.

use thiserror::Error;

/// Why a scenario cannot run: its network does not carry what is to be measured.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum CannotRun {
    /// A message does not get through, although nothing else is sent: there is nothing to compare
    /// with.
    #[error(
        "a message of {length} B that is alone does not arrive within 10 s: the buffers of switches (buffer_bytes), core_gbps or \
         delays permit none of that length with this transport"
    )]
    LoneMessage {
        /// Its bytes.
        length: u32,
    },
    /// Sessions do not begin.
    #[error(
        "only {ready} of {hosts} hosts have all their sessions after a second: the buffers of switches (buffer_bytes) or delays \
         permit no handshake"
    )]
    Sessions {
        /// Hosts that have all of theirs.
        ready: usize,
        /// All hosts.
        hosts: usize,
    },
}

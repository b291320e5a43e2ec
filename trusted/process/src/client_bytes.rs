// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory for what waits for a client.

use smt_replica::IN_PROGRESS_MAX;

/// Bytes of a reply beside its answer, at most: a proof with the longest way has the most of them.
const REPLY_REST: usize = 1024;

/// Bytes that wait for a client at most, in each session in which it spoke
/// ([`smt_mesh::Place::client_bytes`]): replies to all requests of a process that may be in
/// progress, if an answer is no longer than the longest operation. A longer one has room alone.
#[must_use]
pub fn client_bytes(operation_max: usize) -> usize {
    operation_max.saturating_add(REPLY_REST).saturating_mul(IN_PROGRESS_MAX as usize)
}

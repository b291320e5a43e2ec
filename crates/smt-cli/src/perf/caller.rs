// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One caller: makes a call, waits for the reply.

use bytes::Bytes;

use crate::failure::Failure;

/// Calls the server under measurement, one call at a time.
pub(super) trait Caller: Send {
    /// Sends `request`, and gives the reply's length.
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure>;

    /// Sends `request`, and gives the reply.
    fn ask(&mut self, request: &Bytes) -> Result<Bytes, Failure>;
}

/// A server replies to this request with its CPU time so far in nanoseconds, as decimal digits.
/// Measured requests are zeros, so none of them is this.
pub(super) const CPU_QUESTION: &[u8] = b"smt-perf cpu";

/// The reply of a server of this measurement to a request; `None`: the request itself.
pub(super) fn answer(request: &[u8]) -> Option<String> {
    (request == CPU_QUESTION).then(|| super::cpu::used().as_nanos().to_string())
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies and one-way messages that C gives.

use std::slice;

use smt_transport::polled::SessionIndex;

use crate::endpoint::{EndpointForC, told};
use crate::error::{ErrorForC, Failure};
use crate::event::{RpcForC, Slice};

/// Answers a request.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed; there are `count` slices of bytes
/// that may be read; `error` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_reply(
    endpoint: *mut EndpointForC,
    rpc: RpcForC,
    slices: *const Slice,
    count: usize,
    error: *mut ErrorForC,
) -> i32 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    // SAFETY: the caller gives slices that may be read.
    let body = unsafe { joined(slices, count) };
    let outcome = endpoint.endpoint.reply(rpc.to_rpc(), body);
    // SAFETY: the caller gives memory for an error.
    unsafe { told(outcome.map_err(Failure::from), error) }
}

/// Sends a one-way message.
///
/// # Safety
/// As of [`smt_reply`]; `sent` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_send(
    endpoint: *mut EndpointForC,
    session: u64,
    slices: *const Slice,
    count: usize,
    sent: *mut RpcForC,
    error: *mut ErrorForC,
) -> i32 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    // SAFETY: the caller gives slices that may be read.
    let body = unsafe { joined(slices, count) };
    let outcome = endpoint.endpoint.send(SessionIndex(session), body);
    let name = outcome.as_ref().map_or(RpcForC::NONE, |rpc| (*rpc).into());
    // SAFETY: the caller gives memory for a name.
    unsafe { sent.write(name) };
    // SAFETY: the caller gives memory for an error.
    unsafe { told(outcome.map(|_| ()).map_err(Failure::from), error) }
}

/// Closes a session.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_session_close(endpoint: *mut EndpointForC, session: u64) {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    endpoint.clients.end(session);
    endpoint.endpoint.close(SessionIndex(session));
}

/// Closes the session of a client that would not be let in any more, and tells it so.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_session_close_distrusted(
    endpoint: *mut EndpointForC,
    session: u64,
) {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    endpoint.clients.end(session);
    endpoint.endpoint.close_distrusted(SessionIndex(session));
}

/// The bytes of all slices, copied: the memory of C may change while a message is sent again.
///
/// # Safety
/// There are `count` slices, and their bytes may be read.
unsafe fn joined(slices: *const Slice, count: usize) -> Vec<u8> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller says that there are so many.
    let slices = unsafe { slice::from_raw_parts(slices, count) };
    let length = slices.iter().map(|slice| slice.length).sum();
    let mut body = Vec::with_capacity(length);
    for part in slices {
        if part.length > 0 {
            // SAFETY: the caller says that the bytes may be read; an empty slice may be null.
            body.extend_from_slice(unsafe { slice::from_raw_parts(part.data, part.length) });
        }
    }
    body
}

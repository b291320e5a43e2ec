// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The endpoint that C holds: its descriptor, its turns, its end.

use std::os::fd::{AsFd, AsRawFd};

use smt_transport::polled::{Endpoint, Event};

use crate::clients::Clients;
use crate::error::{ErrorForC, Failure, OK};
use crate::event::Lent;
use crate::open::Credentials;
use crate::session_data::SessionData;

/// An `smt_endpoint`.
pub(crate) struct EndpointForC {
    pub(crate) endpoint: Endpoint,
    pub(crate) port: u16,
    pub(crate) lent: Lent,
    pub(crate) data: SessionData,
    pub(crate) clients: Clients,
    /// Those of today.
    pub(crate) credentials: Credentials,
}

impl EndpointForC {
    pub(crate) fn new(endpoint: Endpoint, credentials: Credentials) -> Self {
        Self {
            port: endpoint.local_address().port(),
            endpoint,
            lent: Lent::default(),
            data: SessionData::default(),
            clients: Clients::default(),
            credentials,
        }
    }

    /// Judges the clients of all live sessions by the trust of today.
    pub(crate) fn judge_clients(&mut self) {
        self.clients.judge(|client| self.endpoint.check_peer(client));
    }

    /// The next event. A client whose handshake has begun by a trust that was replaced meanwhile is
    /// refused, unless that of today lets it in.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        let event = self.endpoint.next_event()?;
        match event {
            Event::Accepted { session, path, peer } => {
                let begun =
                    self.clients.begin(session, &peer, |client| self.endpoint.check_peer(client));
                if let Err(why) = begun {
                    self.endpoint.close_distrusted(session);
                    return Some(Event::ClientRefused { path, reason: why.text.into() });
                }
                Some(Event::Accepted { session, path, peer })
            }
            Event::SessionEnded { session, .. } => {
                self.clients.end(session.0);
                Some(event)
            }
            _ => Some(event),
        }
    }
}

/// Sends what may leave, closes all sessions and frees the endpoint.
///
/// # Safety
/// `endpoint` is null, or came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_close(endpoint: *mut EndpointForC) {
    if !endpoint.is_null() {
        // SAFETY: `smt_server_open` has given the box away, and the caller gives it back once.
        drop(unsafe { Box::from_raw(endpoint) });
    }
}

/// The descriptor to poll.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_fd(endpoint: *const EndpointForC) -> i32 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &*endpoint };
    endpoint.endpoint.as_fd().as_raw_fd()
}

/// The port at which the endpoint listens.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_port(endpoint: *const EndpointForC) -> u16 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    unsafe { &*endpoint }.port
}

/// Receives all that has come and fires timers that are due.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed; `error` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_process(
    endpoint: *mut EndpointForC,
    error: *mut ErrorForC,
) -> i32 {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    let endpoint = unsafe { &mut *endpoint };
    let outcome = endpoint.endpoint.process();
    // SAFETY: the caller gives memory for an error.
    unsafe { told(outcome.map_err(|reason| Failure::system(&reason)), error) }
}

/// Holds messages back.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_cork(endpoint: *mut EndpointForC) {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    unsafe { &mut *endpoint }.endpoint.cork();
}

/// Sends the messages that were held back.
///
/// # Safety
/// `endpoint` came from `smt_server_open` and was not closed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn smt_endpoint_flush(endpoint: *mut EndpointForC) {
    // SAFETY: the caller gives a live endpoint that no other thread uses.
    unsafe { &mut *endpoint }.endpoint.flush();
}

/// The code of an outcome, whose error is written.
///
/// # Safety
/// `error` is null or may be written.
pub(crate) unsafe fn told(outcome: Result<(), Failure>, error: *mut ErrorForC) -> i32 {
    let Err(failure) = outcome else {
        return OK;
    };
    if !error.is_null() {
        // SAFETY: the caller gives memory for an error, which need not hold one yet.
        unsafe { error.write(failure.for_c()) };
    }
    failure.code
}

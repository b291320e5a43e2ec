// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Polled endpoints in event loops of the tests' own, so that they can be called like the others.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use smt::polled::{Endpoint, Event, RpcId, SessionIndex};
use smt::{Bytes, CallError};
use smt_io::{Epoll, Token};

/// A client that calls by turning its own event loop.
pub(crate) struct PolledClient {
    pub(crate) endpoint: Endpoint,
    pub(crate) session: SessionIndex,
    epoll: Epoll,
    done: HashMap<RpcId, Result<Bytes, CallError>>,
}

impl PolledClient {
    /// Connects; panics if that fails.
    pub(crate) fn new(mut endpoint: Endpoint, server: std::net::SocketAddr) -> Self {
        let epoll = watch(&endpoint);
        endpoint.connect(server, "localhost", Duration::from_secs(5)).unwrap();
        let session = loop {
            match endpoint.next_event() {
                None => turn(&mut endpoint, &epoll),
                Some(Event::Connected { session, .. }) => break session,
                Some(other) => panic!("{other:?}"),
            }
        };
        // Events are not drained to their end: from here on commands leave at once.
        endpoint.flush();
        Self { endpoint, session, epoll, done: HashMap::new() }
    }

    /// Begins a call, waiting while the window is full.
    pub(crate) fn start_call(
        &mut self,
        body: impl Into<Bytes>,
        deadline: Option<Duration>,
    ) -> RpcId {
        let body = body.into();
        loop {
            match self.endpoint.call(self.session, body.clone(), deadline) {
                Ok(rpc) => return rpc,
                Err(smt::Refused::Blocked) => self.turn(),
                Err(refused) => panic!("{refused}"),
            }
        }
    }

    /// Waits for the end of a call.
    pub(crate) fn finish(&mut self, rpc: RpcId) -> Result<Bytes, CallError> {
        loop {
            if let Some(result) = self.done.remove(&rpc) {
                return result;
            }
            self.turn();
        }
    }

    pub(crate) fn call(&mut self, body: impl Into<Bytes>) -> Result<Bytes, CallError> {
        let rpc = self.start_call(body, None);
        self.finish(rpc)
    }

    fn turn(&mut self) {
        turn(&mut self.endpoint, &self.epoll);
        while let Some(event) = self.endpoint.next_event() {
            match event {
                Event::Reply { rpc, body, .. } => self.done.insert(rpc, Ok(body)),
                Event::CallFailed { rpc, error } => self.done.insert(rpc, Err(error)),
                _ => None,
            };
        }
    }
}

/// A polled server in a thread, until it is told to stop.
pub(crate) struct PolledServer {
    pub(crate) address: std::net::SocketAddr,
    is_stopped: Arc<AtomicBool>,
}

impl PolledServer {
    pub(crate) fn echoing(mut endpoint: Endpoint) -> Self {
        let address = endpoint.local_address();
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_stopped);
        std::thread::spawn(move || {
            let epoll = watch(&endpoint);
            while !stop.load(Ordering::Relaxed) {
                while let Some(event) = endpoint.next_event() {
                    if let Event::Request { rpc, body, .. } = event {
                        let _ = endpoint.reply(rpc, body);
                    }
                }
                turn(&mut endpoint, &epoll);
            }
        });
        Self { address, is_stopped }
    }
}

impl Drop for PolledServer {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// An event loop that watches one endpoint.
pub(crate) fn watch(endpoint: &Endpoint) -> Epoll {
    let epoll = Epoll::new().unwrap();
    epoll.add(endpoint.as_fd(), Token(0)).unwrap();
    epoll
}

/// One turn of an event loop: waits until the endpoint wants one, a second at most.
pub(crate) fn turn(endpoint: &mut Endpoint, epoll: &Epoll) {
    let mut ready = [Token(0); 1];
    let count = epoll.wait(&mut ready, Some(Duration::from_secs(1))).unwrap();
    if count > 0 {
        endpoint.process().unwrap();
    }
}

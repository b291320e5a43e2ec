// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server's application: it answers at once.

use bytes::Bytes;
use smt_proto::{Endpoint, Event, Time};
use smt_sim::net::Application;

pub(crate) struct Server;

impl Application for Server {
    fn handle(&mut self, now: Time, event: Event, endpoint: &mut Endpoint) {
        if let Event::Request { rpc, .. } = event {
            // Its caller may have given up.
            let _ = endpoint.reply(now, rpc, Bytes::from_static(b"reply"));
        }
    }

    fn handle_timeout(&mut self, _now: Time, _endpoint: &mut Endpoint) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }
}

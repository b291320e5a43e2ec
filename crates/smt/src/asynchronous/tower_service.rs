// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client as a service of tower, so that its layers (limits, retries, balancing) serve SMT too.

use std::task::{Context, Poll};

use smt_proto::OutgoingMessage;
use tower_service::Service;

use super::call::ReplyFuture;
use super::client::Client;
use crate::error::Error;
use crate::reply::Reply;

/// A request is anything that is a message. The service is ready when a call would begin at once
/// ([`Client::ready`]); that reserves nothing, so a call may wait nevertheless.
///
/// The service gives the whole [`Reply`]. `client.call(message)` on a client without layers is the
/// client's own method ([`Client::call`]), whose future gives the body alone. The type of message
/// has to be told where it does not follow from a call: `ServiceExt::<&str>::ready(&mut service)`.
impl<M: Into<OutgoingMessage>> Service<M> for Client {
    type Response = Reply;
    type Error = Error;
    type Future = ReplyFuture;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Self::poll_ready(self, context)
    }

    fn call(&mut self, message: M) -> ReplyFuture {
        Self::call(self, message).reply()
    }
}

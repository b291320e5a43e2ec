// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One-way messages of servers, on their way from a socket to the connection that they are for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use smt::{Message, Session};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;

/// The ways from a socket to its connections, by session.
#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<HashMap<u64, Route>>);

#[derive(Debug)]
struct Route {
    session: Session,
    sender: mpsc::Sender<Bytes>,
    why: Arc<OnceLock<String>>,
    /// The other end, until the connection takes it: a server may speak first.
    unclaimed: Option<Pushes>,
}

/// The one-way messages of one connection.
#[derive(Debug)]
pub(crate) struct Pushes {
    receiver: mpsc::Receiver<Bytes>,
    /// Why no further ones come.
    why: Arc<OnceLock<String>>,
}

impl Pushes {
    /// The next message; an error when no further ones come.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, String>> {
        let next = ready!(self.receiver.poll_recv(context));
        let ended = || self.why().unwrap_or("peer: the session has ended");
        Poll::Ready(next.ok_or_else(|| ended().to_owned()))
    }

    /// Why no further messages come, if that is known here.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }
}

impl Route {
    fn new(session: Session) -> Self {
        let (sender, receiver) = mpsc::channel(PUSHES_MAX);
        let why = Arc::new(OnceLock::new());
        let unclaimed = Some(Pushes { receiver, why: Arc::clone(&why) });
        Self { session, sender, why, unclaimed }
    }
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Route>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The messages of a session, those too that have come already. A session is claimed once.
    pub(crate) fn claim(&self, session: &Session) -> Pushes {
        let mut routes = self.lock();
        let route = routes.entry(session.id()).or_insert_with(|| Route::new(session.clone()));
        let claimed = route.unclaimed.take();
        claimed.expect("a session has one connection")
    }

    /// Forgets a session whose connection has gone.
    pub(crate) fn forget(&self, session: &Session) {
        self.lock().remove(&session.id());
    }

    /// Ends a session's messages, for this reason.
    pub(crate) fn end(&self, session: &Session, why: String) {
        if let Some(route) = self.lock().remove(&session.id()) {
            let _ = route.why.set(why);
        }
    }

    /// The sessions that have connections.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        let routes = self.lock();
        let claimed = routes.values().filter(|route| route.unclaimed.is_none());
        claimed.map(|route| route.session.clone()).collect()
    }

    /// Hands a message over to its connection, and waits for room there, at most for so long: then
    /// the connection ends.
    pub(crate) async fn deliver(&self, message: Message, stall_max: Option<Duration>) {
        let Some(sender) = self.sender(message.session()) else {
            return;
        };
        let session = message.session().clone();
        let body = message.into_body();
        let Some(limit) = stall_max else {
            // A connection that has gone wants none.
            let _ = sender.send(body).await;
            return;
        };
        if let Err(SendTimeoutError::Timeout(_)) = sender.send_timeout(body, limit).await {
            let why = format!(
                "limit: nobody has read for {} s, and other connections of the same socket wait; \
                 give a reader that takes its time a socket of its own",
                limit.as_secs()
            );
            self.end(&session, why);
            session.close();
        }
    }

    /// The way to a session's connection, which may not have claimed it yet; none, if the session
    /// has ended.
    fn sender(&self, session: &Session) -> Option<mpsc::Sender<Bytes>> {
        let mut routes = self.lock();
        if let Some(route) = routes.get(&session.id()) {
            return Some(route.sender.clone());
        }
        session.facts()?;
        // Those that nobody has claimed, and nobody will.
        routes.retain(|_, route| route.unclaimed.is_none() || route.session.facts().is_some());
        let route = Route::new(session.clone());
        let sender = route.sender.clone();
        routes.insert(session.id(), route);
        Some(sender)
    }
}

/// Messages between the task that takes them from the socket and the reader of a connection.
const PUSHES_MAX: usize = 16;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How an endpoint ends: its sessions close, its waiters learn of it, and its socket goes, whether
//! handles live or not.

use std::sync::Arc;
#[cfg(feature = "async")]
use std::task::{Poll, Waker};
use std::time::Duration;

use smt_io::UdpCarrier;
use smt_proto::{CloseCode, ConnectError, Time};

use super::EndpointState;

/// The uses of the socket besides carrying.
pub(super) enum Socket {
    /// The carrier is of another kind.
    None,
    Open(Arc<UdpCarrier>),
    /// The counts of the socket when it was closed.
    Closed(smt_io::Statistics),
}

impl Socket {
    pub(super) fn of(udp: Option<Arc<UdpCarrier>>) -> Self {
        udp.map_or(Self::None, Self::Open)
    }
}

/// Wakers that wait until the task that drives an endpoint has let go of its socket.
#[cfg(feature = "async")]
#[derive(Default)]
pub(super) struct Releases {
    is_released: bool,
    waiting: Vec<Waker>,
}

/// All sessions are to close, behind what was given before.
pub(super) struct Closing {
    code: CloseCode,
    /// A socket that has no room until then gets no more.
    until: Time,
}

impl EndpointState {
    /// No more messages will come: all acceptors that wait for one are woken.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        // The leader that would take the cork out may be gone.
        self.cork.take_out();
        self.woken.extend(self.acceptors.leave_all());
    }

    /// All sessions close, behind what was given before and may leave: a reply, for example. While
    /// the socket has no room for it they wait, until [`EndpointState::has_closed`]; whoever closes
    /// them looks after that.
    pub(crate) fn close_sessions(&mut self, now: Time, code: CloseCode) {
        self.cork.take_out();
        self.closing.get_or_insert(Closing { code, until: now + SENT_WITHIN });
    }

    /// Closes the sessions that are to close, as soon as all that goes before has left or it is too
    /// late for it. Whether there may be something to send now.
    pub(super) fn close_behind_the_rest(&mut self, now: Time) -> bool {
        let has_left = self.outbox.is_idle();
        let closing = self.closing.as_ref();
        let Some(closing) = closing.filter(|closing| has_left || closing.until <= now) else {
            return false;
        };
        self.endpoint.close_all(closing.code);
        true
    }

    /// Whether nothing of the sessions that close is left to be sent, or it is too late for it.
    pub(crate) fn has_closed(&self, now: Time) -> bool {
        let is_late = |closing: &Closing| closing.until <= now;
        let has_left = self.outbox.is_idle() && self.endpoint.sessions_len() == 0;
        has_left || self.closing.as_ref().is_none_or(is_late)
    }

    /// The endpoint is shut down: its handles are of no use any more.
    pub(crate) fn shut_down(&mut self, now: Time, code: CloseCode) {
        self.close_sessions(now, code);
        self.leave(ConnectError::ShutDown);
    }

    /// Ends an endpoint whose driver is gone: its waiters would wait for ever.
    #[cfg(feature = "async")]
    pub(crate) fn abandon(&mut self, now: Time) {
        self.close_sessions(now, CloseCode::Done);
        self.leave(ConnectError::Undriven);
    }

    /// The task that drove has let go of the socket.
    #[cfg(feature = "async")]
    pub(crate) fn tell_released(&mut self) {
        self.releases.is_released = true;
        self.woken.append(&mut self.releases.waiting);
    }

    /// This process is a copy of the one that opened the endpoint: here all ends, and nothing is
    /// sent of it.
    pub(crate) fn leave_to_original(&mut self) {
        if self.is_left == Some(ConnectError::Copied) {
            return;
        }
        self.outbox.forget_unsent();
        self.is_left = None;
        self.leave(ConnectError::Copied);
        self.endpoint.leave_to_original();
    }

    /// Why no call can be made any more, if that is so.
    pub(crate) fn why_left(&self) -> Option<ConnectError> {
        self.is_left.clone()
    }

    /// The same, if it is for good and by the owner's wish.
    pub(crate) fn why_shut_down(&self) -> Option<ConnectError> {
        self.why_left().filter(|why| *why == ConnectError::ShutDown)
    }

    /// Ready when the task that drives has let go of the socket.
    #[cfg(feature = "async")]
    pub(crate) fn poll_released(&mut self, waker: &Waker) -> Poll<()> {
        if self.releases.is_released {
            return Poll::Ready(());
        }
        let waiting = &mut self.releases.waiting;
        if waiting.iter().all(|other| !other.will_wake(waker)) {
            waiting.push(waker.clone());
        }
        Poll::Pending
    }

    /// Whether it was closed and nothing is left to be done for it.
    #[cfg(feature = "async")]
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.is_closed && self.has_closed(now)
    }

    /// Lets go of what carries and of the state file: nothing is sent any more. Returns the socket,
    /// in which a thread may still receive.
    pub(crate) fn release(&mut self) -> Option<Arc<UdpCarrier>> {
        self.outbox.close();
        self.state_lock = None;
        let counts = self.socket_statistics()?;
        match std::mem::replace(&mut self.socket, Socket::Closed(counts)) {
            Socket::Open(udp) => Some(udp),
            Socket::None | Socket::Closed(_) => None,
        }
    }

    /// Returns the socket's counts; `None` over a carrier of another kind.
    pub(crate) fn socket_statistics(&self) -> Option<smt_io::Statistics> {
        match &self.socket {
            Socket::None => None,
            Socket::Open(udp) => Some(udp.statistics()),
            Socket::Closed(counts) => Some(*counts),
        }
    }

    fn leave(&mut self, why: ConnectError) {
        self.is_left.get_or_insert(why);
        self.peer_log.finish();
        self.close();
        self.tell_all_cancelled();
        self.servers.wake_all();
        self.woken.append(&mut self.servers.take_woken());
    }
}

/// The time that a full socket has to take the rest when sessions close.
pub(crate) const SENT_WITHIN: Duration = Duration::from_millis(100);

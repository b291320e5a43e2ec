// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of a node's frames to one other member.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smt::blocking::Client;
use smt::{Bytes, Session};
use smt_attestation::{DeviceId, StreamId};
use smt_device_client::{Device, DeviceError};

use crate::identity::{Binding, End, Identity, Peer, exporter};
use crate::wire::{self, Told};

/// Frames on their way to a member.
const FRAMES_MAX: usize = 256;
/// How long a member may take for a frame.
const DEADLINE: Duration = Duration::from_secs(5);
/// The pause after a frame that was not taken.
const PAUSE: Duration = Duration::from_millis(50);

/// Why a member has not taken a frame yet. It is sent again until it is taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// SMT.
    #[error("the network, or the member's host: no frame gets there")]
    Network(#[from] smt::Error),
    /// The member's host has not proved the device.
    #[error("the member's host: it has not proved that it has device {}", .0.device.0)]
    NotPeer(Peer),
    /// The member does not know this node's device.
    #[error("the member's host: it does not take this device, or knows another key of it")]
    NotKnown,
    /// The member does not take a frame yet.
    #[error("the member has no room for the frame, or waits for an earlier one")]
    Later,
    /// The member's device refuses it.
    #[error("the member's device refuses the frame: has it opened the group, in these epochs?")]
    Refused,
    /// The reply is none.
    #[error("the member's host: its reply is none of this protocol")]
    Protocol,
    /// This node's own device.
    #[error("this node's device gives no proof")]
    Device(#[from] DeviceError),
}

/// A flag that threads wait for.
#[derive(Debug, Default)]
pub(crate) struct Closed(Mutex<bool>, Condvar);

impl Closed {
    pub(crate) fn set(&self) {
        *lock(&self.0) = true;
        self.1.notify_all();
    }

    /// Whether it is set, at once or within a time.
    fn within(&self, limit: Duration) -> bool {
        let waited = self.1.wait_timeout_while(lock(&self.0), limit, |closed| !*closed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The facts that all sessions of a node share.
pub(crate) struct Own<I> {
    pub(crate) identity: Mutex<Identity<I>>,
    /// The device of the identity.
    pub(crate) device: DeviceId,
    pub(crate) group: StreamId,
    pub(crate) closed: Closed,
}

impl<I: Device> Own<I> {
    /// The statement that this node's device signs for a session with a peer.
    pub(crate) fn binding(&self, exporter: [u8; 32], end: End, peer: &Peer) -> Binding {
        Binding { exporter, group: self.group, end, own: self.device, other: peer.device }
    }
}

/// The link to a member, from the node's side.
pub(crate) struct Link {
    pub(crate) peer: Peer,
    frames: SyncSender<Bytes>,
    /// A frame that found the queue full.
    waiting: Option<Bytes>,
    last: Arc<Mutex<Option<LinkError>>>,
    is_cut: Arc<AtomicBool>,
}

impl Link {
    /// Starts a thread that takes frames to a member, until the link is cut or the node has gone.
    pub(crate) fn start<I: Device + Send + 'static>(
        own: Arc<Own<I>>,
        peer: Peer,
        client: Client,
    ) -> Self {
        let (frames, queue) = sync_channel(FRAMES_MAX);
        let last = Arc::new(Mutex::new(None));
        let is_cut = Arc::new(AtomicBool::new(false));
        let (of_thread, cut) = (last.clone(), is_cut.clone());
        let sending = Sending { own, peer, client, bound: None, last: of_thread, is_cut: cut };
        std::thread::spawn(move || sending.run(&queue));
        Self { peer, frames, waiting: None, last, is_cut }
    }

    /// Lets no further frame leave, also of those that wait.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Whether it has taken all frames that it was given.
    pub(crate) fn has_room(&mut self) -> bool {
        match self.waiting.take() {
            Some(frame) => self.give(frame),
            None => true,
        }
    }

    /// Gives it a frame. False if that one waits here.
    pub(crate) fn give(&mut self, frame: Bytes) -> bool {
        self.waiting = match self.frames.try_send(frame) {
            Ok(()) => None,
            Err(TrySendError::Full(frame) | TrySendError::Disconnected(frame)) => Some(frame),
        };
        self.waiting.is_none()
    }

    /// Why the last frame was not taken, if it was not.
    pub(crate) fn trouble(&self) -> Option<String> {
        lock(&self.last).as_ref().map(|error| {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            text
        })
    }
}

/// The thread of a link.
struct Sending<I> {
    own: Arc<Own<I>>,
    peer: Peer,
    client: Client,
    /// The session whose other end has proved the peer's device.
    bound: Option<Session>,
    last: Arc<Mutex<Option<LinkError>>>,
    is_cut: Arc<AtomicBool>,
}

impl<I: Device> Sending<I> {
    fn run(mut self, frames: &Receiver<Bytes>) {
        while let Ok(frame) = frames.recv() {
            let request = Bytes::from(wire::frame(&frame));
            loop {
                if self.is_cut.load(Ordering::Relaxed) {
                    return;
                }
                let Err(error) = self.deliver(&request) else {
                    break;
                };
                *lock(&self.last) = Some(error);
                if self.own.closed.within(PAUSE) {
                    return;
                }
            }
            *lock(&self.last) = None;
        }
    }

    /// Has the member take a frame, which is sent over no session but a bound one.
    fn deliver(&mut self, request: &Bytes) -> Result<(), LinkError> {
        let session = match self.bound.take() {
            Some(session) => session,
            None => self.bind()?,
        };
        // After an error the session is not used again: the next one proves its end anew.
        let reply = session.call_blocking(request.clone()).deadline(DEADLINE).wait()?;
        let told = Told::decode(&reply).ok_or(LinkError::Protocol)?;
        if told == Told::NotBound {
            return Err(LinkError::NotKnown);
        }
        self.bound = Some(session);
        match told {
            Told::Taken => Ok(()),
            Told::Later => Err(LinkError::Later),
            Told::Refused | Told::NotBound => Err(LinkError::Refused),
        }
    }

    /// A session at whose ends both devices are.
    fn bind(&self) -> Result<Session, LinkError> {
        let session = self.client.connect()?;
        let exporter = exporter(&session)?;
        let ours = self.own.binding(exporter, End::Client, &self.peer);
        let proof = lock(&self.own.identity).prove(&ours)?;
        let reply = session.call_blocking(wire::bind(&proof)).deadline(DEADLINE).wait()?;
        let theirs = Binding { end: End::Server, own: ours.other, other: ours.own, ..ours };
        let Some(proof) = wire::proof_of(&reply) else {
            return Err(LinkError::NotKnown);
        };
        match proof.verify(&self.peer, &theirs) {
            Some(_) => Ok(session),
            None => Err(LinkError::NotPeer(self.peer)),
        }
    }
}

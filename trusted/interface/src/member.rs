// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A node whose frames travel over SMT.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use smt::Bytes;
use smt::blocking::{Client, Server};
use smt_attestation::{DeviceId, Refusal};
use smt_device_client::{Device, DeviceError};

use crate::completion::Completion;
use crate::identity::{Identity, Peer};
use crate::link::{Closed, Link, Own};
use crate::listening::{Arrived, Listening};
use crate::node::{InterfaceError, Node};
use crate::wire::Told;

/// Frames that have come and that nobody has polled for.
const ARRIVED_MAX: usize = 64;
/// How soon a link that had no room is asked again.
const ROOM_PAUSE: Duration = Duration::from_millis(5);
/// How long requests in progress may take when a member goes.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// A [`Node`] with its sessions. Each session is bound to the devices at both ends before a frame
/// travels in it, and a frame is taken from the session of its own device alone.
///
/// A frame is sent again, over a new session too, until the other member has it: its device has
/// taken it, or its node keeps it until the frames before it are there. No frame leaves before all
/// peers are linked, since each needs all frames. A member that takes nothing holds all others up
/// when the queues are full ([`InterfaceError::Backlog`]): [`Member::unlink`] goes on without it.
pub struct Member<D, I> {
    node: Node<D>,
    own: Arc<Own<I>>,
    server: Server,
    peers: Vec<Peer>,
    links: Vec<Link>,
    /// Peers that were unlinked.
    left: Vec<DeviceId>,
    arrived: Receiver<Arrived>,
}

impl<D: Device, I: Device + Send + 'static> Member<D, I> {
    /// Takes frames of these peers by an SMT server.
    ///
    /// # Errors
    /// [`InterfaceError::NotMember`] for a peer that is none, or if the identity is that of another
    /// device than the node's; [`InterfaceError::Missing`] if the peers lack a member.
    pub fn listen(
        node: Node<D>,
        identity: Identity<I>,
        server: Server,
        peers: Vec<Peer>,
    ) -> Result<Self, InterfaceError> {
        let is_other = |peer: &&Peer| !node.is_peer(peer.device);
        let stranger = peers.iter().find(is_other).map(|peer| peer.device);
        let wrong = Some(identity.device()).filter(|it| *it != node.device());
        if let Some(device) = stranger.or(wrong) {
            return Err(InterfaceError::NotMember(device));
        }
        let is_known = |it: &DeviceId| peers.iter().any(|peer| peer.device == *it);
        let mut members = node.members().iter().copied().filter(|it| node.is_peer(*it));
        if let Some(missing) = members.find(|it| !is_known(it)) {
            return Err(InterfaceError::Missing(missing));
        }
        let (device, group) = (identity.device(), node.stream());
        let identity = Mutex::new(identity);
        let own = Arc::new(Own { identity, device, group, closed: Closed::default() });
        let (sender, arrived) = sync_channel(ARRIVED_MAX);
        let listening = Listening {
            own: own.clone(),
            server: server.clone(),
            peers: peers.clone(),
            arrived: sender,
        };
        std::thread::spawn(move || listening.run());
        let (links, left) = (Vec::new(), Vec::new());
        Ok(Self { node, own, server, peers, links, left, arrived })
    }

    /// Sends this node's frames to a peer by an SMT client of its server, from the next one on.
    ///
    /// # Errors
    /// [`InterfaceError::NotMember`] if it is no peer, or linked already.
    pub fn link(&mut self, peer: DeviceId, client: Client) -> Result<(), InterfaceError> {
        let is_linked = self.links.iter().any(|link| link.peer.device == peer);
        let known = self.peers.iter().find(|it| it.device == peer).filter(|_| !is_linked);
        let known = known.ok_or(InterfaceError::NotMember(peer))?;
        self.left.retain(|it| *it != peer);
        self.links.push(Link::start(self.own.clone(), *known, client));
        Ok(())
    }

    /// Sends a peer no more frames. It needs a new epoch, and the state of others, to come back.
    pub fn unlink(&mut self, peer: DeviceId) {
        let Some(at) = self.links.iter().position(|link| link.peer.device == peer) else {
            return;
        };
        self.links.remove(at).cut();
        self.left.push(peer);
    }

    /// The node, for operations. Their frames leave with the next [`Member::poll`].
    pub fn node(&mut self) -> &mut Node<D> {
        &mut self.node
    }

    /// The peers that have not taken a frame yet, and why.
    #[must_use]
    pub fn troubles(&self) -> Vec<(DeviceId, String)> {
        let trouble = |link: &Link| Some((link.peer.device, link.trouble()?));
        self.links.iter().filter_map(trouble).collect()
    }

    /// Sends what is to be sent, and waits for the next completion until the limit has passed.
    ///
    /// # Errors
    /// [`InterfaceError::Malformed`] if a peer's device attested what no correct node sends;
    /// [`InterfaceError::Device`] if this node's device is gone; [`InterfaceError::Closed`].
    pub fn poll(&mut self, limit: Duration) -> Result<Option<Completion>, InterfaceError> {
        let deadline = Instant::now() + limit;
        loop {
            let has_sent = self.flush();
            if let Some(completion) = self.node.poll() {
                return Ok(Some(completion));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let pause = if has_sent { left } else { left.min(ROOM_PAUSE) };
            match self.arrived.recv_timeout(pause) {
                Ok(arrived) => self.take(arrived)?,
                Err(RecvTimeoutError::Timeout) if left > pause => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(InterfaceError::Closed),
            }
        }
    }

    /// Gives frames to all links, in their order. False if some wait for room.
    fn flush(&mut self) -> bool {
        if self.links.len() + self.left.len() < self.peers.len() {
            return true;
        }
        loop {
            // Each link is asked: what waits there may leave.
            let full = self.links.iter_mut().filter_map(|link| (!link.has_room()).then_some(()));
            if full.count() > 0 {
                return false;
            }
            let Some(frame) = self.node.next_frame().map(Bytes::from) else {
                return true;
            };
            for link in &mut self.links {
                link.give(frame.clone());
            }
        }
    }

    fn take(&mut self, arrived: Arrived) -> Result<(), InterfaceError> {
        let result = self.node.receive(arrived.frame());
        let told = match &result {
            Ok(()) | Err(InterfaceError::Malformed(_)) => Told::Taken,
            Err(
                InterfaceError::TooEarly
                | InterfaceError::Backlog
                | InterfaceError::Unpolled
                | InterfaceError::Device(DeviceError::Refused(Refusal::NotSynchronized)),
            ) => Told::Later,
            Err(InterfaceError::Device(DeviceError::Refused(_)) | InterfaceError::NoFrame) => {
                Told::Refused
            }
            // Without an answer the request fails, and its sender learns that it did.
            Err(_) => return result,
        };
        arrived.answer(told);
        if matches!(result, Err(InterfaceError::Malformed(_))) { result } else { Ok(()) }
    }
}

impl<D, I> Drop for Member<D, I> {
    fn drop(&mut self) {
        self.own.closed.set();
        self.links.clear();
        self.server.close(CLOSE_LIMIT);
    }
}

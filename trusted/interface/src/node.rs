// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A member of a group.

mod readmission;

use std::collections::{BTreeMap, VecDeque};

use smt_attestation::{DeviceId, Epoch, Group, Header, Kind, Refusal, StreamId};
use smt_device_client::{Device, DeviceError, MESSAGE_LEN_MAX, SecretNumber};

use crate::completion::{Completion, Outcome, Ticket};
use crate::memory::{Access, Denied, Memory, RegionKey};
use crate::operation::{Action, Attested, Operation};

/// Frames of one member that came before earlier ones, and wait for them.
const EARLY_MAX: u64 = 64;
/// Reads and writes without an answer.
const PENDING_MAX: usize = 1024;
/// Frames that nobody has taken to the other members yet.
const OUTGOING_MAX: usize = 1024;
/// Completions that nobody has polled for.
const COMPLETIONS_MAX: usize = 4096;
/// The longest read and write, whose frame fits the rings of a device.
const PIECE_MAX: usize = MESSAGE_LEN_MAX / 2;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// The device refuses, or is gone.
    #[error("the device does not do it")]
    Device(#[from] DeviceError),
    /// The frame is none, though attested: its sender does not keep to the protocol.
    #[error("the frame of device {} is none", .0.0)]
    Malformed(DeviceId),
    /// The bytes have no attestation.
    #[error("the bytes are no frame")]
    NoFrame,
    /// The frame is too far ahead of what is missing. Its sender sends it again.
    #[error("too many frames are missing before this one")]
    TooEarly,
    /// The other members do not take this node's frames, which wait.
    #[error("1,024 frames have not left this node yet: are the other members reachable?")]
    Backlog,
    /// The user does not poll.
    #[error("4,096 completions wait: poll first")]
    Unpolled,
    /// More than a frame has.
    #[error("{0} bytes are more than one read or write has: divide it")]
    TooLong(u64),
    /// Too many reads and writes have no answer.
    #[error("1,024 reads and writes have no answer yet: poll first")]
    Pending,
    /// A member of the group is missing among the peers.
    #[error("device {} is missing among the peers: each member takes all frames", .0.0)]
    Missing(DeviceId),
    /// The server was closed.
    #[error("the member is closed")]
    Closed,
    /// The device is no member.
    #[error("device {} is no member of the group", .0.0)]
    NotMember(DeviceId),
}

/// When a frame is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Taken {
    Now,
    Before,
    Later,
}

/// A member of a group, with the memory that it lets others use.
pub struct Node<D> {
    device: D,
    stream: StreamId,
    members: Vec<DeviceId>,
    memory: Memory,
    outgoing: VecDeque<Attested>,
    completions: VecDeque<Completion>,
    /// Authentic frames that wait for earlier ones.
    early: BTreeMap<(DeviceId, u64), Attested>,
    /// Reads and writes that this node began.
    pending: BTreeMap<Ticket, Asked>,
    /// Those that were told as lost, at most [`PENDING_MAX`], with the epoch of the member that
    /// may answer them still.
    lost: BTreeMap<Ticket, (Asked, Epoch)>,
    next: u64,
}

/// A read or a write, and the member that answers it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Asked {
    of: DeviceId,
    is_read: bool,
}

impl<D: Device> Node<D> {
    /// Joins a group: the device opens its stream.
    ///
    /// # Errors
    /// [`InterfaceError::Device`].
    pub fn connect(
        mut device: D,
        secret: SecretNumber,
        group: &Group<'_>,
    ) -> Result<Self, InterfaceError> {
        device.open(secret, group)?;
        Ok(Self {
            device,
            stream: group.stream,
            members: group.members.iter().map(|member| member.device).collect(),
            memory: Memory::default(),
            outgoing: VecDeque::new(),
            completions: VecDeque::new(),
            early: BTreeMap::new(),
            pending: BTreeMap::new(),
            lost: BTreeMap::new(),
            next: 0,
        })
    }

    /// The device of this node.
    #[must_use]
    pub fn device(&self) -> DeviceId {
        self.device.own().device
    }

    /// The stream of the group.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The devices of all members, this node's too.
    #[must_use]
    pub fn members(&self) -> &[DeviceId] {
        &self.members
    }

    /// Registers memory that some members may use. They learn of it by [`Node::announce`].
    pub fn register(&mut self, bytes: Vec<u8>, access: Access) -> RegionKey {
        self.memory.register(bytes, access)
    }

    /// Takes registered memory back.
    pub fn deregister(&mut self, key: RegionKey) -> Option<Vec<u8>> {
        self.memory.remove(key)
    }

    /// Registered memory as it is now.
    #[must_use]
    pub fn registered(&self, key: RegionKey) -> Option<&[u8]> {
        self.memory.bytes(key)
    }

    /// Tells all members which memory there is.
    ///
    /// # Errors
    /// [`InterfaceError::Device`].
    pub fn announce(&mut self) -> Result<(), InterfaceError> {
        self.may_post()?;
        let regions = self.memory.announced();
        self.post(None, Action::Announce(regions))
    }

    /// Attests a message that goes nowhere by itself. Its counter is spent: all members must get it
    /// some day, as a frame ([`Attested::encode`]).
    ///
    /// # Errors
    /// [`InterfaceError::Device`].
    pub fn attest(&mut self, message: &[u8]) -> Result<Attested, InterfaceError> {
        let attestation = self.device.attest(self.stream, message)?;
        Ok(Attested { attestation, message: message.to_vec() })
    }

    /// Whether a member's device has attested a message, wherever it comes from. Changes nothing.
    ///
    /// # Errors
    /// [`InterfaceError::Device`].
    pub fn verify(&self, attested: &Attested) -> Result<Header, InterfaceError> {
        Ok(self.device.check(self.stream, &attested.attestation, &attested.message)?)
    }

    /// Sends a message to one member. The hosts of all others get its frame too: nothing is hidden
    /// from them.
    ///
    /// # Errors
    /// [`InterfaceError::NotMember`], [`InterfaceError::Device`].
    pub fn send(&mut self, to: DeviceId, message: &[u8]) -> Result<(), InterfaceError> {
        self.is_member(to)?;
        self.may_post()?;
        self.post(Some(to), Action::Message(message.to_vec()))
    }

    /// Sends a message to all members. The device cannot tell any of them another one.
    ///
    /// # Errors
    /// [`InterfaceError::Device`].
    pub fn multicast(&mut self, message: &[u8]) -> Result<(), InterfaceError> {
        self.may_post()?;
        self.post(None, Action::Message(message.to_vec()))
    }

    /// Reads a member's memory. The bytes come as a completion.
    ///
    /// # Errors
    /// [`InterfaceError::NotMember`], [`InterfaceError::Pending`], [`InterfaceError::Device`].
    pub fn read(
        &mut self,
        from: DeviceId,
        (key, offset): (RegionKey, u64),
        length: u64,
    ) -> Result<Ticket, InterfaceError> {
        if length > PIECE_MAX as u64 {
            return Err(InterfaceError::TooLong(length));
        }
        let ticket = self.begin(from, true)?;
        self.post(Some(from), Action::Read { ticket: ticket.0, key, offset, length })?;
        Ok(ticket)
    }

    /// Writes into a member's memory.
    ///
    /// # Errors
    /// Those of [`Node::read`].
    pub fn write(
        &mut self,
        to: DeviceId,
        (key, offset): (RegionKey, u64),
        bytes: &[u8],
    ) -> Result<Ticket, InterfaceError> {
        if bytes.len() > PIECE_MAX {
            return Err(InterfaceError::TooLong(bytes.len() as u64));
        }
        let ticket = self.begin(to, false)?;
        let bytes = bytes.to_vec();
        self.post(Some(to), Action::Write { ticket: ticket.0, key, offset, bytes })?;
        Ok(ticket)
    }

    /// The next frame that goes to all other members, in this order or any other.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        self.outgoing.pop_front().map(|attested| attested.encode())
    }

    /// The next completion: its frame was verified and taken in its place.
    pub fn poll(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// Takes a frame of another member. One that comes again is ignored, and one that comes early
    /// waits.
    ///
    /// # Errors
    /// [`InterfaceError::Malformed`] for one that the device took, though its content is none: the
    /// sender is no correct node. With any other error nothing has changed, and the frame may come
    /// again: [`InterfaceError::Device`] if it is not authentic, [`InterfaceError::NoFrame`],
    /// [`InterfaceError::TooEarly`], [`InterfaceError::Backlog`], [`InterfaceError::Unpolled`].
    pub fn receive(&mut self, frame: &[u8]) -> Result<(), InterfaceError> {
        let attested = Attested::decode(frame).ok_or(InterfaceError::NoFrame)?;
        let from = attested.attestation.claim().ok_or(InterfaceError::NoFrame)?.device;
        // All that wait for this frame are taken with it: their sender sends none of them again.
        let waiting = self.early.range((from, 0)..=(from, u64::MAX)).count();
        self.has_room(1 + waiting)?;
        let mut malformed = Ok(());
        match self.accept(attested) {
            Ok(Taken::Now) => {}
            Err(error @ InterfaceError::Malformed(_)) => malformed = Err(error),
            Ok(_) => return Ok(()),
            Err(error) => return Err(error),
        }
        // Frames that waited for this one follow it, also if it was none.
        while let Some(attested) = self.first_early(from).and_then(|it| self.early.remove(&it)) {
            match self.accept(attested) {
                Ok(Taken::Later) => break,
                // The sender has a new epoch since, and what waited is of the old one.
                Err(InterfaceError::Device(DeviceError::Refused(_))) | Ok(_) => {}
                Err(error @ InterfaceError::Malformed(_)) => malformed = Err(error),
                Err(error) => return Err(error),
            }
        }
        malformed
    }

    /// Each frame may cause one completion and one frame of this node's own: an answer. A peer has
    /// at most [`PENDING_MAX`] requests without one, so a node with a backlog of its user's still
    /// takes frames, and two such nodes do not wait for each other.
    fn has_room(&self, frames: usize) -> Result<(), InterfaceError> {
        if self.completions.len() + frames > COMPLETIONS_MAX {
            return Err(InterfaceError::Unpolled);
        }
        let answers = PENDING_MAX * (self.members.len() - 1);
        let has_room = self.outgoing.len() + frames <= OUTGOING_MAX + answers;
        has_room.then_some(()).ok_or(InterfaceError::Backlog)
    }

    /// Whether an operation of the user's may leave.
    fn may_post(&self) -> Result<(), InterfaceError> {
        let has_room = self.outgoing.len() < OUTGOING_MAX;
        has_room.then_some(()).ok_or(InterfaceError::Backlog)
    }

    fn first_early(&self, from: DeviceId) -> Option<(DeviceId, u64)> {
        self.early.range((from, 0)..=(from, u64::MAX)).next().map(|(place, _)| *place)
    }

    /// Has the device take a frame.
    fn accept(&mut self, attested: Attested) -> Result<Taken, InterfaceError> {
        let Attested { attestation, message } = &attested;
        let header = match self.device.accept(self.stream, attestation, message) {
            Ok(header) => header,
            Err(DeviceError::Refused(Refusal::Duplicate)) => return Ok(Taken::Before),
            // Authentic, or the device would not have looked at the counter.
            Err(DeviceError::Refused(Refusal::Gap { expected })) => {
                let claim = attestation.claim().ok_or(InterfaceError::NoFrame)?;
                if claim.counter - expected > EARLY_MAX {
                    return Err(InterfaceError::TooEarly);
                }
                self.early.insert((claim.device, claim.counter), attested);
                return Ok(Taken::Later);
            }
            Err(error) => return Err(error.into()),
        };
        // Votes are for the device.
        if header.kind == Kind::Message {
            self.apply(header.device, message)?;
        }
        Ok(Taken::Now)
    }

    fn apply(&mut self, from: DeviceId, message: &[u8]) -> Result<(), InterfaceError> {
        let decoded = postcard::from_bytes(message);
        let Operation { to, action } = decoded.map_err(|_| InterfaceError::Malformed(from))?;
        if to.is_some_and(|to| to != self.device.own().device.0) {
            return Ok(());
        }
        let outcome = match action {
            Action::Message(message) => Outcome::Message(message),
            Action::Announce(regions) => Outcome::Announced(regions),
            Action::Read { ticket, key, offset, length } => {
                let fits = length <= PIECE_MAX as u64;
                let result = if fits {
                    self.memory.read(from, (key, offset), length)
                } else {
                    Err(Denied::Bounds)
                };
                return self.post(Some(from), Action::ReadDone { ticket, result });
            }
            Action::Write { ticket, key, offset, bytes } => {
                let result = self.memory.write(from, (key, offset), &bytes);
                self.post(Some(from), Action::WriteDone { ticket, result })?;
                let length = bytes.len() as u64;
                if result.is_err() {
                    return Ok(());
                }
                Outcome::Written { key, offset, length }
            }
            Action::ReadDone { ticket, result } => match self.end(from, ticket, true)? {
                Some(ticket) => Outcome::Read(ticket, result),
                None => return Ok(()),
            },
            Action::WriteDone { ticket, result } => match self.end(from, ticket, false)? {
                Some(ticket) => Outcome::Wrote(ticket, result),
                None => return Ok(()),
            },
        };
        self.completions.push_back(Completion { from, outcome });
        Ok(())
    }

    fn begin(&mut self, with: DeviceId, is_read: bool) -> Result<Ticket, InterfaceError> {
        self.is_member(with)?;
        self.may_post()?;
        if self.pending.len() == PENDING_MAX {
            return Err(InterfaceError::Pending);
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.pending.insert(ticket, Asked { of: with, is_read });
        Ok(ticket)
    }

    /// The ticket that a member answers: one of this node, for that member. Nothing if it was told
    /// as lost.
    fn end(
        &mut self,
        from: DeviceId,
        ticket: u64,
        is_read: bool,
    ) -> Result<Option<Ticket>, InterfaceError> {
        let ticket = Ticket(ticket);
        let asked = Asked { of: from, is_read };
        if self.pending.get(&ticket) == Some(&asked) {
            self.pending.remove(&ticket);
            return Ok(Some(ticket));
        }
        if self.lost.get(&ticket).is_none_or(|(it, _)| *it != asked) {
            return Err(InterfaceError::Malformed(from));
        }
        self.lost.remove(&ticket);
        Ok(None)
    }

    pub(crate) fn is_peer(&self, device: DeviceId) -> bool {
        self.members.contains(&device) && device != self.device.own().device
    }

    fn is_member(&self, device: DeviceId) -> Result<(), InterfaceError> {
        self.is_peer(device).then_some(()).ok_or(InterfaceError::NotMember(device))
    }

    fn post(&mut self, to: Option<DeviceId>, action: Action) -> Result<(), InterfaceError> {
        let operation = Operation { to: to.map(|to| to.0), action };
        // These types cannot fail to serialize.
        let message = postcard::to_allocvec(&operation).unwrap_or_default();
        if message.len() > MESSAGE_LEN_MAX {
            return Err(DeviceError::TooLong(message.len()).into());
        }
        let attested = self.attest(&message)?;
        self.outgoing.push_back(attested);
        Ok(())
    }
}

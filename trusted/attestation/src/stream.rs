// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device's stream in one replica group: its counter, its last attestations, and its peers.

use subtle::ConstantTimeEq;

use crate::attestation::{Attestation, DeviceId, Epoch, Header, Kind, StreamId};
use crate::error::{Misuse, Refusal};
use crate::mac::{Algorithm, GroupSecret, MacKey};
use crate::vote::{Ballot, Start, Vote};

/// A member of a group as it was formed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Member {
    /// The device.
    pub device: DeviceId,
    /// Its epoch when the group was formed, from 1.
    pub epoch: Epoch,
}

/// A replica group, as whoever provisions its devices has formed it. All members open the same, and
/// the key depends on all of it.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The stream's number.
    pub stream: StreamId,
    /// The algorithm of MACs.
    pub algorithm: Algorithm,
    /// How many votes admit a device in a new epoch: f + 1, where f members may lie.
    pub quorum: u32,
    /// The members in ascending order of their devices, this device among them.
    pub members: &'a [Member],
}

/// Where a peer's stream stands, as this device has taken it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Position {
    /// The peer's admitted epoch.
    pub epoch: Epoch,
    /// How much of it this device has taken.
    pub progress: Progress,
}

/// How much a device has taken of a peer's epoch.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Progress {
    /// It has restarted, and does not know.
    Unknown,
    /// All messages up to this counter.
    Taken(u64),
    /// It takes nothing more: it has voted for a newer epoch.
    Replaced,
}

/// A device's stream in one group (paper §4.1, Algorithm 1). [`crate::Kernel`] holds it.
///
/// `PEERS` is the most other members, `RECENT` how many attestations are kept.
pub struct Stream<const PEERS: usize, const RECENT: usize> {
    pub(crate) id: StreamId,
    algorithm: Algorithm,
    key: MacKey,
    quorum: usize,
    own: Start,
    /// The counter that was given last. It moves before the attestation leaves.
    sent: u64,
    /// The attestation with counter `c` is at `c % RECENT`.
    recent: [Option<Attestation>; RECENT],
    peers: [Option<(DeviceId, Position)>; PEERS],
}

impl<const PEERS: usize, const RECENT: usize> Stream<PEERS, RECENT> {
    pub(crate) fn new(own: Start, secret: &GroupSecret, group: &Group<'_>) -> Result<Self, Misuse> {
        const { assert!(RECENT > 0, "the last attestation must be kept") }
        let ascending = group.members.windows(2).all(|pair| pair[0].device < pair[1].device);
        let first = group.members.iter().find(|it| it.device == own.device).ok_or(Misuse::Group)?;
        let votes_suffice = (1..group.members.len().max(2)).contains(&(group.quorum as usize));
        if !ascending || !votes_suffice || group.members.iter().any(|it| it.epoch.0 == 0) {
            return Err(Misuse::Group);
        }
        // In a later epoch than the group's first this device has taken messages before, and does
        // not know which.
        let progress =
            if own.epoch == first.epoch { Progress::Taken(0) } else { Progress::Unknown };
        let mut peers = [None; PEERS];
        let mut slots = peers.iter_mut();
        for it in group.members.iter().filter(|it| it.device != own.device) {
            *slots.next().ok_or(Misuse::Full)? =
                Some((it.device, Position { epoch: it.epoch, progress }));
        }
        Ok(Self {
            id: group.stream,
            algorithm: group.algorithm,
            key: MacKey::derive(secret, group),
            quorum: group.quorum as usize,
            own,
            sent: 0,
            recent: [None; RECENT],
            peers,
        })
    }

    /// Attests `message` with the next counter (the paper's `Attest`). One attestation serves all
    /// members.
    ///
    /// A host that must survive a crash writes the message down *before* this call: the attestation
    /// can be had again, the message cannot ([`Stream::reissue`]).
    ///
    /// # Errors
    /// [`Misuse::TooLong`], [`Misuse::EpochEnded`].
    pub fn attest(&mut self, message: &[u8]) -> Result<Attestation, Misuse> {
        self.give_counter(Kind::Message, message)
    }

    /// Votes for the new epoch of a peer that has restarted, and tells it the epoch of `about`:
    /// this device or one of its peers. The vote takes a counter, and this device takes nothing
    /// more of the newcomer's older epochs.
    ///
    /// It states no epoch that it has voted to replace, also after a restart: that quorum and the
    /// one which a restarted device hears have a member in common. A device that does not know
    /// where the newcomer stood has no vote, so a group of which more than f members restart
    /// together is formed anew.
    ///
    /// # Errors
    /// [`Misuse::NotPeer`], [`Misuse::NotSynchronized`], [`Misuse::EpochEnded`].
    pub fn vote(&mut self, newcomer: Start, about: DeviceId) -> Result<Ballot, Misuse> {
        let peer_epoch = self.current_epoch(about).ok_or(Misuse::NotSynchronized)?;
        let position = self.peer_mut(newcomer.device).ok_or(Misuse::NotPeer)?;
        if position.progress == Progress::Unknown {
            return Err(Misuse::NotSynchronized);
        }
        if position.epoch < newcomer.epoch {
            position.progress = Progress::Replaced;
        }
        let vote = Vote { newcomer, peer: about, peer_epoch };
        let attestation = self.give_counter(Kind::Vote, &vote.encode())?;
        Ok(Ballot { vote, attestation })
    }

    /// Takes a message if it is the next of its sender's stream (the paper's `Verify`).
    ///
    /// # Errors
    /// Any [`Refusal`] but those of votes; then nothing has changed.
    pub fn accept(&mut self, attestation: &Attestation, message: &[u8]) -> Result<Header, Refusal> {
        // Authentication comes first: a forged message moves no counter and learns no position.
        let header = self.check(attestation, message)?;
        let position = self.peer_mut(header.device).ok_or(Refusal::NotPeer)?;
        let Position { epoch: admitted, progress: Progress::Taken(received) } = *position else {
            return Err(Refusal::NotSynchronized);
        };
        if header.epoch != admitted {
            return Err(Refusal::Epoch { admitted });
        }
        if header.counter <= received {
            return Err(Refusal::Duplicate);
        }
        let expected = received + 1;
        if header.counter != expected {
            return Err(Refusal::Gap { expected });
        }
        position.progress = Progress::Taken(header.counter);
        Ok(header)
    }

    /// Admits a peer in its new epoch, from its first message on, on the votes of a quorum of other
    /// members, in ascending order of the voters. This device's own vote counts.
    ///
    /// A device that has restarted and is not synchronized with the peer admits nothing: it may
    /// have taken messages of that epoch before.
    ///
    /// # Errors
    /// [`Refusal::NotPeer`], [`Refusal::NotNewer`], [`Refusal::Votes`], and those of
    /// [`Stream::check`].
    pub fn admit(&mut self, newcomer: Start, ballots: &[Ballot]) -> Result<(), Refusal> {
        let known = self.position(newcomer.device).ok_or(Refusal::NotPeer)?;
        if known.progress == Progress::Unknown || newcomer.epoch <= known.epoch {
            return Err(Refusal::NotNewer);
        }
        self.count(newcomer, ballots, |it, _| self.current_epoch(it.device) == Some(it.epoch))?;
        *self.peer_mut(newcomer.device).ok_or(Refusal::NotPeer)? =
            Position { epoch: newcomer.epoch, progress: Progress::Taken(0) };
        Ok(())
    }

    /// Learns after a restart where the stream of `peer` stands, on the votes of a quorum for this
    /// device's epoch about that peer, in ascending order, the peer's own among them.
    ///
    /// Votes with this start's nonce are younger than the restart. The peer's own vote therefore
    /// has a counter above all that this device took before, and its epoch is what a quorum knows.
    /// The number of the epoch alone does not tell: a liar would vote for the next one in advance.
    ///
    /// # Errors
    /// [`Refusal::NotPeer`], [`Refusal::NotNewer`], [`Refusal::Votes`], and those of
    /// [`Stream::check`].
    pub fn synchronize(&mut self, peer: DeviceId, ballots: &[Ballot]) -> Result<(), Refusal> {
        let known = self.position(peer).ok_or(Refusal::NotPeer)?;
        let mut claims = ballots.iter().filter_map(|ballot| ballot.attestation.claim());
        let stated = claims.find(|header| header.device == peer).ok_or(Refusal::Votes)?;
        if known.progress != Progress::Unknown || stated.epoch < known.epoch {
            return Err(Refusal::NotNewer);
        }
        self.count(self.own, ballots, |_, Ballot { vote, .. }| {
            let is_young = vote.newcomer.nonce == self.own.nonce;
            is_young && vote.peer == peer && vote.peer_epoch == stated.epoch
        })?;
        *self.peer_mut(peer).ok_or(Refusal::NotPeer)? =
            Position { epoch: stated.epoch, progress: Progress::Taken(stated.counter) };
        Ok(())
    }

    /// Whether a device of the group has attested `message`, whatever its epoch and counter: for
    /// forwarded messages, logs and audits. The caller judges epoch and counter. Changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Malformed`], [`Refusal::Mac`].
    pub fn check(&self, attestation: &Attestation, message: &[u8]) -> Result<Header, Refusal> {
        let header = attestation.claim().ok_or(Refusal::Malformed)?;
        let is_ours = header.stream == self.id && header.algorithm == self.algorithm;
        if !is_ours || header.length as usize != message.len() {
            return Err(Refusal::Malformed);
        }
        let is_genuine = self.key.tag(&header.encode(), message).ct_eq(&attestation.mac());
        if is_genuine.into() { Ok(header) } else { Err(Refusal::Mac) }
    }

    /// One of the device's last `RECENT` attestations again, byte for byte.
    ///
    /// # Errors
    /// [`Misuse::Forgotten`].
    pub fn reissue(&self, counter: u64) -> Result<Attestation, Misuse> {
        self.recent[(counter % RECENT as u64) as usize]
            .filter(|kept| kept.claim().is_some_and(|header| header.counter == counter))
            .ok_or(Misuse::Forgotten)
    }

    /// The counter that this device has given last, 0 before the first.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Where a peer's stream stands.
    pub fn position(&self, device: DeviceId) -> Option<Position> {
        self.peers.iter().flatten().find(|it| it.0 == device).map(|it| it.1)
    }

    /// Attests under the next counter, and keeps the attestation.
    fn give_counter(&mut self, kind: Kind, message: &[u8]) -> Result<Attestation, Misuse> {
        let length = u32::try_from(message.len()).map_err(|_| Misuse::TooLong)?;
        // A counter is never given twice: the last one ends the epoch.
        let counter = self.sent.checked_add(1).ok_or(Misuse::EpochEnded)?;
        let Start { device, epoch, .. } = self.own;
        let (algorithm, stream) = (self.algorithm, self.id);
        let header = Header { algorithm, kind, stream, device, length, epoch, counter }.encode();
        let attestation = Attestation::new(&header, &self.key.tag(&header, message));
        self.sent = counter;
        self.recent[(counter % RECENT as u64) as usize] = Some(attestation);
        Ok(attestation)
    }

    /// Whether enough distinct members have voted for `newcomer`, each authentic and fit. The
    /// voters are in ascending order, so that none counts twice. The newcomer is not among them: no
    /// device is its own peer, so none votes for itself.
    fn count(
        &self,
        newcomer: Start,
        ballots: &[Ballot],
        fits: impl Fn(Header, &Ballot) -> bool,
    ) -> Result<(), Refusal> {
        let mut last = None;
        for ballot in ballots {
            let voter = self.check(&ballot.attestation, &ballot.vote.encode())?;
            let subject = ballot.vote.newcomer;
            let is_for = subject.device == newcomer.device && subject.epoch == newcomer.epoch;
            let is_fit = voter.kind == Kind::Vote && fits(voter, ballot);
            if !is_for || !is_fit || last >= Some(voter.device) {
                return Err(Refusal::Votes);
            }
            last = Some(voter.device);
        }
        if ballots.len() < self.quorum { Err(Refusal::Votes) } else { Ok(()) }
    }

    /// The epoch in which a member speaks: this device's own, or that of a peer whose messages are
    /// taken.
    fn current_epoch(&self, device: DeviceId) -> Option<Epoch> {
        if device == self.own.device {
            return Some(self.own.epoch);
        }
        let position = self.position(device)?;
        matches!(position.progress, Progress::Taken(_)).then_some(position.epoch)
    }

    fn peer_mut(&mut self, device: DeviceId) -> Option<&mut Position> {
        self.peers.iter_mut().flatten().find(|it| it.0 == device).map(|it| &mut it.1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_counter_that_runs_out_ends_the_epoch() {
        let own = Start { device: DeviceId(1), epoch: Epoch(1), nonce: [0; 16] };
        let members = [Member { device: DeviceId(1), epoch: Epoch(1) }];
        let algorithm = Algorithm::HmacSha256;
        let group = Group { stream: StreamId(1), algorithm, quorum: 1, members: &members };
        let secret = GroupSecret::new([1; 32]);
        let mut stream = Stream::<1, 2>::new(own, &secret, &group).unwrap();
        stream.sent = u64::MAX - 1;
        let last = stream.attest(b"last").unwrap();
        assert_eq!(last.claim().unwrap().counter, u64::MAX);
        for _ in 0..2 {
            assert_eq!(stream.attest(b"more"), Err(Misuse::EpochEnded));
        }
        assert_eq!(stream.sent(), u64::MAX);
        assert_eq!(stream.reissue(u64::MAX), Ok(last));
    }

    #[test]
    fn a_peer_at_its_last_counter_repeats_nothing() {
        let member = |device| Member { device: DeviceId(device), epoch: Epoch(1) };
        let members = [member(1), member(2)];
        let algorithm = Algorithm::HmacSha256;
        let group = Group { stream: StreamId(1), algorithm, quorum: 1, members: &members };
        let secret = GroupSecret::new([1; 32]);
        let open = |device| {
            let own = Start { device: DeviceId(device), epoch: Epoch(1), nonce: [0; 16] };
            Stream::<1, 2>::new(own, &secret, &group).unwrap()
        };
        let (mut one, mut two) = (open(1), open(2));
        one.sent = u64::MAX - 1;
        two.peer_mut(DeviceId(1)).unwrap().progress = Progress::Taken(u64::MAX - 1);
        let last = one.attest(b"last").unwrap();
        assert!(two.accept(&last, b"last").is_ok());
        assert_eq!(two.accept(&last, b"last"), Err(Refusal::Duplicate));
    }
}

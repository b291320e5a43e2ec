// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Recovery: devices in new epochs.

use std::collections::BTreeMap;

use smt_attestation::{Ballot, DeviceId, Epoch, Header, Kind, Start, Vote};
use smt_replica::{Attested, Service};

use crate::message::{Statement, decode};
use crate::replica::Replica;

/// Epochs of a device that are followed, beside those that are in a view: the newest.
pub(crate) const NEWCOMERS: usize = 4;

/// How many views a replica has wanted, at most, without having entered one, when it wants another
/// one for a newcomer. A liar that has restarted its device a thousand times would otherwise have
/// it want as many views at once as others let it want in vain.
const WANTED_FOR_NEWCOMERS: u32 = 16;

impl<S: Service> Replica<S> {
    /// Whether a device is followed in an epoch that was unknown: one that begins, or one that a
    /// view has and that was forgotten meanwhile.
    pub(crate) fn may_follow(&self, key: (u32, u64), counter: u64, statement: &Attested) -> bool {
        let (device, epoch) = key;
        let newest = self.streams.range((device, 0)..=(device, u64::MAX)).next_back();
        let is_newest = newest.is_none_or(|(last, _)| last.1 < epoch);
        let begins = counter == 1
            && is_newest
            && matches!(decode(&statement.body), Some(Statement::Hello { .. }));
        self.metrics.is_active && (begins || self.is_in_view(device, epoch))
    }

    /// Forgets the older epochs of a device that has restarted again and again. No view has them,
    /// and what a device says in such an epoch counts nowhere: a view change takes VIEW-CHANGEs of
    /// the epochs of a view alone. Should others admit one of them, they give its stream again.
    pub(crate) fn forget_epochs(&mut self, device: u32) {
        let epochs = self.streams.range((device, 0)..=(device, u64::MAX)).map(|it| *it.0);
        let outside: Vec<_> = epochs.filter(|it| !self.is_in_view(it.0, it.1)).collect();
        for key in outside.iter().rev().skip(NEWCOMERS) {
            self.streams.remove(key);
        }
    }

    /// Whether a view that is remembered has the epoch of a device.
    fn is_in_view(&self, device: u32, epoch: u64) -> bool {
        self.views.values().any(|it| it.epoch(device) == Some(epoch))
    }

    /// Votes for devices that have restarted, and wants a view that has them as members. Where many
    /// views were wanted in vain, newcomers wait for one that is entered, and the next epoch of a
    /// device that was voted for waits for a timeout.
    pub(crate) fn admit_newcomers(&mut self) -> bool {
        if self.own_track().wanted >= WANTED_FOR_NEWCOMERS {
            return false;
        }
        let Some(of_view) = self.own_track().at.and_then(|at| self.views.get(&at.0)) else {
            return false;
        };
        let mut newest = BTreeMap::<u32, (u64, [u8; 16])>::new();
        for ((device, epoch), stream) in &self.streams {
            if let Some(nonce) = stream.track.nonce {
                newest.insert(*device, (*epoch, nonce));
            }
        }
        let ballots = &self.own_track().ballots;
        let is_new = |(device, (epoch, _)): &(u32, (u64, [u8; 16]))| {
            *device != self.own
                && of_view.epoch(*device) < Some(*epoch)
                && ballots.get(device) < Some(epoch)
                && self.unvoted.get(device) < Some(epoch)
                && !self.voted.contains_key(device)
        };
        let Some((device, (epoch, nonce))) = newest.into_iter().find(is_new) else {
            return false;
        };
        let start = Start { device: DeviceId(device), epoch: Epoch(epoch), nonce };
        let mut voted = false;
        for about in (0..self.group.replicas).filter(|about| *about != device) {
            let ballot = self.device.vote(start, DeviceId(about));
            if let Some(ballot) = ballot {
                voted = true;
                let statement = Attested::new(&ballot.attestation, ballot.vote.encode().to_vec());
                if let Some(header) = ballot.attestation.claim() {
                    self.hear_vote(&header, &statement);
                }
                self.publish(statement);
            }
        }
        if !voted {
            self.unvoted.insert(device, epoch);
            return false;
        }
        self.voted.insert(device, self.group.options.timeout);
        let mut view = self.own_track().promised + 1;
        // A device that is not a member yet cannot open a view.
        if self.group.leader(view) == device {
            view += 1;
        }
        self.want(view);
        self.own_track().ballots.get(&device) == Some(&epoch)
    }

    /// A tick has passed, for epochs that wait. A liar that restarts ever again would otherwise end
    /// each view before anything is ordered in it.
    pub(crate) fn count_voted(&mut self) {
        self.voted.retain(|_, ticks| {
            *ticks = ticks.saturating_sub(1);
            *ticks > 0
        });
    }

    /// The ballot that a statement is, if it is authentic, and newer than the one that is known of
    /// its voter. If both are for one epoch, the voter's later one is newer, in whatever order they
    /// come: none is taken twice.
    pub(crate) fn new_ballot(&self, header: &Header, statement: &Attested) -> Option<Ballot> {
        let vote = parse(&statement.body).filter(|_| header.kind == Kind::Vote)?;
        let (device, peer) = (vote.newcomer.device.0, vote.peer.0);
        if device >= self.group.replicas || peer >= self.group.replicas {
            return None;
        }
        let ballot = Ballot { vote, attestation: statement.attestation() };
        let of_device = self.ballots.get(&device);
        let known = of_device.and_then(|it| it.get(&(header.device.0, peer)));
        known.is_none_or(|it| age(it) < age(&ballot)).then_some(ballot)
    }

    /// Keeps a ballot that is authentic, and tells the own device what f + 1 have voted for.
    pub(crate) fn hear_vote(&mut self, header: &Header, statement: &Attested) {
        let Some(ballot) = self.new_ballot(header, statement) else {
            return;
        };
        let vote = ballot.vote;
        let device = vote.newcomer.device.0;
        // The own device may know more afterwards, and have a vote that it did not have.
        self.unvoted.clear();
        let of_device = self.ballots.entry(device).or_default();
        of_device.insert((header.device.0, vote.peer.0), ballot);
        let same: BTreeMap<_, _> = of_device
            .iter()
            .filter(|it| it.1.vote.newcomer == vote.newcomer)
            .map(|(key, ballot)| (*key, *ballot))
            .collect();
        if device == self.own {
            self.synchronize(vote.peer, &same);
        } else {
            // One ballot of each voter, in their order.
            let mut of_voters = BTreeMap::new();
            for ((voter, _), ballot) in same {
                of_voters.entry(voter).or_insert(ballot);
            }
            let ballots: Vec<Ballot> = of_voters.into_values().collect();
            self.device.admit(vote.newcomer, &ballots);
        }
    }

    fn synchronize(&mut self, peer: DeviceId, all: &BTreeMap<(u32, u32), Ballot>) {
        let about = all.iter().filter(|it| it.0.1 == peer.0);
        let ballots: Vec<Ballot> = about.map(|it| *it.1).collect();
        self.device.synchronize(peer, &ballots);
    }
}

/// The age of a ballot: the epoch that it is for, and its place in what its voter said.
fn age(ballot: &Ballot) -> (Epoch, Option<(Epoch, u64)>) {
    let claim = ballot.attestation.claim();
    (ballot.vote.newcomer.epoch, claim.map(|it| (it.epoch, it.counter)))
}

/// Reads a vote.
fn parse(bytes: &[u8]) -> Option<Vote> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let nonce = bytes.get(12..28)?.try_into().ok()?;
    let newcomer = Start { device: DeviceId(number(0)?), epoch: Epoch(long(4)?), nonce };
    Some(Vote { newcomer, peer: DeviceId(number(28)?), peer_epoch: Epoch(long(32)?) })
}

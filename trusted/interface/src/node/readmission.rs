// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A member whose device has restarted comes back in its new epoch.
//!
//! 1. The newcomer joins by [`Node::connect`], with the same group, and tells the others its
//!    [`Node::start`].
//! 2. Each member that agrees votes, about each member that the newcomer must know
//!    ([`Node::vote`]). It takes nothing more of the newcomer's older epoch. Whether it agrees is
//!    its system's rule, since the newcomer has lost its state.
//! 3. With the votes of a quorum the members admit the newcomer ([`Node::admit`]), and the newcomer
//!    learns where their streams stand ([`Node::synchronize`]). It gets the state before from
//!    others.
//!
//! Ballots prove themselves, so they may travel by any way, a member's among them.

use smt_attestation::{Ballot, DeviceId, Epoch, Start};
use smt_device_client::Device;

use super::{InterfaceError, Node, PENDING_MAX};
use crate::completion::{Completion, Outcome};
use crate::operation::Attested;

impl<D: Device> Node<D> {
    /// The start of this node's device, which others vote for after a restart.
    #[must_use]
    pub fn start(&self) -> Start {
        self.device.own()
    }

    /// Votes for the new epoch of a member that has restarted, and tells it the epoch of `about`:
    /// this node or another member. The vote has a place in this node's stream, so its frame goes
    /// to all members, like any other.
    ///
    /// Vote only for a start that came over a session which the newcomer's own device has signed: a
    /// vote ends what this device takes of the older epoch, and nothing undoes that. Anyone else
    /// who names a start would silence a member that runs.
    ///
    /// Members may have taken different prefixes of the older epoch when they vote: votes carry
    /// epochs, not counters. The system above brings them to one state, if it needs that.
    ///
    /// Reads and writes that the newcomer has not answered end as [`Outcome::Lost`]: no more is
    /// taken of its older epoch, and the new one may go on behind this vote.
    ///
    /// # Errors
    /// [`InterfaceError::NotMember`], [`InterfaceError::Backlog`], [`InterfaceError::Device`].
    pub fn vote(&mut self, newcomer: Start, about: DeviceId) -> Result<Ballot, InterfaceError> {
        self.is_member(newcomer.device)?;
        self.may_post()?;
        let admitted = self.device.position(self.stream, newcomer.device)?.map(|it| it.epoch);
        let ballot = self.device.vote(self.stream, newcomer, about)?;
        let message = ballot.vote.encode().to_vec();
        self.outgoing.push_back(Attested { attestation: ballot.attestation, message });
        let may_begin_here = about == self.device() && admitted == Some(newcomer.epoch);
        if may_begin_here || admitted < Some(newcomer.epoch) {
            self.lose(newcomer.device, newcomer.epoch);
        }
        Ok(ballot)
    }

    /// Takes a member in its new epoch, from its first frame on, on the votes of a quorum in
    /// ascending order of the voters. Reads and writes that it has not answered yet end as
    /// [`Outcome::Lost`], since its memory is registered anew. It may answer some of them later,
    /// which says nothing more.
    ///
    /// # Errors
    /// [`InterfaceError::Device`]; nothing has changed then.
    pub fn admit(&mut self, newcomer: Start, ballots: &[Ballot]) -> Result<(), InterfaceError> {
        self.device.admit(self.stream, newcomer, ballots)?;
        let from = newcomer.device;
        // Frames that waited are of the older epoch.
        self.early.retain(|(device, _), _| *device != from);
        self.lose(from, newcomer.epoch);
        Ok(())
    }

    /// Learns after a restart where the stream of a member stands, on the votes of a quorum about
    /// it, in ascending order of the voters, its own among them. Its frames behind its own vote are
    /// taken from then on.
    ///
    /// # Errors
    /// [`InterfaceError::Device`]; nothing has changed then.
    pub fn synchronize(
        &mut self,
        member: DeviceId,
        ballots: &[Ballot],
    ) -> Result<(), InterfaceError> {
        Ok(self.device.synchronize(self.stream, member, ballots)?)
    }

    /// Ends all that a member has not answered. Its new epoch may have begun before some of it, and
    /// answers that then; older ones answer nothing more.
    fn lose(&mut self, from: DeviceId, epoch: Epoch) {
        self.lost.retain(|_, (asked, of)| asked.of != from || *of >= epoch);
        let of_member = self.pending.iter().filter(|(_, asked)| asked.of == from);
        let ended: Vec<_> = of_member.map(|(ticket, asked)| (*ticket, *asked)).collect();
        for (ticket, asked) in ended {
            self.pending.remove(&ticket);
            self.lost.insert(ticket, (asked, epoch));
            self.completions.push_back(Completion { from, outcome: Outcome::Lost(ticket) });
        }
        while self.lost.len() > PENDING_MAX {
            self.lost.pop_first();
        }
    }
}

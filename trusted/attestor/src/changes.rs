// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The epochs of peers that a kernel in a replica's process was told, for a new one to be told
//! them again.
//!
//! The kernel takes an epoch on the votes of a quorum alone, also from the host that it runs in.

use serde::{Deserialize, Serialize};
use smt_attestation::{Ballot, DeviceId, Epoch, Start, StreamId, Vote};
use smt_device_client::{Device, DeviceError};

use crate::given::{Halves, halves, whole};

/// Number, epoch and nonce of a start.
type StartParts = (u32, u64, [u8; 16]);

/// A ballot for a log.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WrittenBallot {
    newcomer: StartParts,
    /// The member that the vote is about, and its epoch.
    peer: (u32, u64),
    attestation: Halves,
}

impl From<&Ballot> for WrittenBallot {
    fn from(ballot: &Ballot) -> Self {
        let Ballot { vote, attestation } = ballot;
        let peer = (vote.peer.0, vote.peer_epoch.0);
        Self { newcomer: parts(vote.newcomer), peer, attestation: halves(attestation) }
    }
}

impl From<&WrittenBallot> for Ballot {
    fn from(it: &WrittenBallot) -> Self {
        let (peer, peer_epoch) = (DeviceId(it.peer.0), Epoch(it.peer.1));
        let vote = Vote { newcomer: start(it.newcomer), peer, peer_epoch };
        Self { vote, attestation: whole(&it.attestation) }
    }
}

/// Something that has changed what the kernel knows of a peer.
#[derive(Clone, Debug, Deserialize, Serialize)]
enum Change {
    /// It has voted for a newer epoch.
    Voted(StartParts),
    /// It has admitted a newer epoch.
    Admitted(StartParts, Vec<WrittenBallot>),
    /// It has learnt after a restart where the peer's stream stands.
    Synchronized(u32, Vec<WrittenBallot>),
}

impl Change {
    fn admitted(&self) -> Option<(u32, u64)> {
        match self {
            Self::Admitted(start, _) => Some((start.0, start.1)),
            Self::Voted(_) | Self::Synchronized(..) => None,
        }
    }

    /// The devices, and the epochs in which they spoke, that had this admitted.
    fn voters(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let ballots = match self {
            Self::Admitted(_, ballots) => ballots.as_slice(),
            Self::Voted(_) | Self::Synchronized(..) => &[],
        };
        let claims = ballots.iter().filter_map(|it| whole(&it.attestation).claim());
        let voters: Vec<_> = claims.map(|it| (it.device.0, it.epoch.0)).collect();
        voters.into_iter()
    }
}

/// All changes in their order, without those that later ones have made void.
///
/// An admission stays for as long as a later one needs a vote of the epoch that it admitted. The
/// votes of members that have not restarted come first: while a quorum of those votes, one
/// admission of each member is kept. Without them, members that restart in turn and vote for each
/// other leave one each time, of some hundred bytes: the kernel knows no other way to the last one.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Changes(Vec<Change>);

impl Changes {
    pub(crate) fn voted(&mut self, newcomer: Start) {
        let (device, epoch, nonce) = parts(newcomer);
        let known = self.0.iter().filter_map(|it| match it {
            Change::Voted(start) | Change::Admitted(start, _) => Some((start.0, start.1)),
            Change::Synchronized(..) => None,
        });
        // A vote for an epoch that is known changes nothing.
        if !{ known }.any(|it| it.0 == device && it.1 >= epoch) {
            self.forget_votes(device);
            self.0.push(Change::Voted((device, epoch, nonce)));
        }
    }

    /// The kernel has admitted a peer on these votes, each of which counts for as much.
    pub(crate) fn admitted(&mut self, newcomer: Start, ballots: &[Ballot], quorum: usize) {
        self.forget_votes(newcomer.device.0);
        let voter = |it: &Ballot| it.attestation.claim().map(|it| it.device.0);
        let was_admitted =
            |it: &Ballot| self.0.iter().any(|old| old.admitted().map(|it| it.0) == voter(it));
        let mut ballots = ballots.to_vec();
        ballots.sort_by_key(was_admitted);
        ballots.truncate(quorum);
        // The kernel wants voters in ascending order.
        ballots.sort_by_key(voter);
        self.0.push(Change::Admitted(parts(newcomer), written(&ballots)));
        // Each admission that goes may be the last that needed those of its voters.
        let mut devices = vec![newcomer.device.0];
        while let Some(device) = devices.pop() {
            while let Some(place) = self.void(device) {
                devices.extend(self.0.remove(place).voters().map(|it| it.0));
            }
        }
    }

    pub(crate) fn synchronized(&mut self, peer: DeviceId, ballots: &[Ballot]) {
        self.0.push(Change::Synchronized(peer.0, written(ballots)));
    }

    /// Tells a kernel that has just opened the stream all of it. Each vote takes a counter.
    pub(crate) fn tell(&self, device: &mut dyn Device, id: StreamId) -> Result<(), DeviceError> {
        for change in &self.0 {
            match change {
                Change::Voted(newcomer) => {
                    let about = device.own().device;
                    device.vote(id, start(*newcomer), about)?;
                }
                Change::Admitted(newcomer, ballots) => {
                    device.admit(id, start(*newcomer), &read(ballots))?;
                }
                Change::Synchronized(peer, ballots) => {
                    device.synchronize(id, DeviceId(*peer), &read(ballots))?;
                }
            }
        }
        Ok(())
    }

    fn forget_votes(&mut self, device: u32) {
        self.0.retain(|it| !matches!(it, Change::Voted(start) if start.0 == device));
    }

    /// An epoch of a device that was admitted before a newer one, and whose votes nothing that is
    /// kept needs.
    fn void(&self, device: u32) -> Option<usize> {
        let of_device = |(place, it): (usize, &Change)| {
            it.admitted().filter(|it| it.0 == device).map(|it| (place, it))
        };
        let admitted: Vec<_> = self.0.iter().enumerate().filter_map(of_device).collect();
        let is_void = |of: &&[(usize, (u32, u64))]| {
            let ((place, old), (newer, _)) = (of[0], of[1]);
            !self.0[place + 1..newer].iter().any(|it| it.voters().any(|it| it == old))
        };
        admitted.windows(2).find(is_void).map(|it| it[0].0)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

fn parts(start: Start) -> StartParts {
    (start.device.0, start.epoch.0, start.nonce)
}

fn start((device, epoch, nonce): StartParts) -> Start {
    Start { device: DeviceId(device), epoch: Epoch(epoch), nonce }
}

fn written(ballots: &[Ballot]) -> Vec<WrittenBallot> {
    ballots.iter().map(WrittenBallot::from).collect()
}

fn read(ballots: &[WrittenBallot]) -> Vec<Ballot> {
    ballots.iter().map(Ballot::from).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use smt_attestation::{Algorithm, Group, GroupSecret, Member, SigningKey};
    use smt_device_client::SecretNumber;

    use super::*;
    use crate::attestor::OwnLibrary;

    const STREAM: StreamId = StreamId(1);

    fn kernel(device: u32, epoch: u64) -> OwnLibrary {
        kernel_of([1; 3], 2, start((device, epoch, [7; 16])))
    }

    /// The kernel of a group whose members were formed in these epochs.
    fn kernel_of<const N: usize>(epochs: [u64; N], quorum: u32, start: Start) -> OwnLibrary {
        let mut kernel = OwnLibrary::start(start, SigningKey::new(&[1; 32]));
        kernel.add_secret(SecretNumber(0), GroupSecret::new([2; 32])).unwrap();
        let member = |it: (u32, u64)| Member { device: DeviceId(it.0), epoch: Epoch(it.1) };
        let members: Vec<_> = (0..).zip(epochs).map(member).collect();
        let algorithm = Algorithm::HmacSha256;
        let group = Group { stream: STREAM, algorithm, quorum, members: &members };
        kernel.open(SecretNumber(0), &group).unwrap();
        kernel
    }

    /// A kernel that votes for newcomers and admits them, and what it was told.
    struct Told(OwnLibrary, Changes);

    impl Told {
        /// Admits a device on the votes of this one and of another one.
        fn admit(&mut self, newcomer: Start, voter: &mut OwnLibrary) {
            let own = self.0.vote(STREAM, newcomer, DeviceId(0)).unwrap();
            self.1.voted(newcomer);
            let other = voter.vote(STREAM, newcomer, voter.own().device).unwrap();
            self.0.admit(STREAM, newcomer, &[own, other]).unwrap();
            self.1.admitted(newcomer, &[own, other], 2);
        }

        /// A kernel that has restarted, and learns of a peer by votes of this one and of the peer.
        fn synchronized(&mut self, mut kernel: OwnLibrary, peer: &mut OwnLibrary) -> OwnLibrary {
            let (own, about) = (kernel.own(), peer.own().device);
            let ballots = [&mut self.0, peer].map(|it| it.vote(STREAM, own, about).unwrap());
            self.1.voted(own);
            kernel.synchronize(STREAM, about, &ballots).unwrap();
            kernel
        }

        fn assert_told_again(&self) {
            let mut again = kernel(0, 1);
            self.1.tell(&mut again, STREAM).unwrap();
            for device in [1, 2].map(DeviceId) {
                let positions = [&again, &self.0].map(|it| it.position(STREAM, device).unwrap());
                assert_eq!(positions[0], positions[1]);
            }
        }
    }

    #[test]
    fn a_new_kernel_is_told_all_that_one_knew_of_peers_that_restart_again_and_again() {
        let mut told = Told(kernel(0, 1), Changes::default());
        for epoch in 2..30 {
            told.admit(start((1, epoch, [epoch as u8; 16])), &mut kernel(2, 1));
            told.assert_told_again();
            assert_eq!(told.1.count(), 1, "an epoch that another one has followed is forgotten");
        }
        // The other one restarts, with a vote of the newest epoch of the first, and votes itself.
        let mut one = told.synchronized(kernel(1, 29), &mut kernel(2, 1));
        let two = kernel(2, 2);
        told.admit(two.own(), &mut one);
        let mut two = told.synchronized(two, &mut one);
        told.admit(start((1, 30, [9; 16])), &mut two);
        told.assert_told_again();
        assert_eq!(told.1.count(), 3, "the vote of an epoch that was left is still needed");
        let newcomer = start((2, 3, [8; 16]));
        told.0.vote(STREAM, newcomer, DeviceId(0)).unwrap();
        told.1.voted(newcomer);
        told.assert_told_again();
    }

    // Once, each of these restarts stayed: the epoch of each was needed by the next one's votes.
    #[test]
    fn members_that_restart_in_turn_leave_one_admission_each_while_a_quorum_does_not() {
        let kernel =
            |device, epoch| kernel_of([1; 5], 3, start((device, epoch, [epoch as u8; 16])));
        let (mut kernels, mut changes) =
            ([0, 1, 2, 3, 4].map(|it| kernel(it, 1)), Changes::default());
        for restart in 0..40 {
            let (newcomer, other) = if restart % 2 == 0 { (1, 2) } else { (2, 1) };
            kernels[newcomer] = kernel(newcomer as u32, 2 + restart / 2);
            let own = kernels[newcomer].own();
            let others = [0, other, 3, 4];
            let ballots =
                others.map(|it| kernels[it].vote(STREAM, own, DeviceId(it as u32)).unwrap());
            others.iter().for_each(|it| kernels[*it].admit(STREAM, own, &ballots).unwrap());
            for about in others.map(|it| DeviceId(it as u32)) {
                let stated = others.map(|it| kernels[it].vote(STREAM, own, about).unwrap());
                kernels[newcomer].synchronize(STREAM, about, &stated).unwrap();
            }
            changes.voted(own);
            changes.admitted(own, &ballots, 3);
            assert!(changes.count() <= 2, "restart {restart}");
        }
        let told = &kernels[0];
        let mut again = kernel(0, 1);
        changes.tell(&mut again, STREAM).unwrap();
        for device in (1..5).map(DeviceId) {
            let positions = [&again, told].map(|it| it.position(STREAM, device).unwrap());
            assert_eq!(positions[0], positions[1]);
        }
    }
}

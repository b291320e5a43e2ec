// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernels as the explorer sees them: numbers and bytes, since each copy has types of its own.

use crate::state::Packet;

/// The group: three devices of which one may lie. The sender is 1, the receiver 2, the voter 3.
pub(crate) const MEMBERS: [u32; 3] = [1, 2, 3];
pub(crate) const QUORUM: u32 = 2;

/// One start of a device: its number, epoch, and the first byte of its nonce.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Start {
    /// The device.
    pub device: u32,
    /// The epoch.
    pub epoch: u64,
    /// The nonce. A liar that votes in advance can only guess it: as 0.
    pub nonce: u8,
}

/// A kernel that has opened the group's stream.
pub trait Device {
    /// Starts the device.
    fn start(own: Start) -> Self;
    /// Attests a message.
    fn attest(&mut self, body: &[u8]) -> Option<Packet>;
    /// Votes for a newcomer, and about a member.
    fn vote(&mut self, newcomer: Start, about: u32) -> Option<Packet>;
    /// Whether the message is taken.
    fn accept(&mut self, packet: &Packet) -> bool;
    /// Whether the votes admit the newcomer.
    fn admit(&mut self, newcomer: Start, ballots: &[&Packet]) -> bool;
    /// Whether the votes synchronize this device with the peer.
    fn synchronize(&mut self, peer: u32, ballots: &[&Packet]) -> bool;
    /// The last counter that was given.
    fn sent(&self) -> u64;
    /// Epoch and last counter of a peer: nothing if it is unknown, the greatest if it was replaced.
    fn position(&self, peer: u32) -> (u64, Option<u64>);
}

/// The kernel of the crate `smt-attestation`.
pub type Shipped = smt_attestation::Kernel<1, 2, 4>;

macro_rules! device {
    ($kernel:ty, $($attestation:ident)::+, $($mac:ident)::+, $($stream:ident)::+, $($vote:ident)::+) => {
        const _: () = {
            use $($attestation)::+::{Attestation, DeviceId, Epoch, StreamId};
            use $($mac)::+::{Algorithm, GroupSecret};
            use $($stream)::+::{Group, Member, Progress, Stream};
            use $($vote)::+::{Ballot, Start as KernelStart, Vote};

            const STREAM: StreamId = StreamId(1);

            fn started(start: Start) -> KernelStart {
                let (device, epoch) = (DeviceId(start.device), Epoch(start.epoch));
                KernelStart { device, epoch, nonce: [start.nonce; 16] }
            }

            fn ballots(packets: &[&Packet]) -> Vec<Ballot> {
                let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, it| sum << 8 | u64::from(*it));
                let device = |bytes: &[u8]| DeviceId(number(bytes) as u32);
                let ballot = |packet: &&Packet| {
                    let body = &packet.body;
                    let newcomer = KernelStart {
                        device: device(&body[..4]),
                        epoch: Epoch(number(&body[4..12])),
                        nonce: [body[12]; 16],
                    };
                    let (peer, peer_epoch) = (device(&body[28..32]), Epoch(number(&body[32..])));
                    let vote = Vote { newcomer, peer, peer_epoch };
                    Ballot { vote, attestation: Attestation(packet.attestation) }
                };
                packets.iter().filter(|packet| packet.body.len() == 40).map(ballot).collect()
            }

            fn group(kernel: &mut $kernel) -> &mut Stream<2, 4> {
                kernel.stream_mut(STREAM).expect("start opens it")
            }

            impl Device for $kernel {
                fn start(own: Start) -> Self {
                    let mut kernel = Self::start(started(own));
                    let members =
                        MEMBERS.map(|it| Member { device: DeviceId(it), epoch: Epoch(1) });
                    let algorithm = Algorithm::HmacSha256;
                    let group =
                        Group { stream: STREAM, algorithm, quorum: QUORUM, members: &members };
                    kernel.open(&GroupSecret::new([7; 32]), &group).expect("the group is valid");
                    kernel
                }

                fn attest(&mut self, body: &[u8]) -> Option<Packet> {
                    let attestation = group(self).attest(body).ok()?.0;
                    Some(Packet { attestation, body: body.to_vec() })
                }

                fn vote(&mut self, newcomer: Start, about: u32) -> Option<Packet> {
                    let ballot = group(self).vote(started(newcomer), DeviceId(about)).ok()?;
                    let body = ballot.vote.encode().to_vec();
                    Some(Packet { attestation: ballot.attestation.0, body })
                }

                fn accept(&mut self, packet: &Packet) -> bool {
                    group(self).accept(&Attestation(packet.attestation), &packet.body).is_ok()
                }

                fn admit(&mut self, newcomer: Start, packets: &[&Packet]) -> bool {
                    group(self).admit(started(newcomer), &ballots(packets)).is_ok()
                }

                fn synchronize(&mut self, peer: u32, packets: &[&Packet]) -> bool {
                    group(self).synchronize(DeviceId(peer), &ballots(packets)).is_ok()
                }

                fn sent(&self) -> u64 {
                    self.stream(STREAM).map_or(0, Stream::sent)
                }

                fn position(&self, peer: u32) -> (u64, Option<u64>) {
                    let position = self.stream(STREAM).and_then(|it| it.position(DeviceId(peer)));
                    position.map_or((0, None), |it| match it.progress {
                        Progress::Unknown => (it.epoch.0, None),
                        Progress::Taken(counter) => (it.epoch.0, Some(counter)),
                        Progress::Replaced => (it.epoch.0, Some(u64::MAX)),
                    })
                }
            }
        };
    };
}

macro_rules! broken {
    ($($name:ident)+) => {$(
        device! {
            crate::broken::$name::kernel::Kernel<1, 2, 4>,
            crate::broken::$name::attestation, crate::broken::$name::mac,
            crate::broken::$name::stream, crate::broken::$name::vote
        }
    )+};
}

device!(Shipped, smt_attestation, smt_attestation, smt_attestation, smt_attestation);

broken! {
    skips takes_any_order ignores_the_mac moves_on_a_bad_mac gives_a_counter_twice
    admits_an_epoch_again admits_without_quorum restarts_at_zero takes_votes_in_advance
    states_a_replaced_epoch synchronizes_again
}

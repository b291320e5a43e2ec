// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device of a liar: the shipped kernel, which attests whatever its host wants.

use smt_attestation::{
    Algorithm, Attestation, DeviceId, Epoch, Group, GroupSecret, Kernel, Member, Start, StreamId,
};

/// A device in a group of which all members began in epoch 1.
pub struct LiarDevice {
    number: u32,
    members: u32,
    stream: u32,
    secret: fn() -> GroupSecret,
}

impl LiarDevice {
    /// The device `number` of `members`.
    pub fn new(number: u32, members: u32, stream: u32, secret: fn() -> GroupSecret) -> Self {
        Self { number, members, stream, secret }
    }

    /// The stream in which it attests.
    pub(crate) fn stream(&self) -> u32 {
        self.stream
    }

    /// The attestation of `body` as the next statement after `count` others of an epoch. Nothing if
    /// the kernel refuses.
    ///
    /// A header has the counter alone of the statements before: which they were plays no part.
    pub fn attest(&self, epoch: u64, count: usize, body: &[u8]) -> Option<Attestation> {
        let start = Start { device: DeviceId(self.number), epoch: Epoch(epoch), nonce: [0; 16] };
        let mut kernel = Kernel::<1, 8, 64>::start(start);
        let members: Vec<Member> = (0..self.members)
            .map(|device| Member { device: DeviceId(device), epoch: Epoch(1) })
            .collect();
        let stream = StreamId(self.stream);
        let quorum = self.members / 2 + 1;
        let group = Group { stream, algorithm: Algorithm::HmacSha256, quorum, members: &members };
        kernel.open(&(self.secret)(), &group).ok()?;
        let stream = kernel.stream_mut(stream)?;
        for _ in 0..count {
            stream.attest(&[]).ok()?;
        }
        stream.attest(body).ok()
    }
}

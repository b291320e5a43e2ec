// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Calls all of a kernel with 16 streams, so that `trusted/size` can weigh its machine code.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::hint::black_box;

use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Kernel, Member, SigningKey, Start, StreamId,
};

fn main() {
    let member = |device| Member { device: DeviceId(device), epoch: Epoch(1) };
    let members = [member(1), member(2), member(3)];
    let stream = StreamId(black_box(1));
    let start =
        |device, epoch| Start { device: DeviceId(device), epoch: Epoch(epoch), nonce: [0; 16] };
    let open = |start| {
        let mut device = Kernel::<16, 16, 64>::start(start);
        let algorithm = Algorithm::HmacSha256;
        let group = Group { stream, algorithm, quorum: 2, members: &members };
        device.open(&GroupSecret::new(black_box([1; 32])), &group).unwrap();
        device
    };
    let (mut one, mut two, mut three) = (open(start(1, 1)), open(start(2, 1)), open(start(3, 1)));
    let mut restarted = open(start(1, 2));
    let one = one.stream_mut(stream).unwrap();
    let two = two.stream_mut(stream).unwrap();
    let three = three.stream_mut(stream).unwrap();
    let message = black_box(b"message");
    let attestation = one.attest(message).unwrap();
    assert_eq!(one.reissue(1), Ok(attestation));
    assert!(two.check(&attestation, message).is_ok() && two.accept(&attestation, message).is_ok());
    let newcomer = start(1, 2);
    let ballots = [&mut *two, three].map(|it| it.vote(newcomer, DeviceId(2)).unwrap());
    two.admit(newcomer, &ballots).unwrap();
    restarted.stream_mut(stream).unwrap().synchronize(DeviceId(2), &ballots).unwrap();
    let key = SigningKey::new(&black_box([2; 32]));
    println!("{:?}", key.sign(one, 1, message).unwrap());
}

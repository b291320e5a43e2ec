// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The costs of the kernel's operations: nanoseconds, the least of many rounds, by message length.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::hint::black_box;
use std::time::Instant;

use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Kernel, Member, SigningKey, Start, StreamId,
    verify_signature,
};

const STREAM: StreamId = StreamId(1);

fn main() {
    println!("bytes  HMAC-SHA-256: attest  check   BLAKE3: attest  check   Ed25519: sign  verify");
    for length in [64, 128, 512, 1024, 4096, 16_384, 32_768] {
        let message = vec![7; length];
        let [slow_attest, slow_check] = costs(Algorithm::HmacSha256, &message);
        let [fast_attest, fast_check] = costs(Algorithm::Blake3, &message);
        let [sign, verify] = signature_costs(&message);
        println!(
            "{length:5} {slow_attest:21} {slow_check:6} {fast_attest:16} {fast_check:6} {sign:15} {verify:7}"
        );
    }
}

fn device(algorithm: Algorithm) -> Kernel<1, 1, 4> {
    let members = [Member { device: DeviceId(1), epoch: Epoch(1) }];
    let mut device = Kernel::start(Start { device: DeviceId(1), epoch: Epoch(1), nonce: [0; 16] });
    let group = Group { stream: STREAM, algorithm, quorum: 1, members: &members };
    device.open(&GroupSecret::new([1; 32]), &group).unwrap();
    device
}

fn costs(algorithm: Algorithm, message: &[u8]) -> [u128; 2] {
    let mut device = device(algorithm);
    let stream = device.stream_mut(STREAM).unwrap();
    let attest = least(|| stream.attest(message));
    let attestation = stream.attest(message).unwrap();
    [attest, least(|| stream.check(&attestation, message))]
}

fn signature_costs(message: &[u8]) -> [u128; 2] {
    let mut device = device(Algorithm::HmacSha256);
    let attestation = device.stream_mut(STREAM).unwrap().attest(message).unwrap();
    let key = SigningKey::new(&[2; 32]);
    let stream = device.stream(STREAM).unwrap();
    let sign = least(|| key.sign(stream, 1, message));
    let signature = key.sign(stream, 1, message).unwrap();
    let (public_key, header) = (key.public_key(), attestation.header_bytes());
    let verify = || verify_signature(&public_key, &header, message, &signature);
    [sign, least(verify)]
}

/// The least time of a call: what other processes take is left out.
fn least<T>(mut call: impl FnMut() -> T) -> u128 {
    let mut round = || {
        let begin = Instant::now();
        black_box(call());
        begin.elapsed().as_nanos()
    };
    (0..2000).map(|_| round()).min().unwrap_or_default()
}

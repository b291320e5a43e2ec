// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints vectors/attestations.json: `cargo run -p smt-attestation --all-features --example
//! make_attestation_vectors`. vectors/check.py checks it with other code.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use smt_attestation::{
    Algorithm, DeviceId, Epoch, Group, GroupSecret, Kernel, Member, SigningKey, Start, StreamId,
};

type Device = Kernel<1, 4, 16>;

const STREAM: StreamId = StreamId(0x00c0_ffee);
const SECRET: [u8; 32] = *b"the secret of a group of devices";
const SEED: [u8; 32] = *b"a device's seed of its signature";

fn main() {
    let mut groups = Vec::new();
    for algorithm in [Algorithm::HmacSha256, Algorithm::Blake3] {
        groups.push(group(algorithm, 1, &[1]));
        groups.push(group(algorithm, 2, &[3, 0x0102_0304, u32::MAX]));
    }
    let fields = [
        ("version", 0, 1),
        ("algorithm", 1, 1),
        ("kind", 2, 1),
        ("zero", 3, 1),
        ("stream", 4, 4),
        ("device", 8, 4),
        ("length", 12, 4),
        ("epoch", 16, 8),
        ("counter", 24, 8),
        ("mac", 32, 32),
    ];
    let layout: Vec<_> = fields
        .iter()
        .map(|(name, offset, length)| json!({ "name": name, "offset": offset, "length": length }))
        .collect();
    let vectors = json!({ "layout": layout, "groups": groups });
    println!("{}", serde_json::to_string_pretty(&vectors).unwrap());
}

/// A group whose first member attests messages of many lengths, and votes for the last one.
fn group(algorithm: Algorithm, quorum: u32, devices: &[u32]) -> Value {
    let epoch = |device: u32| Epoch(u64::from(device) << 20 | 1);
    let members: Vec<_> =
        devices.iter().map(|&it| Member { device: DeviceId(it), epoch: epoch(it) }).collect();
    let stream = STREAM;
    let own = members[0];
    let mut device = Device::start(Start { device: own.device, epoch: own.epoch, nonce: [0; 16] });
    let group = Group { stream, algorithm, quorum, members: &members };
    device.open(&GroupSecret::new(SECRET), &group).unwrap();
    let key = SigningKey::new(&SEED);
    let public_key = HEXLOWER.encode(&key.public_key());
    let mut messages = Vec::new();
    for length in [0, 1, 31, 32, 64, 1023, 1024, 1025, 4096 + 7] {
        let message: Vec<u8> = (0..length).map(|it| (it % 251) as u8).collect();
        let attestation = device.stream_mut(stream).unwrap().attest(&message).unwrap();
        let counter = device.stream(stream).unwrap().sent();
        messages.push(json!({
            "length": length,
            "counter": counter,
            "attestation": HEXLOWER.encode(&attestation.0),
            "signature": HEXLOWER.encode(&key.sign(device.stream(stream).unwrap(), counter, &message).unwrap()),
        }));
    }
    let votes = if members.len() > 1 { vec![vote(&mut device, &members)] } else { Vec::new() };
    let members: Vec<_> =
        members.iter().map(|it| json!({ "device": it.device.0, "epoch": it.epoch.0 })).collect();
    json!({
        "algorithm": algorithm as u8, "stream": stream.0, "quorum": quorum, "members": members,
        "secret": HEXLOWER.encode(&SECRET), "public_key": public_key, "messages": messages,
        "votes": votes,
    })
}

fn vote(device: &mut Device, members: &[Member]) -> Value {
    let last = members[members.len() - 1];
    let newcomer =
        Start { device: last.device, epoch: Epoch(last.epoch.0 + 1), nonce: *b"sixteen bytes ok" };
    let ballot = device.stream_mut(STREAM).unwrap().vote(newcomer, members[1].device).unwrap();
    json!({
        "newcomer": newcomer.device.0, "epoch": newcomer.epoch.0,
        "nonce": HEXLOWER.encode(&newcomer.nonce), "peer": members[1].device.0,
        "peer_epoch": members[1].epoch.0, "counter": device.stream(STREAM).unwrap().sent(),
        "attestation": HEXLOWER.encode(&ballot.attestation.0),
    })
}

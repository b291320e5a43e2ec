// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The refusals of a USIG over a device.

use smt_attestation::{DeviceId, Epoch, Start};
use smt_device_client::{Device, DeviceError};
use smt_usig::{DeviceSignature, Introduction};
use usig::{Count, Counter, ReplicaId, Usig, UsigError};

use crate::group::{STREAM, damaged, foreign, library, members, process, restarted, usig};

fn replica(number: u64) -> ReplicaId {
    ReplicaId::from_u64(number)
}

fn is_invalid(verified: Result<(), UsigError>) -> bool {
    matches!(verified, Err(UsigError::InvalidSignature))
}

/// Member 0 signs, and member 1 verifies.
fn a_pair<A: Device, B: Device>(one: A, two: B) {
    let (mut one, mut two) = (usig(one), usig(two));
    let introduction = one.attest().unwrap();
    assert!(two.add_remote_party(replica(0), introduction));
    let first = one.sign("one").unwrap();
    let second = one.sign("another").unwrap();
    assert_eq!([first.counter(), second.counter()], [Count(0), Count(1)]);
    // In any order and as often as one likes: nothing changes.
    for _ in 0..2 {
        assert!(two.verify(replica(0), "another", &second).is_ok());
        assert!(two.verify(replica(0), "one", &first).is_ok());
    }
    // One counter has one message.
    assert!(is_invalid(two.verify(replica(0), "another", &first)));
    assert!(is_invalid(two.verify(replica(0), "one", &second)));
    let forged = DeviceSignature::try_from(damaged(first.attestation())).unwrap();
    assert!(is_invalid(two.verify(replica(0), "one", &forged)));
    // Another device's attestation is not this one's.
    let own = two.sign("one").unwrap();
    assert!(is_invalid(two.verify(replica(0), "one", &own)));
    let unknown = two.verify(replica(1), "one", &own);
    assert!(matches!(unknown, Err(UsigError::UnknownId(id)) if id == replica(1)));
}

#[test]
fn a_library_signs_each_message_under_a_counter_of_its_own() {
    a_pair(library(0), library(1));
}

#[test]
fn a_device_process_signs_each_message_under_a_counter_of_its_own() {
    let (one, two) = (process(0), process(1));
    let connect = |it: &smt_loopback::DeviceProcess| crate::group::opened(it.connect().unwrap());
    a_pair(connect(&one), connect(&two));
}

#[test]
fn a_library_and_a_device_process_verify_each_other() {
    let one = process(0);
    a_pair(crate::group::opened(one.connect().unwrap()), library(1));
    let two = process(1);
    a_pair(library(0), crate::group::opened(two.connect().unwrap()));
}

#[test]
fn a_device_without_the_groups_secret_signs_nothing() {
    let (mut liar, mut two) = (usig(foreign(0)), usig(library(1)));
    assert!(two.add_remote_party(replica(0), liar.attest().unwrap()));
    let signature = liar.sign("one").unwrap();
    assert!(is_invalid(two.verify(replica(0), "one", &signature)));
}

#[test]
fn a_replica_has_its_own_device_alone() {
    let mut two = usig(library(1));
    let of = |device| Introduction { device, epoch: 1 };
    assert!(!two.add_remote_party(replica(0), of(2)), "another member's device");
    assert!(!two.add_remote_party(replica(9), of(9)), "no member");
    assert!(two.add_remote_party(replica(0), of(0)));
}

#[test]
fn a_restarted_device_does_not_begin_anew_in_its_old_place() {
    let (mut first, mut again) = (usig(library(0)), usig(restarted(0)));
    let mut two = usig(library(1));
    assert!(two.add_remote_party(replica(0), first.attest().unwrap()));
    let (told, retold) = (first.sign("one").unwrap(), again.sign("another").unwrap());
    assert_eq!(told.counter(), retold.counter());
    assert!(!two.add_remote_party(replica(0), again.attest().unwrap()));
    assert!(two.verify(replica(0), "one", &told).is_ok());
    assert!(is_invalid(two.verify(replica(0), "another", &retold)));
}

#[test]
fn a_vote_of_a_device_is_no_signature() {
    let mut device = library(0);
    let newcomer = Start { device: DeviceId(2), epoch: Epoch(2), nonce: [3; 16] };
    let ballot = device.vote(STREAM, newcomer, DeviceId(0)).unwrap();
    let mut two = usig(library(1));
    assert!(two.add_remote_party(replica(0), Introduction { device: 0, epoch: 1 }));
    let vote = DeviceSignature::try_from(ballot.attestation).unwrap();
    assert!(is_invalid(two.verify(replica(0), ballot.vote.encode(), &vote)));
}

#[test]
fn bytes_that_are_no_attestation_are_no_signature() {
    let signature = usig(library(0)).sign("one").unwrap();
    let [header, mac] = <[[u8; 32]; 2]>::from(signature);
    assert_eq!(DeviceSignature::try_from([header, mac]), Ok(signature));
    let mut zero = header;
    zero[24..].fill(0);
    let mut version = header;
    version[0] = 9;
    for bytes in [zero, version] {
        assert!(DeviceSignature::try_from([bytes, mac]).is_err());
    }
    let encoded = postcard::to_allocvec(&signature).unwrap();
    assert_eq!(encoded.len(), 64);
    assert_eq!(postcard::from_bytes::<DeviceSignature>(&encoded).unwrap(), signature);
    assert!(postcard::from_bytes::<DeviceSignature>(&[0; 64]).is_err());
}

#[test]
fn a_device_that_has_ended_is_told_from_a_forged_message() {
    let process = process(0);
    let mut one = usig(crate::group::opened(process.connect().unwrap()));
    let mut two = usig(library(1));
    let introduction = two.attest().unwrap();
    assert!(one.add_remote_party(replica(1), introduction));
    let signature = two.sign("one").unwrap();
    let watch = one.watch();
    assert!(is_invalid(one.verify(replica(1), "another", &signature)));
    assert!(watch.failure().is_none(), "the message is refused");
    drop(process);
    assert!(one.verify(replica(1), "one", &signature).is_err());
    assert!(matches!(watch.failure(), Some(DeviceError::Ended)));
    assert!(matches!(one.sign("more"), Err(UsigError::SigningFailed)));
}

#[test]
fn a_stream_that_is_not_open_is_no_usig() {
    let device = library(0);
    let parties = smt_usig::Parties::OfGroup(members());
    let usig = smt_usig::DeviceUsig::new(device, smt_attestation::StreamId(7), parties);
    assert!(matches!(usig, Err(DeviceError::UnknownStream(_))));
}

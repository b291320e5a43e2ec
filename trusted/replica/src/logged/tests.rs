// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logs of a node that counts: what is written, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_attestor::{Attestor, OwnDevice};
use smt_journal::ModelDisk;

use super::*;
use crate::group::{Group, Options};
use crate::node::{Asker, Effect};

/// A node that adds numbers. A message of one byte is a number, one of two bytes a question, and a
/// tick adds one while the sum is odd.
struct Adder {
    device: Attestor,
    sum: u8,
    outputs: Vec<u8>,
}

const NONCE: [u8; 16] = [7; 16];

fn start(nonce: [u8; 16]) -> Result<Adder, LoggedError> {
    let keys = vec![[0; 32]; 3];
    let group = Group::new(1, BTreeMap::new(), keys, Options::default());
    let start = Start { device: DeviceId(0), epoch: Epoch(1), nonce };
    let secret = GroupSecret::new([3; 32]);
    let device = group.open(OwnDevice::Library { secret, start, signing_key: None })?;
    Ok(Adder { device, sum: nonce[0], outputs: Vec::new() })
}

impl Node for Adder {
    type Message = Vec<u8>;
    type Output = u8;

    const SYSTEM: &'static str = "adder";
    const VERSION: u32 = 2;

    fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
        (bytes.len() < 3).then(|| bytes.to_vec())
    }

    fn encode(message: &Vec<u8>) -> Vec<u8> {
        message.clone()
    }

    fn statement(message: Vec<u8>) -> Result<Attested, Vec<u8>> {
        Err(message)
    }

    fn message(statement: Attested) -> Vec<u8> {
        statement.body
    }

    fn device(&self) -> &Attestor {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Attestor {
        &mut self.device
    }

    fn begin(&mut self) {
        self.sum += 1;
    }

    fn effect_of(&self, message: &Vec<u8>) -> Effect {
        match message[..] {
            [0] | [] => Effect::Nothing,
            [asker, _] => Effect::Answer(Asker::Node(asker.into())),
            _ => Effect::Change,
        }
    }

    fn may_take(&self, _: &Attested) -> bool {
        false
    }

    fn take(&mut self, message: Vec<u8>) {
        self.sum += message[0];
        self.outputs.push(self.sum);
    }

    fn tick(&mut self) {
        self.sum += self.sum % 2;
    }

    fn is_idle(&self) -> bool {
        self.sum.is_multiple_of(2)
    }

    fn question(&self) -> u8 {
        200
    }

    fn advance(&mut self) {}

    fn answer(&self, _: &Vec<u8>, may_be_long: bool) -> Vec<u8> {
        if may_be_long { vec![self.sum; 2] } else { vec![self.sum] }
    }

    fn has_long_answer(&self, message: &Vec<u8>) -> bool {
        message[1] == 1
    }

    fn outputs(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outputs)
    }

    fn snapshot(&self) -> Vec<u8> {
        vec![self.sum]
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<bool, AttestorError> {
        Ok(snapshot.first().map(|sum| self.sum = *sum).is_some())
    }
}

const OWNER: Owner = Owner { device: 0, epoch: 1, configuration: [0; 32] };

fn open(disk: ModelDisk) -> Result<Logged<Adder, ModelDisk>, LoggedError> {
    Logged::open(OWNER, NONCE, disk, start)
}

/// A log with these records.
fn disk(records: &[Record]) -> ModelDisk {
    let records = records.iter().map(encode);
    let owner = OWNER.encode::<Adder>();
    Journal::begin(ModelDisk::default(), &owner, records).unwrap().into_disk()
}

#[test]
fn a_node_that_was_killed_is_what_it_was_and_sends_what_followed_last() {
    let mut adder = open(ModelDisk::default()).unwrap();
    adder.receive(&[3]);
    adder.receive(&[2]);
    adder.tick();
    assert_eq!(adder.commit().unwrap(), [11, 13]);
    assert_eq!(adder.node().sum, 14);
    let mut again = open(adder.into_disk()).unwrap();
    assert_eq!((again.node().sum, again.replayed()), (14, 3));
    again.receive(&[1]);
    assert_eq!(again.commit().unwrap().last(), Some(&15));
}

#[test]
fn the_nonce_of_the_first_start_stays() {
    let disk = open(ModelDisk::default()).unwrap().into_disk();
    let again = Logged::open(OWNER, [100; 16], disk, start).unwrap();
    assert_eq!(again.node().sum, 8);
}

#[test]
fn messages_that_change_nothing_and_idle_ticks_leave_nothing_in_the_log() {
    let mut adder = open(ModelDisk::default()).unwrap();
    let length = adder.log_length();
    for bytes in [&[0][..], &[], &[1, 2, 3], &[1, 0]] {
        adder.receive(bytes);
        adder.tick();
        adder.commit().unwrap();
    }
    assert_eq!(adder.log_length(), length);
    adder.receive(&[1]);
    adder.receive(&[1]);
    adder.commit().unwrap();
    assert_eq!(adder.node().sum, 9, "a copy that comes before the commit is none");
    let length = adder.log_length();
    adder.tick();
    assert_eq!(adder.commit().unwrap(), []);
    assert!(adder.log_length() > length);
    adder.tick();
    assert_eq!(adder.commit().unwrap(), [200], "an idle node asks");
}

#[test]
fn an_asker_has_one_answer_in_each_tick_and_a_long_one_in_each_eighth() {
    let mut adder = open(ModelDisk::default()).unwrap();
    let mut answers = || {
        adder.receive(&[5, 1]);
        adder.receive(&[5, 1]);
        let outputs = adder.commit().unwrap();
        adder.receive(&[5, 1]);
        assert_eq!(adder.commit().unwrap(), []);
        adder.tick();
        outputs.iter().filter(|it| **it == 8).count()
    };
    let counts: Vec<usize> = (0..17).map(|_| answers()).collect();
    let long = |it: usize| if it.is_multiple_of(8) { 2 } else { 1 };
    assert_eq!(counts, (0..17).map(long).collect::<Vec<_>>());
}

#[test]
fn a_log_that_is_begun_anew_has_the_node_and_the_inputs_that_wait() {
    let mut adder = open(ModelDisk::default()).unwrap();
    adder.receive(&[3]);
    adder.commit().unwrap();
    adder.receive(&[4]);
    let old = adder.move_to(ModelDisk::default()).unwrap();
    assert_eq!(open(old).unwrap().node().sum, 11, "what waits is in the new log alone");
    adder.commit().unwrap();
    let again = open(adder.into_disk()).unwrap();
    assert_eq!((again.node().sum, again.replayed()), (15, 1));
}

#[test]
fn a_log_whose_snapshot_is_cut_off_or_comes_before_its_start_is_refused() {
    let part = || Record::Part(vec![1]);
    let begin = || Record::Start(NONCE);
    let message = || Record::Message(vec![1]);
    for records in [
        vec![begin(), part()],
        vec![part(), Record::Whole],
        vec![begin(), begin()],
        vec![begin(), message(), part()],
        vec![begin(), message(), Record::Whole],
        vec![message()],
        vec![begin(), Record::Whole],
    ] {
        let error = open(disk(&records)).err();
        assert!(matches!(error, Some(LoggedError::Journal(JournalError::Unfit))), "{error:?}");
    }
    assert_eq!(open(disk(&[begin(), part(), Record::Whole, message()])).unwrap().node().sum, 2);
}

#[test]
fn a_log_of_an_older_version_or_of_another_owner_is_refused_as_such() {
    let of = |owner: Vec<u8>| Journal::open(ModelDisk::default(), &owner, |_| ()).unwrap();
    let older = encode(&("SMT adder log", 1_u32, 0_u32, 1_u64, [0_u8; 32]));
    let error = open(of(older).into_disk()).err();
    assert!(matches!(error, Some(LoggedError::Journal(JournalError::OlderFormat))), "{error:?}");
    let others = [
        Owner { device: 1, ..OWNER },
        Owner { epoch: 2, ..OWNER },
        Owner { configuration: [1; 32], ..OWNER },
    ];
    for owner in others {
        let error = open(of(owner.encode::<Adder>()).into_disk()).err();
        assert!(matches!(error, Some(LoggedError::Journal(JournalError::OtherOwner))), "{error:?}");
    }
}

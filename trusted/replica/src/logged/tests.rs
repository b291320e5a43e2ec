// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logs of a node that counts: what is written, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use smt_attestation::{DeviceId, Epoch, GroupSecret, Start};
use smt_attestor::{Attestor, AttestorError, OwnDevice};
use smt_journal::{JournalError, ModelDisk};

use super::*;
use crate::group::{Group, Options};

/// A node that adds numbers, each so many times. A message of one byte is a number, one of two
/// bytes a question, and a tick adds one while the sum is odd.
struct Adder {
    device: Attestor,
    times: u8,
    sum: u8,
    made: Statements,
    is_over: bool,
    is_live: bool,
    outputs: Vec<u8>,
}

/// The sum is too great.
#[derive(Debug, thiserror::Error)]
#[error("the sum is too great")]
struct TooGreat;

type AdderError = LoggedError<TooGreat>;

const NONCE: [u8; 16] = [7; 16];

fn start(nonce: [u8; 16]) -> Result<Adder, AdderError> {
    let keys = vec![[0; 32]; 3];
    let group = Group::new(1, BTreeMap::new(), keys, Options::default());
    let start = Start { device: DeviceId(0), epoch: Epoch(1), nonce };
    let secret = GroupSecret::new([3; 32]);
    let device = group.open(OwnDevice::Library { secret, start, signing_key: None })?;
    let (times, sum, made) = (1, nonce[0], Statements::default());
    let (is_over, is_live, outputs) = (false, false, Vec::new());
    Ok(Adder { device, times, sum, made, is_over, is_live, outputs })
}

impl Node for Adder {
    type Message = Vec<u8>;
    type Output = u8;
    type Start = [u8; 16];
    type Error = TooGreat;

    const SYSTEM: &'static str = "adder";
    const VERSION: u32 = 2;

    fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
        (bytes.len() < 3).then(|| bytes.to_vec())
    }

    fn device(&self) -> &Attestor {
        &self.device
    }

    fn device_mut(&mut self) -> &mut Attestor {
        &mut self.device
    }

    fn failure(&mut self) -> Option<AdderError> {
        self.is_over.then_some(LoggedError::Node(TooGreat))
    }

    fn begin(&mut self) {
        self.sum += 1;
    }

    fn effect_of(&mut self, message: &Vec<u8>) -> Effect {
        match message[..] {
            [0] | [] => Effect::Nothing,
            [asker, _] => Effect::Answer(Asker::Node(asker.into())),
            _ => Effect::Change,
        }
    }

    fn take(&mut self, message: Vec<u8>) {
        let added = message[0].saturating_mul(self.times);
        let Some(sum) = self.sum.checked_add(added) else {
            self.is_over = true;
            return;
        };
        self.sum = sum;
        self.made = Statements { count: self.made.count + 1, digest: [sum; 32] };
        self.outputs.extend(self.is_live.then_some(self.sum));
    }

    fn tick(&mut self) {
        self.sum += self.sum % 2;
    }

    fn is_idle(&self) -> bool {
        self.sum.is_multiple_of(2)
    }

    fn idle_tick(&mut self) -> Option<u8> {
        Some(200)
    }

    fn answer(&mut self, _: &Vec<u8>, may_be_long: bool) -> Vec<u8> {
        if may_be_long { vec![self.sum; 2] } else { vec![self.sum] }
    }

    fn has_long_answer(&self, message: &Vec<u8>) -> bool {
        message[1] == 1
    }

    fn outputs(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outputs)
    }

    fn go_live(&mut self) {
        self.is_live = true;
    }

    fn statements(&self) -> Statements {
        self.made
    }

    fn snapshot(&self) -> Option<Vec<u8>> {
        (self.sum < 100).then(|| encode(&(self.sum, self.made)))
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<bool, AttestorError> {
        let snapshot = crate::decode(snapshot);
        Ok(snapshot.map(|it| (self.sum, self.made) = it).is_some())
    }
}

const OWNER: Owner = Owner { device: 0, epoch: 1, configuration: [0; 32] };

fn open(disk: ModelDisk) -> Result<Logged<Adder, ModelDisk>, AdderError> {
    Logged::open(OWNER, NONCE, disk, start, |_| ())
}

/// A log with these records.
fn disk(records: &[Record<[u8; 16]>]) -> ModelDisk {
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
    let again = Logged::open(OWNER, [100; 16], disk, start, |_| ()).unwrap();
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
    let part = || Record::Part(encode(&(1_u8, Statements::default())));
    let begin = || Record::Start(NONCE);
    let message = || Record::Message(encode(&vec![1_u8]));
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
fn a_node_takes_nothing_before_the_disk_has_it() {
    let mut adder = open(ModelDisk::default()).unwrap();
    adder.fail_next_sync();
    adder.receive(&[3]);
    adder.tick();
    assert!(matches!(adder.commit().err(), Some(LoggedError::Journal(JournalError::Disk(_)))));
    assert!(matches!(adder.commit().err(), Some(LoggedError::Journal(JournalError::Stopped))));
    assert_eq!(adder.node().sum, 8);
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

#[test]
fn a_log_without_the_form_of_a_snapshot_goes_on() {
    let mut adder = open(ModelDisk::default()).unwrap();
    adder.receive(&[100]);
    adder.commit().unwrap();
    let error = adder.move_to(ModelDisk::default()).err();
    assert!(matches!(error, Some(LoggedError::NoSnapshot)), "{error:?}");
    adder.receive(&[1]);
    adder.commit().unwrap();
    assert_eq!(open(adder.into_disk()).unwrap().node().sum, 109);
}

#[test]
fn an_input_of_the_host_is_taken_as_often_as_it_comes() {
    let mut adder = open(ModelDisk::default()).unwrap();
    assert!(adder.local(vec![3]) && adder.local(vec![3]));
    assert!(!adder.local(vec![0]) && !adder.local(vec![5, 1]));
    assert_eq!(adder.commit().unwrap(), [11, 14]);
    assert_eq!(open(adder.into_disk()).unwrap().node().sum, 14);
}

#[test]
fn a_program_that_makes_other_statements_of_its_log_is_refused() {
    let mut adder = open(ModelDisk::default()).unwrap();
    for number in [1, 2] {
        adder.receive(&[number]);
        adder.commit().unwrap();
    }
    adder.commit().unwrap();
    let disk = adder.into_disk();
    assert_eq!(open(disk.clone()).unwrap().node().sum, 11);
    let other = |nonce| start(nonce).map(|it| Adder { times: 2, ..it });
    let error = Logged::open(OWNER, NONCE, disk, other, |_| ()).err();
    assert!(matches!(error, Some(LoggedError::OtherStatements(1))), "{error:?}");
}

#[test]
fn a_node_that_ends_does_so_now_and_after_a_restart() {
    let mut adder = open(ModelDisk::default()).unwrap();
    adder.receive(&[250]);
    let error = adder.commit().err();
    assert!(matches!(error, Some(LoggedError::Node(TooGreat))), "{error:?}");
    let error = open(adder.into_disk()).err();
    assert!(matches!(error, Some(LoggedError::Node(TooGreat))), "{error:?}");
}

#[test]
fn outputs_of_a_log_are_handed_out_in_order_and_those_of_the_last_input_leave_again() {
    let mut adder = open(ModelDisk::default()).unwrap();
    [1, 2, 3].into_iter().for_each(|it| adder.receive(&[it]));
    assert_eq!(adder.commit().unwrap(), [9, 11, 14]);
    let disk = adder.into_disk();
    for leaves in [true, false] {
        let live = |nonce| start(nonce).map(|it| Adder { is_live: true, ..it });
        let mut seen = Vec::new();
        let again = |outputs: &mut Vec<u8>| {
            seen.extend_from_slice(outputs);
            outputs.retain(|_| leaves);
        };
        let mut adder = Logged::open(OWNER, NONCE, disk.clone(), live, again).unwrap();
        assert_eq!(seen, [9, 11, 14]);
        assert_eq!(adder.commit().unwrap(), Vec::from_iter(leaves.then_some(14)));
    }
}

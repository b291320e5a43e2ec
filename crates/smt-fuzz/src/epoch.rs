// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Key epochs of one direction (SPEC §5.5, §7.3): sealing keys, opening keys, messages between
//! them.
//!
//! 1. The sender seals records of a few messages, again too, and moves to new keys.
//! 2. The receiver gets them in any order, under the epoch byte that the input says.
//! 3. A simple model of both sides says which key is meant, and whether it opens.
//!
//! [`NonceGuard`] sees to it that nothing is ever sealed under a number that sealed something else.

use std::collections::BTreeMap;
use std::sync::Arc;

use arbitrary::Arbitrary;
use smt_record::{
    AwsLc, CryptoProvider, FrozenMessage, IdAllocator, IdLayout, ImportedIdentity, ImportedKey,
    IndexBits, KeyLimits, KeyUsedUp, OpenKeys, SealError, SealKeys, Side, Suite,
};
use smt_testkit::{NonceGuard, WatchedCipher};
use smt_wire::{Geometry, InnerHeader, Kind};

/// The keys' limits, and the steps of the case.
#[derive(Arbitrary, Debug)]
pub struct Case {
    suite: u8,
    records: u8,
    update_at: u8,
    steps: Vec<Step>,
}

/// One step of a case.
#[derive(Arbitrary, Debug)]
enum Step {
    /// The sender seals the next record of a message, if there is one.
    Seal { message: u8 },
    /// It seals a record again.
    Again { message: u8, record: u8 },
    /// It counts control packets.
    Controls(u8),
    /// It moves to new keys, if it may.
    Update,
    /// The receiver's EPOCH_ACK arrives.
    Finish,
    /// The receiver asks for new keys.
    Request { epoch: u8 },
    /// The receiver gets a record under an epoch byte that differs by this number.
    Deliver { sealed: u8, epoch: i8 },
    /// The receiver gets EPOCH_DONE.
    Done { epoch: i8 },
}

/// Runs all steps.
pub fn check(case: &Case) {
    let mut channel = Channel::new(case);
    for step in case.steps.iter().take(STEPS_MAX) {
        channel.step(step);
    }
}

/// Both sides, and the model's knowledge of them.
struct Channel {
    limits: KeyLimits,
    seal: SealKeys,
    open: OpenKeys,
    messages: Vec<FrozenMessage>,
    /// Epoch and bytes of each record, by message and index.
    sealed: BTreeMap<(usize, u32), (u32, Vec<u8>)>,
    sender: Sender,
    /// The receiver's current and previous epoch.
    current: u32,
    previous: Option<u32>,
}

/// The sender, as the specification has it.
#[derive(Default)]
struct Sender {
    epoch: u32,
    previous: Option<u32>,
    records: u64,
    controls: u64,
    is_asked: bool,
}

impl Channel {
    fn new(case: &Case) -> Self {
        let suite = Suite::ALL[usize::from(case.suite) % 3];
        let records = 16 + u64::from(case.records % 32);
        let limits = KeyLimits::new(records, 1 + u64::from(case.update_at) % records, 16);
        let limits = limits.expect("in range");
        let identity = ImportedIdentity { key_name: b"", client: b"client", server: b"server" };
        let key = ImportedKey::new(&AwsLc, suite, b"a secret of both sides", &identity);
        let secrets = || key.session_secrets(&AwsLc, &[7; 32]).client;
        let guard = Arc::new(WatchedCipher::new(NonceGuard::default()));
        let crypto = CryptoProvider::aws_lc().with_aead(guard);
        let bits = IndexBits::new(8).expect("8 to 17");
        let layout = IdLayout::new(bits, bits, 0).expect("one stripe");
        let mut ids = IdAllocator::new(layout, Side::Client, 0);
        let messages = (0..MESSAGES).map(|length| {
            let body = vec![length as u8; 40 + length * 500];
            let header = InnerHeader {
                true_length: body.len() as u32,
                padded_length: 40 + body.len() as u32,
                kind: Kind::Request,
                deadline_us: 1,
                reply_unscheduled: 1_000,
                failure: None,
                has_metadata: false,
                parts: smt_wire::PartMarks::default(),
                window: 64,
                ack: None,
            };
            let id = ids.next(u64::MAX).expect("ids have 56 bits");
            let geometry = Geometry::new(64, 64).expect("in range");
            FrozenMessage::new(id, &header, body.into(), geometry, bits).expect("it is short")
        });
        Self {
            limits,
            messages: messages.collect(),
            seal: SealKeys::with_provider(secrets(), suite, limits, None, crypto),
            open: OpenKeys::new(secrets(), suite, limits, None),
            sealed: BTreeMap::new(),
            sender: Sender::default(),
            current: 0,
            previous: None,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Seal { message } => {
                let message = usize::from(*message) % MESSAGES;
                let next = self.messages[message].sealed_records();
                self.seal_record(message, next);
            }
            Step::Again { message, record } => {
                let message = usize::from(*message) % MESSAGES;
                let records = self.messages[message].records();
                self.seal_record(message, u32::from(*record) % (records + 1));
            }
            Step::Controls(count) => (0..*count).for_each(|_| self.count_control()),
            Step::Update => self.update(),
            Step::Finish => {
                self.seal.finish_previous();
                self.sender.previous = None;
            }
            Step::Request { epoch } => {
                self.seal.request_update((*epoch).into());
                self.sender.is_asked |= self.sender.epoch == u32::from(*epoch);
            }
            Step::Deliver { sealed, epoch } => self.deliver((*sealed).into(), *epoch),
            Step::Done { epoch } => self.done(*epoch),
        }
        self.compare();
    }

    fn seal_record(&mut self, at: usize, index: u32) {
        let message = &mut self.messages[at];
        let (next, records) = (message.sealed_records(), message.records());
        let mut out = [0xEE; 100];
        let sealed = message.seal(index, &mut self.seal, &mut out);
        let sender = &mut self.sender;
        if index >= records || index > next {
            let is_refused = matches!(
                sealed,
                Err(SealError::NoSuchRecord { .. } | SealError::OutOfOrder { .. })
            );
            assert!(is_refused && out == [0xEE; 100]);
        } else if let Some((epoch, before)) = self.sealed.get(&(at, index)) {
            // Sealed before: the same bytes for as long as its key is there.
            if *epoch == sender.epoch || Some(*epoch) == sender.previous {
                assert_eq!(sealed, Ok(before.len()));
                assert_eq!(&out[..before.len()], before, "other bytes under one number");
            } else {
                let id = message.id();
                assert_eq!(sealed, Err(SealError::EpochFinished { id, index }));
            }
        } else if sender.records >= self.limits.records() {
            let (epoch, sealed_before) = (sender.epoch, sender.records);
            let used_up = KeyUsedUp { epoch, sealed: sealed_before };
            assert_eq!(sealed, Err(SealError::KeyUsedUp(used_up)));
        } else {
            let length = sealed.expect("nothing forbids it");
            sender.records += 1;
            let record = (sender.epoch, out[..length].to_vec());
            self.sealed.insert((at, index), record);
        }
    }

    fn count_control(&mut self) {
        let is_allowed = self.sender.controls < self.limits.controls();
        assert_eq!(self.seal.count_control().is_ok(), is_allowed);
        self.sender.controls += u64::from(is_allowed);
    }

    fn update(&mut self) {
        let may = self.sender.previous.is_none();
        assert_eq!(self.seal.can_update(), may);
        if may {
            self.seal.update();
            self.sender = Sender {
                epoch: self.sender.epoch + 1,
                previous: Some(self.sender.epoch),
                ..Sender::default()
            };
        }
    }

    fn deliver(&mut self, which: usize, distance: i8) {
        let Some((name, (sealed_epoch, record))) =
            self.sealed.iter().nth(which % self.sealed.len().max(1))
        else {
            return;
        };
        let byte = (*sealed_epoch as u8).wrapping_add_signed(distance);
        // SPEC §7.3: the next keys only when nothing older than the current epoch is open.
        let next = self.previous.is_none().then_some(self.current + 1);
        let meant = [Some(self.current), self.previous, next];
        let meant = meant.into_iter().flatten().find(|epoch| *epoch as u8 == byte);
        let candidate = self.open.data(byte);
        assert_eq!(candidate.as_ref().ok().map(|(epoch, _)| *epoch), meant);
        let Ok((epoch, aead)) = candidate else {
            return;
        };
        let (ciphertext, tag) = record[5..].split_last_chunk().expect("a record has a tag");
        let sequence = (name.0 as u64) << 9 | u64::from(name.1);
        let mut out = vec![0; ciphertext.len()];
        let opened = aead.open(sequence, &record[..5], ciphertext, tag, &mut out);
        assert_eq!(opened.is_ok(), epoch == *sealed_epoch, "epoch {epoch} of {sealed_epoch}");
        if opened.is_err() {
            self.open.failed();
            return;
        }
        let is_new = epoch > self.current;
        assert_eq!(self.open.opened(epoch), is_new);
        if is_new {
            self.previous = Some(self.current);
            self.current = epoch;
        }
    }

    fn done(&mut self, distance: i8) {
        let epoch = self.current.saturating_add_signed(distance.into());
        assert_eq!(self.open.finish(epoch), epoch < self.current);
        if epoch < self.current && self.previous.is_some_and(|previous| previous <= epoch) {
            self.previous = None;
        }
    }

    fn compare(&self) {
        let sender = &self.sender;
        assert_eq!(self.seal.epoch(), sender.epoch);
        assert_eq!(self.seal.previous(), sender.previous);
        assert_eq!(self.seal.records_left(), self.limits.records() - sender.records);
        let is_well_used = sender.records.max(sender.controls) >= self.limits.update_at();
        assert_eq!(self.seal.wants_update(), sender.is_asked || is_well_used);
        assert_eq!(self.open.epoch(), self.current);
        assert_eq!(self.open.previous(), self.previous);
    }
}

/// Messages, of growing length.
const MESSAGES: usize = 4;
/// More would only cost time.
const STEPS_MAX: usize = 500;

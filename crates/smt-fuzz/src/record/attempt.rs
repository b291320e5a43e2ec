// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Attempts of an attacker on a message's records.

use arbitrary::Arbitrary;
use smt_wire::InnerHeader;

use super::keys;
use super::message::Message;

/// One try to have something opened. Records are named by numbers of any size.
#[derive(Arbitrary, Debug)]
pub enum Attempt {
    /// The packet's header claims another padded length.
    Claim {
        /// The record.
        record: u8,
        /// The claim.
        padded: u32,
    },
    /// A record stands in another's place, or under another's number.
    Move {
        /// The record.
        record: u8,
        /// Where it is put.
        to: u8,
        /// The number that it is opened with is changed in these bits.
        number: u64,
    },
    /// A record is opened with another key: another purpose's, direction's, suite's.
    Key {
        /// The record.
        record: u8,
        /// Which secret.
        secret: u8,
    },
    /// Bits are flipped.
    Flip {
        /// The record.
        record: u8,
        /// Where, and which.
        flips: Vec<(u16, u8)>,
    },
    /// The record is cut, and other bytes follow.
    Cut {
        /// The record.
        record: u8,
        /// Bytes that stay.
        keep: u16,
        /// Bytes behind them.
        tail: Vec<u8>,
    },
    /// A peer that has the keys seals a plaintext with changed bytes.
    Sealed {
        /// The record.
        record: u8,
        /// Places, and the bytes that stand there.
        changes: Vec<(u16, u8)>,
    },
}

impl Attempt {
    /// Makes the attempt; panics if it succeeds and should not, or the other way round.
    pub(super) fn make(&self, message: &Message) {
        match self {
            Self::Claim { record, padded } => {
                // Records past the first are placed by the authenticated length.
                let index = pick(message, *record);
                if index == 0 {
                    let record = &message.records[0];
                    expect(message, (0, *padded), message.sequence(0), record);
                }
            }
            Self::Move { record, to, number } => {
                let record = &message.records[pick(message, *record) as usize];
                // One place past the last too.
                let to = u32::from(*to) % (message.records.len() as u32 + 1);
                let sequence = message.sequence(to) ^ number;
                expect(message, (to, message.header.padded_length), sequence, record);
            }
            Self::Key { record, secret } => {
                let index = pick(message, *record);
                let aead = keys::aead_of(message.suite, 1 + secret % 3);
                let record = message.records[index as usize].as_slice();
                let (padded, sequence) = (message.header.padded_length, message.sequence(index));
                let opened = message.open(index, padded, sequence, (&*aead, record));
                assert!(opened.is_err(), "a record opens under another key");
            }
            Self::Flip { record, flips } => {
                let index = pick(message, *record);
                let mut record = message.records[index as usize].clone();
                for (at, bits) in flips {
                    let at = usize::from(*at) % record.len();
                    record[at] ^= bits;
                }
                expect_in_place(message, index, &record);
            }
            Self::Cut { record, keep, tail } => {
                let index = pick(message, *record);
                let record = &message.records[index as usize];
                let keep = usize::from(*keep) % (record.len() + 1);
                expect_in_place(message, index, &[&record[..keep], tail].concat());
            }
            Self::Sealed { record, changes } => {
                try_sealed(message, pick(message, *record), changes)
            }
        }
    }
}

fn pick(message: &Message, record: u8) -> u32 {
    u32::from(record) % message.records.len() as u32
}

fn expect_in_place(message: &Message, index: u32, record: &[u8]) {
    let place = (index, message.header.padded_length);
    expect(message, place, message.sequence(index), record);
}

/// The genuine record opens in its place, with its number and length; bytes that were never sealed
/// never authenticate.
///
/// A record's number is its place to the AEAD (SPEC §5.1): tried in another record's place but
/// under its own number, it authenticates. Then it is refused, or gives what was sealed in it.
fn expect(message: &Message, (index, padded): (u32, u32), sequence: u64, record: &[u8]) {
    let opened = message.open(index, padded, sequence, (&*message.aead, record));
    let own_place = (0..message.records.len() as u32)
        .find(|own| message.records[*own as usize] == record && sequence == message.sequence(*own));
    match (own_place, opened) {
        (Some(own), opened) if own == index && padded == message.header.padded_length => {
            assert_eq!(opened.as_deref(), Ok(message.content(own)));
        }
        (Some(own), Ok(inner)) if index > 0 => {
            assert_eq!(inner, message.inner(own), "the number says which record");
        }
        (_, Ok(_)) => panic!("this was never sealed for this place"),
        (Some(_), Err(_)) => {}
        (None, Err(error)) => assert!(!error.is_authentic(), "nobody sealed it: {error}"),
    }
}

/// A record that authenticates is still refused if it is not what its place demands (SPEC §5.3).
fn try_sealed(message: &Message, index: u32, changes: &[(u16, u8)]) {
    let mut plaintext = message.plaintext(index);
    for (at, byte) in changes {
        let at = usize::from(*at) % plaintext.len();
        plaintext[at] = *byte;
    }
    let sequence = message.sequence(index);
    let record = keys::seal(&*message.aead, sequence, &plaintext);
    let padded = message.header.padded_length;
    let opened = message.open(index, padded, sequence, (&*message.aead, &record));
    match permitted(message, index, &plaintext) {
        Some(content) => assert_eq!(opened.as_deref(), Ok(content)),
        None => {
            let error = opened.expect_err("this record is malformed");
            assert!(error.is_authentic(), "it was sealed: {error}");
        }
    }
}

/// The application bytes of a plaintext, if the specification permits it in this place.
fn permitted<'a>(message: &Message, index: u32, plaintext: &'a [u8]) -> Option<&'a [u8]> {
    let place = message.geometry.record(message.header.padded_length, index);
    let mut true_inner = message.true_inner();
    let mut header_length = 0;
    if let (0, Some(bytes)) = (index, plaintext.first_chunk()) {
        let header = InnerHeader::parse(bytes).ok()?;
        if header.padded_length != message.header.padded_length {
            return None;
        }
        (true_inner, header_length) = (40 + header.true_length, InnerHeader::LEN);
    }
    let content = place.content(true_inner);
    let is_ended = plaintext[content] == 0x17 && plaintext[content + 1..].iter().all(|b| *b == 0);
    is_ended.then(|| &plaintext[header_length..content])
}

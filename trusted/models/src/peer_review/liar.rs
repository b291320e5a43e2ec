// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The alphabet of the liar: entries that its device attests, and what its host shows of them.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use smt_peer_review::sim::observe;
use smt_peer_review::{
    Authenticator, Entry, Evidence, Input, Message, Segment, Sent, SentMessage, SignatureBytes,
};

use super::{CORRECT, LIAR, PeerReview, State};
use crate::MessageId;

/// The child to which the liar forwards.
const CHILD: u32 = 2;

/// An entry of the liar's log.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Lie {
    /// It takes the source's message.
    Received {
        /// The message that it forwards.
        forwards: Forwards,
    },
    /// It takes a message that the source has not sent.
    Invented,
    /// It takes the audit of a witness, with the nonce that it was asked with.
    Audit {
        /// The witness.
        witness: u32,
    },
}

/// The message that the liar forwards.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Forwards {
    /// The one that the application forwards.
    Right,
    /// Nothing.
    Nothing,
    /// Something else.
    Wrong,
}

/// Something that the liar sends.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Shown {
    /// The message that its last entry sends.
    Sent,
    /// A message that no entry sends.
    Forged,
    /// The receipt of its last entry.
    Receipt,
    /// A receipt for a message that it has not logged.
    FalseReceipt,
    /// Its log behind the entries that the witness has, up to an index.
    Segment(u64),
    /// The same, but with the messages that a correct node would have sent.
    Rewritten(u64),
    /// A log of a correct node that none has signed, as evidence against it.
    FalseEvidence(u32),
    /// Two times the same entry of a correct node, as evidence against it.
    FalseConflict(u32),
    /// A challenge with a message that nobody has sent.
    FalseChallenge,
}

/// The liar's log: lies, and entries as bytes.
pub(super) type Log = Vec<(Lie, MessageId)>;

/// Signatures of the liar's device, by index and digest.
#[derive(Default)]
pub(super) struct Entries(RwLock<HashMap<(u64, [u8; 32]), SignatureBytes>>);

impl PeerReview {
    /// All that the liar can log next.
    pub(super) fn lies(&self, state: &State) -> Vec<Lie> {
        let mut lies = Vec::new();
        if self.message_of_source(state).is_some() {
            let forwards = [Forwards::Right, Forwards::Nothing, Forwards::Wrong];
            lies.extend(forwards.map(|forwards| Lie::Received { forwards }));
        }
        lies.push(Lie::Invented);
        let asked = CORRECT.iter().filter(|it| self.nonce(state, **it).is_some());
        lies.extend(asked.map(|it| Lie::Audit { witness: *it }));
        lies
    }

    /// The source's message, if it was sent.
    pub(super) fn message_of_source(&self, state: &State) -> Option<SentMessage> {
        let seen = self.see(state, 0)?;
        let decoded = seen.said.iter().filter(|it| it.0 == LIAR);
        decoded.map(|it| Message::decode(&self.messages.bytes(it.1))).find_map(|it| match it {
            Some(Message::Sent(message)) => Some(*message),
            _ => None,
        })
    }

    /// The nonce with which a witness has asked.
    pub(super) fn nonce(&self, state: &State, witness: u32) -> Option<[u8; 16]> {
        let seen = self.see(state, witness)?;
        let decoded = seen.said.iter().filter(|it| it.0 == LIAR);
        decoded.map(|it| Message::decode(&self.messages.bytes(it.1))).find_map(|it| match it {
            Some(Message::Audit { nonce, .. }) => Some(nonce),
            _ => None,
        })
    }

    fn invented(&self) -> SentMessage {
        let signature = [[0; 32]; 2];
        let body = observe::content(1, b"invented");
        let sent = vec![Sent { to: LIAR, number: 1, body: observe::body_digest(&body) }];
        let (node, index, previous, input) = (0, 1, [0; 32], [0; 32]);
        let authenticator = Authenticator { node, index, previous, input, sent, signature };
        SentMessage { authenticator, to: LIAR, number: 1, body }
    }

    /// The log with one entry more.
    pub(super) fn logged(&self, state: &State, lie: Lie) -> Option<Log> {
        let forwards = |forwards: Forwards, body: &[u8]| match forwards {
            Forwards::Right => Some(body.to_vec()),
            Forwards::Nothing => None,
            Forwards::Wrong => Some(observe::content(1, b"wrong")),
        };
        let (input, body) = match lie {
            Lie::Received { forwards: what } => {
                let message = self.message_of_source(state)?;
                let is_first = !has_received(&state.log);
                let body = forwards(what, &message.body).filter(|_| is_first);
                (Input::Received(Box::new(message)), body)
            }
            Lie::Invented => {
                let message = self.invented();
                let body = Some(message.body.clone()).filter(|_| !has_received(&state.log));
                (Input::Received(Box::new(message)), body)
            }
            Lie::Audit { witness } => {
                (Input::Audit { witness, nonce: self.nonce(state, witness)? }, None)
            }
        };
        let sent = body.map(|it| Sent { to: CHILD, number: 1, body: observe::body_digest(&it) });
        let mut entry = Entry { input, sent: sent.into_iter().collect(), signature: [[0; 32]; 2] };
        let entries = self.entries(&state.log);
        let unsigned = authenticator(&entries, &entry);
        entry.signature = self.sign(unsigned.index, unsigned.digest())?;
        let mut log = state.log.clone();
        log.push((lie, self.messages.number(&postcard::to_allocvec(&entry).ok()?)));
        Some(log)
    }

    /// The entries of a log.
    fn entries(&self, log: &Log) -> Vec<Entry> {
        let decoded = log.iter().map(|it| postcard::from_bytes(&self.messages.bytes(it.1)));
        decoded.filter_map(Result::ok).collect()
    }

    /// Has the device attest and sign an entry. Its counter is the entry's index.
    fn sign(&self, index: u64, digest: [u8; 32]) -> Option<SignatureBytes> {
        let known = self.entries.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(signature) = known.get(&(index, digest)) {
            return Some(*signature);
        }
        drop(known);
        let mut device = observe::device(&self.group, LIAR).ok()?;
        device.begin_at(index.checked_sub(1)?).ok()?;
        let (_, halves) = device.attest_signed(&digest)?;
        let mut known = self.entries.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert((index, digest), halves);
        Some(halves)
    }

    /// All that the liar can send to a node now.
    pub(super) fn shows(&self, state: &State, to: u32) -> Vec<Shown> {
        let audited = self.see(state, to).map_or(0, |it| it.audited);
        let length = state.log.len() as u64;
        let mut shown = vec![
            Shown::FalseEvidence(CORRECT[usize::from(to == CORRECT[0])]),
            Shown::FalseConflict(CORRECT[usize::from(to == CORRECT[0])]),
        ];
        // Without entries it is the answer that an honest node without new entries gives.
        shown.extend((audited..=length).map(Shown::Segment));
        shown.extend((audited + 1..=length).map(Shown::Rewritten));
        match to {
            0 => shown.extend([Shown::Receipt, Shown::FalseReceipt]),
            _ => shown.extend([Shown::Sent, Shown::Forged, Shown::FalseChallenge]),
        }
        shown
    }

    /// The message that shows it. Nothing if there is none.
    pub(super) fn message(&self, state: &State, to: u32, shown: &Shown) -> Option<MessageId> {
        let entries = self.entries(&state.log);
        let audited = self.see(state, to)?.audited;
        let message = match shown {
            Shown::Sent => Message::Sent(Box::new(self.forwarded(state, &entries)?)),
            Shown::Forged => {
                let mut message = self.invented();
                message.to = CHILD;
                message.authenticator.node = LIAR;
                message.authenticator.sent[0].to = CHILD;
                Message::Sent(Box::new(message))
            }
            Shown::FalseChallenge => {
                let mut message = self.invented();
                message.to = CHILD;
                message.authenticator.sent[0].to = CHILD;
                Message::Challenge(Box::new(message))
            }
            Shown::Receipt => {
                let source = self.message_of_source(state)?;
                let is_it = |it: &Entry| it.input == Input::Received(Box::new(source.clone()));
                let at = entries.iter().position(is_it)?;
                let own = authenticator(&entries[..at], &entries[at]);
                Message::Receipt(Box::new(observe::receipt(own, &source)))
            }
            Shown::FalseReceipt => {
                let source = self.message_of_source(state)?;
                let input = Input::Received(Box::new(source.clone()));
                let entry = Entry { input, sent: Vec::new(), signature: [[0; 32]; 2] };
                let own = authenticator(&[], &entry);
                Message::Receipt(Box::new(observe::receipt(own, &source)))
            }
            Shown::Segment(end) => self.segment(&entries, audited, *end)?,
            Shown::Rewritten(end) => {
                let mut entries = entries;
                for it in &mut entries {
                    if let Input::Received(message) = &it.input {
                        let body = observe::body_digest(&message.body);
                        it.sent = vec![Sent { to: CHILD, number: 1, body }];
                    }
                }
                self.segment(&entries, audited, *end)?
            }
            Shown::FalseEvidence(node) => {
                let (node, base) = (*node, None);
                let input = Input::Received(Box::new(self.invented()));
                let entry = Entry { input, sent: Vec::new(), signature: [[0; 32]; 2] };
                Message::Evidence(Box::new(Evidence::Log { node, base, entries: vec![entry] }))
            }
            Shown::FalseConflict(node) => {
                let mut own = self.invented().authenticator;
                own.node = *node;
                let other = Authenticator { previous: [1; 32], ..own.clone() };
                Message::Evidence(Box::new(Evidence::Conflict(Box::new([own, other]))))
            }
        };
        Some(self.messages.number(&message.encode()))
    }

    fn segment(&self, entries: &[Entry], after: u64, end: u64) -> Option<Message> {
        let (from, to) = (usize::try_from(after).ok()?, usize::try_from(end).ok()?);
        let entries = entries.get(from..to)?.to_vec();
        Some(Message::Segment(Segment { after, entries, receipts: Vec::new() }))
    }

    /// The message that an entry sends to the child.
    fn forwarded(&self, state: &State, entries: &[Entry]) -> Option<SentMessage> {
        let at = entries.iter().position(|it| !it.sent.is_empty())?;
        let source = self.message_of_source(state).map(|it| it.body);
        let bodies = [observe::content(1, b"wrong"), self.invented().body];
        let mut bodies = source.into_iter().chain(bodies);
        let body = bodies.find(|it| observe::body_digest(it) == entries[at].sent[0].body)?;
        let authenticator = authenticator(&entries[..at], &entries[at]);
        Some(SentMessage { authenticator, to: CHILD, number: 1, body })
    }
}

/// Whether a log has taken a message.
pub(super) fn has_received(log: &Log) -> bool {
    log.iter().any(|it| matches!(it.0, Lie::Received { .. } | Lie::Invented))
}

/// How many entries a correct node may have made.
pub(super) fn sound(log: &Log) -> u64 {
    let is_sound = |at: usize, lie: Lie| match lie {
        Lie::Received { forwards } => {
            forwards == Forwards::Right && !has_received(&log[..at].to_vec())
        }
        Lie::Invented => false,
        Lie::Audit { .. } => true,
    };
    log.iter().enumerate().take_while(|(at, it)| is_sound(*at, it.0)).count() as u64
}

/// The authenticator of an entry behind others.
fn authenticator(before: &[Entry], entry: &Entry) -> Authenticator {
    let (mut previous, mut index) = ([0; 32], 1);
    for it in before {
        previous = signed(index, previous, it).digest();
        index += 1;
    }
    signed(index, previous, entry)
}

fn signed(index: u64, previous: [u8; 32], entry: &Entry) -> Authenticator {
    let (node, input) = (LIAR, entry.input.digest());
    let (sent, signature) = (entry.sent.clone(), entry.signature);
    Authenticator { node, index, previous, input, sent, signature }
}

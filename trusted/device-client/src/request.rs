// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests as bytes. Numbers are big-endian, as in attestations.

use smt_attestation::{
    ATTESTATION_LEN, Algorithm, Attestation, Ballot, DeviceId, Epoch, Group, Member, Start,
    StreamId, VOTE_LEN, Vote,
};

use crate::MESSAGE_LEN_MAX;
use crate::answer::Answer;
use crate::device::{AppendOnly, SecretNumber};
use crate::error::DeviceError;
use crate::statement::{End, LogId, STATEMENT_LEN, Statement};

/// The most members of a group, and ballots of a request, that a frame may name.
const LIST_MAX: usize = 256;

/// A request of the host. Its first byte is its kind, in the order below from 1.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request<'a> {
    /// [`crate::Device::attest`].
    Attest(StreamId, &'a [u8]),
    /// [`crate::Device::check`].
    Check(StreamId, Attestation, &'a [u8]),
    /// [`crate::Device::accept`].
    Accept(StreamId, Attestation, &'a [u8]),
    /// [`crate::Device::sign`], with the counter of the message.
    Sign(StreamId, u64, &'a [u8]),
    /// [`crate::Device::reissue`].
    Reissue(StreamId, u64),
    /// [`crate::Device::sent`].
    Sent(StreamId),
    /// [`crate::Device::position`].
    Position(StreamId, DeviceId),
    /// [`crate::Device::open`]: secret, stream, algorithm, quorum, members.
    Open(SecretNumber, StreamId, Algorithm, u32, Vec<Member>),
    /// [`crate::Device::vote`].
    Vote(StreamId, Start, DeviceId),
    /// [`crate::Device::admit`].
    Admit(StreamId, Start, Vec<Ballot>),
    /// [`crate::Device::synchronize`].
    Synchronize(StreamId, DeviceId, Vec<Ballot>),
    /// [`AppendOnly::log_at`].
    LogAt(u32),
    /// [`AppendOnly::open_log`].
    OpenLog(LogId),
    /// [`AppendOnly::append`].
    Append(LogId, Statement),
    /// [`AppendOnly::discard`].
    Discard,
    /// [`AppendOnly::seal`].
    Seal(Vec<(LogId, End)>),
    /// [`AppendOnly::sign_end`].
    SignEnd(LogId),
}

impl<'a> Request<'a> {
    /// Refuses a message that is longer than any that a device attests.
    pub(crate) fn judge_length(&self) -> Result<(), DeviceError> {
        match self {
            Self::Attest(_, message) | Self::Sign(_, _, message)
                if message.len() > MESSAGE_LEN_MAX =>
            {
                Err(DeviceError::TooLong(message.len()))
            }
            Self::Check(_, _, message) | Self::Accept(_, _, message)
                if message.len() > MESSAGE_LEN_MAX =>
            {
                Err(DeviceError::PeerTooLong(message.len()))
            }
            _ => Ok(()),
        }
    }

    /// Appends the request's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Attest(stream, message) => put_message(out, 1, *stream, &[], message),
            Self::Check(stream, it, message) => put_message(out, 2, *stream, &it.0, message),
            Self::Accept(stream, it, message) => put_message(out, 3, *stream, &it.0, message),
            Self::Sign(stream, counter, message) => {
                put_message(out, 4, *stream, &counter.to_be_bytes(), message);
            }
            Self::Reissue(stream, counter) => {
                put_message(out, 5, *stream, &counter.to_be_bytes(), &[]);
            }
            Self::Sent(stream) => put_message(out, 6, *stream, &[], &[]),
            Self::Position(stream, device) => {
                put_message(out, 7, *stream, &device.0.to_be_bytes(), &[]);
            }
            Self::Open(secret, stream, algorithm, quorum, members) => {
                put_message(out, 8, *stream, &secret.0.to_be_bytes(), &[*algorithm as u8]);
                out.extend(quorum.to_be_bytes());
                for member in members {
                    out.extend(member.device.0.to_be_bytes());
                    out.extend(member.epoch.0.to_be_bytes());
                }
            }
            Self::Vote(stream, newcomer, about) => {
                put_message(out, 9, *stream, &[], &[]);
                put_start(out, newcomer);
                out.extend(about.0.to_be_bytes());
            }
            Self::Admit(stream, newcomer, ballots) => {
                put_message(out, 10, *stream, &[], &[]);
                put_start(out, newcomer);
                put_ballots(out, ballots);
            }
            Self::Synchronize(stream, peer, ballots) => {
                put_message(out, 11, *stream, &peer.0.to_be_bytes(), &[]);
                put_ballots(out, ballots);
            }
            Self::LogAt(place) => put_message(out, 12, StreamId(*place), &[], &[]),
            Self::OpenLog(log) => put_message(out, 13, StreamId(log.0), &[], &[]),
            Self::Append(log, entry) => {
                put_message(out, 14, StreamId(log.0), &entry.encode(), &[]);
            }
            Self::Discard => put_message(out, 15, StreamId(0), &[], &[]),
            Self::Seal(ends) => {
                put_message(out, 16, StreamId(0), &[], &[]);
                for (log, end) in ends {
                    put_log(out, *log, end);
                }
            }
            Self::SignEnd(log) => put_message(out, 17, StreamId(log.0), &[], &[]),
        }
    }

    /// Reads what [`Request::encode`] wrote, and nothing else.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        let fields = &mut rest;
        let stream = StreamId(number(fields)?);
        let request = match kind {
            1 => Self::Attest(stream, std::mem::take(fields)),
            2 => Self::Check(stream, attestation(fields)?, std::mem::take(fields)),
            3 => Self::Accept(stream, attestation(fields)?, std::mem::take(fields)),
            4 => Self::Sign(stream, long(fields)?, std::mem::take(fields)),
            5 => Self::Reissue(stream, long(fields)?),
            6 => Self::Sent(stream),
            7 => Self::Position(stream, DeviceId(number(fields)?)),
            8 => {
                let secret = SecretNumber(number(fields)?);
                let [algorithm] = take(fields)?;
                let algorithm = Algorithm::from_number(algorithm)?;
                let quorum = number(fields)?;
                let members = list(fields, |fields| {
                    let device = DeviceId(number(fields)?);
                    Some(Member { device, epoch: Epoch(long(fields)?) })
                })?;
                Self::Open(secret, stream, algorithm, quorum, members)
            }
            9 => Self::Vote(stream, start(fields)?, DeviceId(number(fields)?)),
            10 => Self::Admit(stream, start(fields)?, list(fields, ballot)?),
            11 => Self::Synchronize(stream, DeviceId(number(fields)?), list(fields, ballot)?),
            12 => Self::LogAt(stream.0),
            13 => Self::OpenLog(LogId(stream.0)),
            14 => {
                let entry = Statement::decode(&take::<STATEMENT_LEN>(fields)?)?;
                Self::Append(LogId(stream.0), entry)
            }
            15 if stream.0 == 0 => Self::Discard,
            16 if stream.0 == 0 => Self::Seal(list(fields, log)?),
            17 => Self::SignEnd(LogId(stream.0)),
            _ => return None,
        };
        rest.is_empty().then_some(request)
    }

    /// Has a device do it.
    pub fn ask(&self, device: &mut impl AppendOnly) -> Answer {
        let done = |()| Answer::Done;
        let asked = match self {
            Self::Attest(stream, message) => {
                device.attest(*stream, message).map(Answer::Attestation)
            }
            Self::Check(stream, it, message) => {
                device.check(*stream, it, message).map(Answer::Header)
            }
            Self::Accept(stream, it, message) => {
                device.accept(*stream, it, message).map(Answer::Header)
            }
            Self::Sign(stream, counter, message) => {
                device.sign(*stream, *counter, message).map(Answer::Signature)
            }
            Self::Reissue(stream, counter) => {
                device.reissue(*stream, *counter).map(Answer::Attestation)
            }
            Self::Sent(stream) => device.sent(*stream).map(Answer::Sent),
            Self::Position(stream, peer) => device.position(*stream, *peer).map(Answer::Position),
            Self::Open(secret, stream, algorithm, quorum, members) => {
                let (stream, algorithm, quorum) = (*stream, *algorithm, *quorum);
                device.open(*secret, &Group { stream, algorithm, quorum, members }).map(done)
            }
            Self::Vote(stream, newcomer, about) => {
                device.vote(*stream, *newcomer, *about).map(Answer::Ballot)
            }
            Self::Admit(stream, newcomer, ballots) => {
                device.admit(*stream, *newcomer, ballots).map(done)
            }
            Self::Synchronize(stream, peer, ballots) => {
                device.synchronize(*stream, *peer, ballots).map(done)
            }
            Self::LogAt(place) => device.log_at(*place).map(Answer::Log),
            Self::OpenLog(log) => device.open_log(*log).map(done),
            Self::Append(log, entry) => device.append(*log, entry).map(Answer::Attestation),
            Self::Discard => device.discard().map(done),
            Self::Seal(ends) => device.seal(ends).map(done),
            Self::SignEnd(log) => device.sign_end(*log).map(Answer::Signature),
        };
        asked.unwrap_or_else(|error| Answer::of_error(&error))
    }
}

/// Has a device do what the bytes of a request say, and writes the answer's bytes.
pub fn answer_to(device: &mut impl AppendOnly, request: &[u8], answer: &mut Vec<u8>) {
    answer.clear();
    let done = Request::decode(request).map_or(Answer::Malformed, |request| request.ask(device));
    done.encode(answer);
}

fn put_message(out: &mut Vec<u8>, kind: u8, stream: StreamId, fields: &[u8], message: &[u8]) {
    out.push(kind);
    out.extend(stream.0.to_be_bytes());
    out.extend_from_slice(fields);
    out.extend_from_slice(message);
}

fn put_start(out: &mut Vec<u8>, start: &Start) {
    out.extend(start.device.0.to_be_bytes());
    out.extend(start.epoch.0.to_be_bytes());
    out.extend(start.nonce);
}

fn put_ballots(out: &mut Vec<u8>, ballots: &[Ballot]) {
    for ballot in ballots {
        put_ballot(out, ballot);
    }
}

/// A vote and its attestation.
pub(crate) fn put_ballot(out: &mut Vec<u8>, ballot: &Ballot) {
    out.extend(ballot.vote.encode());
    out.extend(ballot.attestation.0);
}

/// A log and its end.
pub(crate) fn put_log(out: &mut Vec<u8>, log: LogId, end: &End) {
    out.extend(log.0.to_be_bytes());
    out.extend(end.sequence.to_be_bytes());
    out.extend(end.digest);
}

pub(crate) fn log(fields: &mut &[u8]) -> Option<(LogId, End)> {
    let log = LogId(number(fields)?);
    Some((log, End { sequence: long(fields)?, digest: take(fields)? }))
}

/// Takes `N` bytes off the front.
pub(crate) fn take<const N: usize>(fields: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = fields.split_first_chunk::<N>()?;
    *fields = rest;
    Some(*taken)
}

pub(crate) fn number(fields: &mut &[u8]) -> Option<u32> {
    take(fields).map(u32::from_be_bytes)
}

pub(crate) fn long(fields: &mut &[u8]) -> Option<u64> {
    take(fields).map(u64::from_be_bytes)
}

pub(crate) fn attestation(fields: &mut &[u8]) -> Option<Attestation> {
    take::<ATTESTATION_LEN>(fields).map(Attestation)
}

pub(crate) fn ballot(fields: &mut &[u8]) -> Option<Ballot> {
    const { assert!(VOTE_LEN == 40, "start, peer and its epoch") }
    let newcomer = start(fields)?;
    let (peer, peer_epoch) = (DeviceId(number(fields)?), Epoch(long(fields)?));
    Some(Ballot { vote: Vote { newcomer, peer, peer_epoch }, attestation: attestation(fields)? })
}

fn start(fields: &mut &[u8]) -> Option<Start> {
    let (device, epoch) = (DeviceId(number(fields)?), Epoch(long(fields)?));
    Some(Start { device, epoch, nonce: take(fields)? })
}

/// All that is left, as items.
fn list<T>(fields: &mut &[u8], mut item: impl FnMut(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let mut items = Vec::new();
    while !fields.is_empty() {
        if items.len() == LIST_MAX {
            return None;
        }
        items.push(item(fields)?);
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<Request<'static>> {
        let stream = StreamId(0x0102_0304);
        let attestation = Attestation([9; ATTESTATION_LEN]);
        let newcomer = Start { device: DeviceId(3), epoch: Epoch(4), nonce: [5; 16] };
        let vote = Vote { newcomer, peer: DeviceId(6), peer_epoch: Epoch(7) };
        let ballots = vec![Ballot { vote, attestation }; 2];
        let members = vec![Member { device: DeviceId(1), epoch: Epoch(2) }; 3];
        let kind = crate::statement::EntryKind::Tail;
        let entry = Statement { kind, sequence: 14, context_hash: [1; 32], previous: [2; 32] };
        vec![
            Request::Attest(stream, b"message"),
            Request::Check(stream, attestation, b"message"),
            Request::Accept(stream, attestation, b""),
            Request::Sign(stream, 8, b"message"),
            Request::Reissue(stream, 9),
            Request::Sent(stream),
            Request::Position(stream, DeviceId(10)),
            Request::Open(SecretNumber(11), stream, Algorithm::HmacSha256, 2, members),
            Request::Vote(stream, newcomer, DeviceId(12)),
            Request::Admit(stream, newcomer, ballots.clone()),
            Request::Synchronize(stream, DeviceId(13), ballots),
            Request::LogAt(15),
            Request::OpenLog(LogId(16)),
            Request::Append(LogId(17), entry),
            Request::Discard,
            Request::Seal(vec![(LogId(18), entry.end()); 2]),
            Request::SignEnd(LogId(19)),
        ]
    }

    #[test]
    fn each_request_is_read_as_it_was_written() {
        for request in requests() {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            assert_eq!(Request::decode(&bytes), Some(request));
        }
    }

    #[test]
    fn a_request_with_a_byte_too_few_or_too_many_is_none_or_another_message() {
        for request in requests() {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            bytes.push(0);
            assert_ne!(Request::decode(&bytes), Some(request.clone()));
            bytes.truncate(bytes.len() - 2);
            assert_ne!(Request::decode(&bytes), Some(request));
        }
    }

    #[test]
    fn a_list_that_is_too_long_is_none() {
        let member = Member { device: DeviceId(1), epoch: Epoch(1) };
        let open = |length| {
            let members = vec![member; length];
            let mut bytes = Vec::new();
            let stream = StreamId(1);
            Request::Open(SecretNumber(1), stream, Algorithm::HmacSha256, 1, members)
                .encode(&mut bytes);
            Request::decode(&bytes).is_some()
        };
        assert!(open(LIST_MAX));
        assert!(!open(LIST_MAX + 1));
    }
}

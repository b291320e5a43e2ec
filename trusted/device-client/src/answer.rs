// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers as bytes. Numbers are big-endian.

use smt_attestation::{
    Attestation, Ballot, Epoch, HEADER_LEN, Header, Misuse, Position, Progress, Refusal,
    SIGNATURE_LEN, StreamId,
};

use crate::device::SecretNumber;
use crate::error::{DeviceError, LogMisuse};
use crate::request::{attestation, ballot, log, long, number, put_ballot, put_log, take};
use crate::statement::{End, LogId};

/// The device's result, or the reason why there is none. The first byte is the kind, in the order
/// below from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is done.
    Done,
    /// An attestation.
    Attestation(Attestation),
    /// The statement of a message that was taken or checked.
    Header(Header),
    /// A signature.
    Signature([u8; SIGNATURE_LEN]),
    /// The last counter of a stream, or nothing.
    Sent(Option<u64>),
    /// A peer's position, or nothing.
    Position(Option<Position>),
    /// A vote with its attestation.
    Ballot(Ballot),
    /// The kernel refuses the request.
    Misuse(Misuse),
    /// The kernel refuses the message.
    Refused(Refusal),
    /// The stream is not open.
    UnknownStream(StreamId),
    /// There is no such secret.
    UnknownSecret(SecretNumber),
    /// The bytes are no request.
    Malformed,
    /// A log with its sealed end, or nothing.
    Log(Option<(LogId, End)>),
    /// The device does nothing for the log.
    LogMisuse(LogMisuse),
}

impl Answer {
    /// The longest answer in bytes.
    pub const LEN_MAX: usize = 128;

    pub(crate) fn of_error(error: &DeviceError) -> Self {
        match *error {
            DeviceError::Misuse(misuse) => Self::Misuse(misuse),
            DeviceError::Refused(refusal) => Self::Refused(refusal),
            DeviceError::Log(misuse) => Self::LogMisuse(misuse),
            DeviceError::UnknownStream(stream) => Self::UnknownStream(stream),
            DeviceError::UnknownSecret(secret) => Self::UnknownSecret(secret),
            _ => Self::Malformed,
        }
    }

    /// Appends the answer's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done => out.push(0),
            Self::Attestation(it) => put(out, 1, &it.0),
            Self::Header(header) => put(out, 2, &header.encode()),
            Self::Signature(signature) => put(out, 3, signature),
            Self::Sent(None) => out.push(4),
            Self::Sent(Some(counter)) => put(out, 4, &counter.to_be_bytes()),
            Self::Position(None) => out.push(5),
            Self::Position(Some(Position { epoch, progress })) => {
                put(out, 5, &epoch.0.to_be_bytes());
                match progress {
                    Progress::Unknown => out.push(0),
                    Progress::Replaced => out.push(1),
                    Progress::Taken(counter) => put(out, 2, &counter.to_be_bytes()),
                }
            }
            Self::Ballot(it) => {
                out.push(6);
                put_ballot(out, it);
            }
            Self::Misuse(misuse) => put(out, 7, &[code_of(&MISUSES, misuse)]),
            Self::Refused(refusal) => {
                let (plain, number) = match *refusal {
                    Refusal::Epoch { admitted } => (EPOCH, admitted.0),
                    Refusal::Gap { expected } => (GAP, expected),
                    _ => (code_of(&REFUSALS, refusal), 0),
                };
                put(out, 8, &[plain]);
                out.extend(number.to_be_bytes());
            }
            Self::UnknownStream(stream) => put(out, 9, &stream.0.to_be_bytes()),
            Self::UnknownSecret(secret) => put(out, 10, &secret.0.to_be_bytes()),
            Self::Malformed => out.push(11),
            Self::Log(None) => out.push(12),
            Self::Log(Some((log, end))) => {
                out.push(12);
                put_log(out, *log, end);
            }
            Self::LogMisuse(misuse) => put(out, 13, &[code_of(&LOG_MISUSES, misuse)]),
        }
    }

    /// Reads what [`Answer::encode`] wrote, and nothing else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        let fields = &mut rest;
        let answer = match kind {
            0 => Self::Done,
            1 => Self::Attestation(attestation(fields)?),
            2 => Self::Header(Header::decode(&take::<HEADER_LEN>(fields)?)?),
            3 => Self::Signature(take(fields)?),
            4 if fields.is_empty() => Self::Sent(None),
            4 => Self::Sent(Some(long(fields)?)),
            5 if fields.is_empty() => Self::Position(None),
            5 => {
                let epoch = Epoch(long(fields)?);
                let progress = match take(fields)? {
                    [0] => Progress::Unknown,
                    [1] => Progress::Replaced,
                    [2] => Progress::Taken(long(fields)?),
                    _ => return None,
                };
                Self::Position(Some(Position { epoch, progress }))
            }
            6 => Self::Ballot(ballot(fields)?),
            7 => {
                let [code] = take(fields)?;
                Self::Misuse(*MISUSES.get(usize::from(code))?)
            }
            8 => {
                let ([code], number) = (take(fields)?, long(fields)?);
                Self::Refused(match code {
                    EPOCH => Refusal::Epoch { admitted: Epoch(number) },
                    GAP => Refusal::Gap { expected: number },
                    _ => *REFUSALS.get(usize::from(code))?,
                })
            }
            9 => Self::UnknownStream(StreamId(number(fields)?)),
            10 => Self::UnknownSecret(SecretNumber(number(fields)?)),
            11 => Self::Malformed,
            12 if fields.is_empty() => Self::Log(None),
            12 => Self::Log(Some(log(fields)?)),
            13 => {
                let [code] = take(fields)?;
                Self::LogMisuse(*LOG_MISUSES.get(usize::from(code))?)
            }
            _ => return None,
        };
        rest.is_empty().then_some(answer)
    }
}

/// Each misuse has its place as number.
const MISUSES: [Misuse; 9] = [
    Misuse::Group,
    Misuse::Full,
    Misuse::StreamExists,
    Misuse::NotPeer,
    Misuse::NotSynchronized,
    Misuse::TooLong,
    Misuse::EpochEnded,
    Misuse::Forgotten,
    Misuse::OtherMessage,
];

/// Each misuse of logs has its place as number.
const LOG_MISUSES: [LogMisuse; 4] =
    [LogMisuse::NoMemory, LogMisuse::NotNext, LogMisuse::NotSealed, LogMisuse::Stopped];

/// Each refusal without a field has its place as number.
const REFUSALS: [Refusal; 7] = [
    Refusal::Malformed,
    Refusal::Mac,
    Refusal::NotPeer,
    Refusal::NotSynchronized,
    Refusal::Duplicate,
    Refusal::Votes,
    Refusal::NotNewer,
];
const EPOCH: u8 = 0x80;
const GAP: u8 = 0x81;

fn put(out: &mut Vec<u8>, kind: u8, fields: &[u8]) {
    out.push(kind);
    out.extend_from_slice(fields);
}

/// A refusal that a later kernel adds has a number that nobody reads.
fn code_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|it| it == one).map_or(0x7f, |place| place as u8)
}

#[cfg(test)]
mod tests {
    use smt_attestation::{Algorithm, DeviceId, Kind, Start, Vote};

    use super::*;

    fn answers() -> Vec<Answer> {
        let attestation = Attestation([9; 64]);
        let header = Header {
            algorithm: Algorithm::HmacSha256,
            kind: Kind::Message,
            stream: StreamId(1),
            device: DeviceId(2),
            length: 3,
            epoch: Epoch(4),
            counter: 5,
        };
        let newcomer = Start { device: DeviceId(3), epoch: Epoch(4), nonce: [5; 16] };
        let vote = Vote { newcomer, peer: DeviceId(6), peer_epoch: Epoch(7) };
        let position = |progress| Answer::Position(Some(Position { epoch: Epoch(8), progress }));
        let mut answers = vec![
            Answer::Done,
            Answer::Attestation(attestation),
            Answer::Header(header),
            Answer::Signature([1; 64]),
            Answer::Sent(None),
            Answer::Sent(Some(0)),
            Answer::Position(None),
            position(Progress::Unknown),
            position(Progress::Replaced),
            position(Progress::Taken(6)),
            Answer::Ballot(Ballot { vote, attestation }),
            Answer::Refused(Refusal::Epoch { admitted: Epoch(3) }),
            Answer::Refused(Refusal::Gap { expected: 4 }),
            Answer::UnknownStream(StreamId(5)),
            Answer::UnknownSecret(SecretNumber(6)),
            Answer::Malformed,
            Answer::Log(None),
            Answer::Log(Some((LogId(7), End { sequence: 8, digest: [9; 32] }))),
        ];
        answers.extend(MISUSES.map(Answer::Misuse));
        answers.extend(LOG_MISUSES.map(Answer::LogMisuse));
        answers.extend(REFUSALS.map(Answer::Refused));
        answers
    }

    #[test]
    fn each_answer_is_read_as_it_was_written() {
        for answer in answers() {
            let mut bytes = Vec::new();
            answer.encode(&mut bytes);
            assert!(bytes.len() <= Answer::LEN_MAX);
            assert_eq!(Answer::decode(&bytes), Some(answer));
            bytes.push(0);
            assert_ne!(Answer::decode(&bytes), Some(answer));
        }
    }
}

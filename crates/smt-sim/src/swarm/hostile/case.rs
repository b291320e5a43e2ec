// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case that a seed gives: a server, its application, and the moves of its peer.

use smt_proto::Config;
use smt_wire::PLAINTEXT_VERSION;

use crate::random::Random;

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The seed from which the case was made.
    pub seed: u64,
    /// The server's configuration.
    pub config: Config,
    /// The habits of the server's application.
    pub habits: Habits,
    /// Sessions that the peer has from the beginning.
    pub sessions: usize,
    /// The moves of the peer, and how often it makes each, in shares of their sum.
    pub moves: Vec<(Move, u64)>,
    /// How often it does something.
    pub steps: usize,
    /// The longest message that it begins, in application bytes.
    pub longest: u32,
}

/// The habits of an application with messages that arrive.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// How often it takes what has arrived, in millionths of the peer's steps.
    pub takes: u32,
    /// How often it answers what it has taken.
    pub replies: u32,
    /// The longest reply, in bytes.
    pub longest_reply: u32,
    /// Requests that it works on at a time.
    pub workers: usize,
}

/// A move of a hostile peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Move {
    /// Another session.
    Connect,
    /// The first packets of a handshake, and no more.
    HalfConnect,
    /// The beginning of a message, and no more.
    Begin,
    /// The next records of a message that was begun, granted or not.
    Continue,
    /// A later part of a message whose first record never comes.
    Early,
    /// Bytes here and there of a record that is never whole.
    Pieces,
    /// A whole message of one record.
    Whole,
    /// A bundle of new messages.
    Bundle,
    /// A bundle of messages that were seen before and one new one.
    BundleOfSeen,
    /// CANCEL of what was sent last.
    Cancel,
    /// ACK of what was sent last.
    Acknowledge,
    /// RESEND, NEED_ACK or SEEN about messages of either side.
    Ask,
    /// GRANT to a reply.
    Grant,
    /// Parts of calls of either side, alone or in a bundle, with any number.
    Part,
    /// A part of a call that the peer has begun, in order but without the first one: nobody can
    /// read it.
    LaterPart,
    /// PART_WINDOW or PART_WINDOW_REQUEST for calls of either side.
    PartWindow,
    /// PROBE_ACK of any size.
    ProbeAck,
    /// KEY_UPDATE_REQUEST, and an EPOCH_DONE that may be wrong.
    Keys,
    /// Time passes.
    Wait,
}

impl Move {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Connect,
        Self::HalfConnect,
        Self::Begin,
        Self::Continue,
        Self::Early,
        Self::Pieces,
        Self::Whole,
        Self::Bundle,
        Self::BundleOfSeen,
        Self::Cancel,
        Self::Acknowledge,
        Self::Ask,
        Self::Grant,
        Self::Part,
        Self::LaterPart,
        Self::PartWindow,
        Self::ProbeAck,
        Self::Keys,
        Self::Wait,
    ];
}

impl Case {
    /// Draws a case.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let config = config(&mut random);
        let limit = config.message_limit;
        Self {
            seed,
            habits: habits(&mut random, limit),
            sessions: *random.pick(&[1, 1, 2, 4, 16]),
            moves: moves(&mut random),
            steps: *random.pick(&[200, 1_000, 2_000]),
            longest: *random.pick(&[2_000, 20_000, limit / 2, limit / 2]),
            config,
        }
    }
}

fn config(random: &mut Random) -> Config {
    let mut config = Config::default();
    config.version = PLAINTEXT_VERSION;
    config.accept = true;
    config.memory_max = *random.pick(&[256 << 10, 256 << 10, 1 << 20, 4 << 20]);
    config.message_limit = *random.pick(&[64 << 10, 256 << 10]);
    config.record_size = *random.pick(&[16_384, 16_384, 16_384, 1_400]);
    config.window = *random.pick(&[64, 4_096, 4_096]);
    config.unscheduled = *random.pick(&[10_000, 60_000, 60_000]);
    config.incoming_max = *random.pick(&[64 << 10, 256 << 10]);
    config.sessions_max = *random.pick(&[4, 32, 128]);
    config.cipher_cache_sessions = *random.pick(&[0, 4, 1_024]);
    config.datagram_limit = *random.pick(&[1_472, 65_507, 65_507]);
    config.bundles = random.chance(850_000);
    config.part_window = *random.pick(&[0, 4_096, 64 << 10, 256 << 10]);
    config
}

fn habits(random: &mut Random, limit: u32) -> Habits {
    let often = [1_000_000, 1_000_000, 1_000_000, 500_000, 50_000];
    let longest = [0, 200, 1_000, 1_000, 1_000, 20_000, limit - 1_000];
    Habits {
        takes: match random.chance(150_000) {
            true => 0,
            false => *random.pick(&often),
        },
        replies: match random.chance(100_000) {
            true => 0,
            false => *random.pick(&often),
        },
        longest_reply: *random.pick(&longest),
        workers: *random.pick(&[1, 16, 64]),
    }
}

/// Up to six moves of any kind; or of those that fill one kind of memory, each with those that
/// belong to it. Time passes now and then in most cases.
fn moves(random: &mut Random) -> Vec<(Move, u64)> {
    let mut among = match random.chance(300_000) {
        true => Move::ALL.to_vec(),
        false => random.pick(&KINDS_OF_MEMORY).to_vec(),
    };
    let count = random.between(1, 6).min(among.len() as u64);
    let mut moves: Vec<_> = (0..count)
        .map(|_| {
            let chosen = among.swap_remove(random.below(among.len() as u64) as usize);
            (chosen, 1 << random.below(6))
        })
        .collect();
    if random.chance(700_000) && moves.iter().all(|(play, _)| *play != Move::Wait) {
        moves.push((Move::Wait, 1 + random.below(4)));
    }
    moves
}

/// Moves that go together: replies that nobody acknowledges, alone and in large bundles; messages
/// that never end; what comes before a first record; what waits for the application; handshakes;
/// calls in parts; and parts that nobody can read, since their first one is withheld.
const KINDS_OF_MEMORY: [&[Move]; 8] = [
    &[Move::Bundle, Move::Whole, Move::Cancel, Move::Ask],
    &[Move::Bundle, Move::Cancel, Move::ProbeAck],
    &[Move::Begin, Move::Continue, Move::Pieces, Move::Keys],
    &[Move::Early, Move::Pieces, Move::Begin],
    &[Move::BundleOfSeen, Move::Bundle, Move::Whole, Move::Begin],
    &[Move::Connect, Move::HalfConnect],
    &[Move::Part, Move::Whole, Move::PartWindow, Move::Begin],
    &[Move::LaterPart, Move::PartWindow, Move::Cancel],
];

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bound on what a server holds, whatever its peers do: the bytes that it is configured to
//! hold, those beyond that for progress (SPEC §9.2, §10), and constants.

use smt_proto::Config;

use super::case::Habits;

/// The bound on what a server holds, in bytes that it has allocated.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Messages of peers, and replies.
    messages: usize,
    /// For each session that there has been at a time.
    session: usize,
    /// For packets before record 0, of each session.
    early: usize,
    /// For each handshake of the last ten seconds.
    handshake: usize,
}

impl Bound {
    /// The bound of a server with this configuration and application.
    pub fn new(config: &Config, habits: &Habits) -> Self {
        let memory = config.memory_max;
        let granted = (config.incoming_max as usize).max(GRANTED_AT_LEAST);
        let beginning = config.unscheduled as usize + RECORD_MAX;
        // Replies to what the application has taken before its peer kept too much.
        let replies = (habits.workers + 1) * (habits.longest_reply as usize + REPLY_MORE);
        let kept = memory + memory / 2 + replies;
        // Short messages before a backlog may hold the bundles that they came in.
        let taken = memory + memory / 4 + beginning + granted;
        Self {
            // Buffers grow ahead of their bytes; an eighth is kept for bodies to come.
            messages: (taken + kept) * 5 / 4 + memory / 8 + ENDPOINT,
            session: config.message_limit as usize + RECORD_MAX + SESSION,
            early: EARLY_OF_SESSION,
            handshake: HANDSHAKE,
        }
    }

    /// With so many sessions, and so many handshakes in progress that have sent so many bytes.
    pub fn bytes(&self, sessions: usize, handshakes: usize, flights: usize) -> usize {
        let early = (sessions * self.early).min(EARLY_MAX);
        self.messages + early + sessions * self.session + handshakes * self.handshake + 2 * flights
    }
}

/// A record and its overhead.
const RECORD_MAX: usize = 16_406;
/// The bytes that may be granted whatever the budget: two records to each of eight messages, and as
/// much to as many that their senders limit (SPEC §9.2).
const GRANTED_AT_LEAST: usize = 2 * 8 * 32_812;
/// The bytes that a reply takes beside its own.
const REPLY_MORE: usize = 1_024;
/// Packets before record 0, of one session (SPEC §10).
const EARLY_OF_SESSION: usize = 256 << 10;
const EARLY_MAX: usize = 4 << 20;
/// An endpoint without a session: tables, queues, buffers of one batch.
const ENDPOINT: usize = 256 << 10;
/// A session: windows, keys, tables of what it serves, its queue of control packets.
const SESSION: usize = 64 << 10;
/// A handshake in progress, beside the bytes that have come.
const HANDSHAKE: usize = 8 << 10;

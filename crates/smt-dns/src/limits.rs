// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bounds of this crate, each with its reason (SPEC §6.9).

use std::time::Duration;

/// Bytes of a record's RDATA: the longest ticket, and room for what other keys say.
pub const RECORD_LEN_MAX: usize = 17_408;
/// Bytes of a record's RDATA that a chain is put in: some resolvers and secondaries are slow with
/// longer answers, and a chain of P-256 certificates is within.
pub const RECORD_WITH_CHAIN_LEN_MAX: usize = 8_192;
/// Certificates of a chain: as many as TLS libraries take.
pub const CHAIN_CERTIFICATES_MAX: usize = 10;
/// Records of one answer that are looked at: one for each process that answers by the name.
pub const RECORDS_MAX: usize = 8;
/// Chains that are kept for records without one, as many as a store has tickets.
pub const CHAINS_MAX: usize = 4_096;
/// Names that one watch looks up.
pub const NAMES_MAX: usize = 4_096;
/// Lookups of one watch at a time: a burst of names must not flood the resolver.
pub const LOOKUPS_AT_ONCE: usize = 8;
/// The default of [`crate::ResolverPlan::time`]: a resolver that takes longer is of no use.
pub const LOOKUP_TIME: Duration = Duration::from_secs(5);
/// The least time between two lookups of a name, whatever TTL its record has.
pub const LOOKUP_PAUSE_MIN: Duration = Duration::from_secs(10);
/// The pause after the first failed lookup of a name; it doubles with each further one.
pub const FAILURE_PAUSE_FIRST: Duration = Duration::from_secs(5);
/// The longest pause after failed lookups: a ticket that is published again is found by then.
pub const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(300);
/// The pause after the first publication that failed; it doubles with each further one.
pub const PUBLISH_PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest pause after publications that failed.
pub const PUBLISH_PAUSE_MAX: Duration = Duration::from_secs(60);
/// A dynamic update must be answered in this time, connecting included.
pub const UPDATE_TIME: Duration = Duration::from_secs(10);
/// Bytes of an answer to a dynamic update, which repeats nothing of it.
pub const UPDATE_ANSWER_LEN_MAX: usize = 4_096;
/// Bytes of a file with a TSIG key.
pub const KEY_FILE_LEN_MAX: u64 = 16_384;

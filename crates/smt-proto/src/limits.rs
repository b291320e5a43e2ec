// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every bound and timer of the core, with unit and reason (SPEC §10).
//!
//! The limits that a user may want to change are in [`crate::Config`], whose defaults come from
//! here.

use core::time::Duration;

use smt_carrier::Capabilities;

/// First wait before an unanswered flight is repeated; up to a quarter is added. It is longer than
/// a post-quantum handshake's computation.
pub(crate) const HANDSHAKE_RETRY: Duration = Duration::from_millis(50);
/// Longest wait before an unanswered flight is repeated.
pub(crate) const HANDSHAKE_RETRY_MAX: Duration = Duration::from_secs(1);
/// Wait before a connect's flight is repeated after the first unreachable hint. Any hint about
/// earlier datagrams has come by then, since a datacenter's round trip is far shorter.
pub(crate) const STALE_HINTS: Duration = Duration::from_millis(5);
/// Unanswered repetitions of a flight after which a client begins a new attempt: something forged
/// may have spoilt this one at the server.
pub(crate) const ATTEMPT_QUESTIONS: u32 = 4;
/// A server forgets a handshake this long after it began.
pub(crate) const ACCEPT_LIFE: Duration = Duration::from_secs(10);
/// Most flights of a handshake: three, with HelloRetryRequest five, with an alert after that one
/// more.
pub(crate) const FLIGHTS_MAX: u8 = 7;
/// Largest flight: certificate chains of 16 KiB for both sides, post-quantum shares, and room.
pub(crate) const FLIGHT_BYTES_MAX: usize = 65_536;
/// Pieces of a flight that do not touch: more than a flight has datagrams, and few enough to be
/// kept sorted.
pub(crate) const FLIGHT_PIECES_MAX: usize = 128;
/// Failed attempts in a row, all with a refusal, after which a client believes it (SPEC §6.2).
pub(crate) const REFUSALS_BELIEVED: u32 = 3;
/// Handshakes in progress of clients that showed no cookie; above it, COOKIE (SPEC §6.4).
pub(crate) const ACCEPTS_WITHOUT_COOKIE: usize = 64;
/// Handshakes in progress of one address prefix (/24, /64) above which its clients must show a
/// cookie.
pub(crate) const ACCEPTS_PER_PREFIX: usize = 16;
/// Handshakes in progress in all. Those of one address prefix, with a cookie or without, are never
/// more than the places that are still free, and where none is the prefix that has most gives one
/// up: a peer with a few valid addresses must not keep all others out.
pub(crate) const ACCEPTS_MAX: usize = 1_024;
/// Sessions that are looked at to find the longest unused one, when one is to be closed for a
/// newcomer: some 0.1 ms, less than the handshake has cost. The next look goes on with others.
pub(crate) const EVICTION_CANDIDATES: usize = 1_024;
/// Validity of a cookie in seconds: a round trip with losses, not a stock for attackers.
pub(crate) const COOKIE_LIFE_SECS: u64 = 15;
/// Seconds after which cookies are made with another key; longer than a cookie lives.
pub(crate) const COOKIE_KEY_LIFE_SECS: u64 = 64;
/// Bytes that a server may send to an unvalidated address per byte received (RFC 9000 §8.1 uses 3
/// too).
pub(crate) const AMPLIFICATION: usize = 3;
/// Answers to packets of no session (RESET, VERSION, UNAVAILABLE), and to questions about unknown
/// ids, a second.
pub(crate) const ANSWERS_PER_SECOND: u32 = 1_000;
/// COOKIEs a second. The rate is more than a sender of spoofed addresses can cause with a gigabit a
/// second, since no client gets in without a cookie meanwhile. Each is an HMAC.
pub(crate) const COOKIES_PER_SECOND: u32 = 100_000;
/// COOKIEs a second for one address (IPv4) or /64: a host that shows all of its cookies must not
/// use up those of others. The rate is more than a host of many clients needs when all of them
/// connect anew.
pub(crate) const COOKIES_PER_ADDRESS: u32 = COOKIES_PER_SECOND / 8;
/// Stateless answers waiting to be sent.
pub(crate) const ANSWERS_QUEUED: usize = 64;

/// First wait before asking again, and up to a quarter more (Homa: `resend_ticks` 5 of 1 ms).
pub(crate) const RESEND_INTERVAL: Duration = Duration::from_millis(5);
/// Least wait before the first question about a call where replies come fast: some round trips of a
/// datacenter.
pub(crate) const REPLY_INTERVAL_MIN: Duration = Duration::from_micros(100);
/// Longest wait for the answer to CANCEL before an application is told that a deadline has passed:
/// many round trips of a datacenter, and less than a deadline is ever exact.
pub(crate) const CANCEL_ANSWER_MAX: Duration = Duration::from_millis(10);
/// Longest wait between questions.
pub(crate) const RESEND_INTERVAL_MAX: Duration = Duration::from_millis(500);
/// First wait before NEED_ACK, and up to a quarter more (Homa: `request_ack_ticks` 2).
pub(crate) const NEED_ACK_INTERVAL: Duration = Duration::from_millis(2);
/// First wait before NEED_ACK of a reply that fits one datagram, while few replies are kept. Such a
/// reply holds little memory, and a caller that misses it asks for it. Meanwhile a next request
/// carries its acknowledgement, and two packets are saved.
pub(crate) const NEED_ACK_INTERVAL_SHORT: Duration = Duration::from_millis(500);
/// A session keeps few requests and replies if it keeps at most this many.
pub(crate) const KEPT_FEW: usize = 256;
/// Longest wait between two NEED_ACK.
pub(crate) const NEED_ACK_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Bytes that a session may send again in a second, beside as many as it sends for the first time:
/// a 64 KB window every 4 ms, so that a path that loses nearly everything still gets on. As many
/// bytes of records may be sealed again for it.
pub(crate) const RESEND_BYTES_PER_SECOND: u64 = 16_000_000;
/// Most bytes that a session may save up for sending again: all that it has sent before a
/// partition.
pub(crate) const RESEND_CREDIT_MAX: u64 = 64 * 1024 * 1024;
/// A session in which nothing has moved for this time gives up memory that it can make again.
pub(crate) const HIBERNATE_AFTER: Duration = Duration::from_secs(1);
/// Questions (NEED_ACK) after which a replier forgets a reply: after about 12 s, for a short reply
/// 20 s. In Homa/Linux a dead client is asked for ever.
pub(crate) const NEED_ACK_TRIES: u32 = 20;
/// Questions (NEED_ACK) after which a replier forgets a reply where replies take more than a share
/// beyond the memory, and where questions brought no progress although the caller is there. They
/// take 6 s, which is longer than a path may be out while a session lives on; for a short reply 13
/// s.
pub(crate) const NEED_ACK_TRIES_PRESSED: u32 = 14;
/// A message whose missing bytes do not come although asked for is dropped after this time, unless
/// its sender asks about it meanwhile.
pub(crate) const INCOMPLETE_LIFE: Duration = Duration::from_secs(10);
/// A peer gets a new association at its request no sooner than this after the one before: a device
/// has 2^31 of them under a key, for all peers (SPEC §15.4).
pub(crate) const ASSOCIATION_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// A session is dead after its peer, although asked, was silent for this time.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(2);
/// A caller whose request is worked on, and that is silent for this time, is asked whether it is
/// there. A live caller asks about its call every [`RESEND_INTERVAL_MAX`], and a quarter more.
pub(crate) const CALLER_QUIET_MAX: Duration = Duration::from_millis(625);
/// PINGs that must have waited in vain before a silent peer is declared dead (SPEC §9.9).
pub(crate) const PINGS_UNTIL_DEAD: u32 = 4;
/// The server closes a session that had no live message for this time.
pub(crate) const IDLE_LIFE: Duration = Duration::from_secs(600);
/// A client begins nothing more in a session this long before a certificate ends, at most: time for
/// calls in progress to end (SPEC §10).
pub(crate) const RETIRED_BEFORE_MAX: Duration = Duration::from_secs(300);
/// Validity of a certificate when its session begins, from which on the session ends before the
/// certificate. The calendar has whole seconds: sessions would follow each other ever sooner.
pub(crate) const RETIRED_FROM: Duration = Duration::from_secs(2);
/// How often a session whose certificate ends is looked after, until nothing is in progress.
pub(crate) const EXPIRY_CHECK: Duration = Duration::from_secs(1);
/// Timers of one session fire at most once per this time for each live message, since a pass looks
/// at all of them: some nanoseconds each, so a hundredth of a core at most.
pub(crate) const TIMER_GRAIN_EACH: Duration = Duration::from_micros(2);
/// Shortest time between two passes of one session's timers, however few messages are live.
pub(crate) const TIMER_GRAIN_MIN: Duration = Duration::from_micros(50);
/// Longest time between two passes of one session's timers, however many messages are live.
pub(crate) const TIMER_GRAIN_MAX: Duration = Duration::from_millis(1);
/// Old opening keys are dropped after this time even without EPOCH_DONE (SPEC §7.3).
pub(crate) const OLD_EPOCH_LIFE: Duration = Duration::from_secs(600);

/// Smallest datagram that every path carries, UDP payload: IPv6's 1,280 less headers, and room for
/// tunnels.
pub(crate) const DATAGRAM_FLOOR: usize = 1_200;
/// Sizes probed above the floor, UDP payload: loopback, jumbo and Ethernet frames, for IPv4 and
/// IPv6.
pub(crate) const PROBE_SIZES: [usize; 6] = [65_507, 65_487, 8_972, 8_952, 1_472, 1_452];
/// Probes of one size before it is given up.
pub(crate) const PROBE_TRIES: u32 = 3;
/// Wait between two rounds of PMTUD probes.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// After a black hole, wait before probing again.
pub(crate) const PROBE_AGAIN: Duration = Duration::from_secs(60);
/// Unanswered questions about large datagrams that make a black hole.
pub(crate) const BLACK_HOLE_QUESTIONS: u32 = 3;

/// Packets before record 0, bytes per session.
pub(crate) const REORDERED_BYTES_PER_SESSION: usize = 256 * 1024;
/// Packets before record 0, bytes per endpoint.
pub(crate) const REORDERED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Packets before record 0 are kept for this time: record 0 is asked for many times meanwhile.
pub(crate) const REORDERED_LIFE: Duration = Duration::from_secs(1);
/// Questions about packets that were trimmed, waiting for the pace of pulls, over all sessions
/// (NDP): 5 ms of 10 Gb/s.
pub(crate) const TRIMMED_QUEUE_MAX: usize = 4_096;
/// Questions about trimmed packets of one session that wait for the pace of pulls: headers forged
/// for one session leave room for others.
pub(crate) const TRIMMED_PER_SESSION: usize = 1_024;
/// Ranges of one message that are asked for because they were trimmed, in a resend interval; others
/// are left to timers.
pub(crate) const TRIMMED_RANGES_MAX: usize = 256;
/// Questions about one range in a resend interval; the second and third only if the answers were
/// trimmed, too. With four in a row a peer would take the path for a black hole (SPEC §9.8), and
/// headers can be forged.
pub(crate) const TRIMMED_TRIES: usize = 3;
/// The link capacity that a trimmed packet takes, in bytes of a record stream: a frame of 66 + 36
/// bytes among frames of 1,538.
pub(crate) const TRIMMED_COST: u32 = 95;
/// Ids of one session whose record 0 was trimmed.
pub(crate) const UNOPENED_MAX: usize = 1_024;
/// Ids of one session that are asked about because record 0 was trimmed, a second: 12 MB of
/// answers.
pub(crate) const UNOPENED_PER_SECOND: u32 = 10_000;
/// Least window of a message that is granted more: two full records, so that one is always on its
/// way. A sender that sends less than that in [`USAGE_INTERVAL`] has no more while others want
/// grants.
pub(crate) const GRANT_WINDOW_MIN: u32 = 2 * 16_406;
/// A sender that uses less than [`GRANT_WINDOW_MIN`] in this time, although it may, is limited by
/// itself. The rate is 6.5 MB/s, a twentieth of the slowest link of a datacenter (1 Gb/s). The time
/// is the least resend interval.
pub(crate) const USAGE_INTERVAL: Duration = RESEND_INTERVAL;
/// Messages granted at once (Homa: `max_overcommit`).
pub(crate) const OVERCOMMIT: usize = 8;
/// Unanswered questions about a message after which it keeps no place among those granted: a dead
/// sender must not hold up the others.
pub(crate) const QUESTIONS_UNTIL_UNGRANTED: u32 = 3;
/// Questions of one kind in one pass of a session's timers; the others follow in the next. Each has
/// at most 16 entries, and the queue of control packets takes 4,096: a question that is dropped
/// every time would never be asked.
pub(crate) const QUESTIONS_PER_PASS: usize = 256;
/// Datagrams of requests that leave again with first probes before any packet of the peer opens. A
/// loss takes few datagrams; many calls that fall silent at once wait for a peer that is held up.
pub(crate) const REQUESTS_AGAIN: u8 = 4;
/// Share of the granted bytes that goes to the oldest message, in thousandths (Homa:
/// `grant_fifo_fraction`).
pub(crate) const OLDEST_SHARE: u32 = 50;
/// Entries of one kind that wait in a session's control queue; further ones are dropped, all are
/// asked again.
pub(crate) const CONTROL_QUEUED: usize = 4_096;
/// Share of `memory_max` that the unacknowledged replies of one session may have before no more of
/// its requests are taken.
pub(crate) const REPLIES_SHARE: usize = 4;
/// Untaken messages beyond this share of `memory_max` give each further short body memory of its
/// own. Below the share each short body may hold the bundle of 17.5 KB that it came in. Messages
/// are counted as 72 B at least, so these bundles hold at most a quarter of `memory_max`.
pub(crate) const BACKLOG_SHARE: usize = 1_024;
/// Bytes of untaken messages beyond which a short body has memory of its own, whatever
/// [`BACKLOG_SHARE`] permits. Some thousand short messages that wait for a moment are below it.
/// They hold 64 MB at most.
pub(crate) const BACKLOG_MAX: usize = 256 * 1_024;
/// Bytes that a request which is worked on, or whose reply is kept, takes beside its body: its
/// entry (twice while a table grows), the table's index, and the state of a reply that leaves
/// alone.
pub(crate) const SERVED_BYTES: usize = 512;
/// Bytes that the unacknowledged replies of one session may have although other sessions have used
/// up the memory, as long as all together are at most one [`REPLIES_SHARE`] beyond it. It is as
/// much as leaves without a grant.
pub(crate) const REPLIES_MIN: usize = 60_000;
/// Live RPCs of one session in each direction; beyond it new ones wait, and their ids are not
/// marked as seen.
pub(crate) const SERVED_MAX: usize = 65_536;
/// Bundles of one session that are not acknowledged: beyond it messages leave alone. A peer that
/// cancels answered calls, and acknowledges no bundle, would have them kept for nothing.
pub(crate) const BUNDLES_MAX: usize = 1_024;
/// Segments in one transmit: what the kernel takes in one call (UDP_MAX_SEGMENTS was 64 until Linux
/// 6.9).
pub(crate) const SEGMENTS_MAX: u16 = 64;
/// The carrier's abilities until the endpoint's owner tells others: those of a UDP socket.
pub(crate) const CAPABILITIES: Capabilities = Capabilities::new(DATAGRAM_LIMIT as usize)
    .with_segments_max(SEGMENTS_MAX)
    .with_batch_max(TRANSMIT_BYTES_MAX)
    .with_priorities(true)
    .with_trims(true);
/// Bytes of one transmit: the largest IPv4 UDP payload.
pub(crate) const TRANSMIT_BYTES_MAX: usize = 65_507;

/// Default of [`crate::TransportConfig::window`]: 1 KiB of bitmaps per stripe.
pub(crate) const WINDOW: u32 = 4_096;
/// Default of [`crate::TransportConfig::part_window`]: at a round trip of 100 us 20 Gb/s, and 8,192
/// calls whose parts nobody takes hold no more than [`MEMORY_MAX`] and a part each.
pub(crate) const PART_WINDOW: u32 = 256 * 1_024;
/// Default of [`crate::TransportConfig::message_limit`].
pub(crate) const MESSAGE_LIMIT: u32 = 64 * 1024 * 1024;
/// Default of [`crate::TransportConfig::unscheduled`] (Homa's benchmarks use 60,000).
pub(crate) const UNSCHEDULED: u32 = 60_000;
/// Default of [`crate::TransportConfig::incoming_max`]: twice the bandwidth-delay product of 25
/// Gb/s at 40 us. Bytes that a core has not opened yet wait in the socket, ahead of every short
/// message (docs/lab/2026-11-21.md).
pub(crate) const INCOMING_MAX: u32 = 256 * 1024;
/// Default of [`crate::TransportConfig::memory_max`].
pub(crate) const MEMORY_MAX: usize = 1024 * 1024 * 1024;
/// Bytes of buffers that are kept for bodies to come; at most an eighth of
/// [`crate::TransportConfig::memory_max`]. It is what comes at 100 Gb/s while an application looks
/// at it for a millisecond.
pub(crate) const BUFFER_POOL_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Messages that leave alone whose memory is kept for the next ones: 50 KB an endpoint.
pub(crate) const TRANSMITTING_KEPT: usize = 256;
/// Default of [`crate::TransportConfig::cipher_cache_sessions`]: 1.3 to 2.6 MB of tables.
pub(crate) const CIPHER_CACHE_SESSIONS: usize = 1_024;
/// Default of [`crate::TransportConfig::sessions_max`].
pub(crate) const SESSIONS_MAX: usize = 65_536;
/// The sessions of one identity are at most this part of all, if nothing else is chosen.
pub(crate) const IDENTITY_SHARE: usize = 4;
/// Default of [`crate::TransportConfig::record_size`], the largest that TLS permits.
pub(crate) const RECORD_SIZE: u16 = 16_384;
/// Default of [`crate::TransportConfig::first_record_size`]: the floor less DATA header (36) and
/// record overhead (22).
pub(crate) const FIRST_RECORD_SIZE: u16 = 1_142;
/// Default of [`crate::TransportConfig::datagram_limit`]: the largest IPv4 UDP payload.
pub(crate) const DATAGRAM_LIMIT: u16 = 65_507;

#[cfg(test)]
mod tests;

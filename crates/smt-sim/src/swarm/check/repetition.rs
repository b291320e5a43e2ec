// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often hosts send the same bytes of a message, judged by what leaves them and what reaches
//! them.
//!
//! 1. Each byte of a message's record stream has a count of how often it has left since the message
//!    last got further.
//! 2. A message gets further when a byte reaches its receiver for the first time.
//! 3. By the schedule of SPEC §9.3 so much time has so many questions, and each of them has one
//!    answer: no byte leaves more often than that.
//!
//! How much was lost does not matter: in a storm what is repeated is lost again each time, so no
//! number of bytes that are repeated for each one lost would be too many. Repetition without any
//! loss is judged alike.
//!
//! Three things count besides. A packet that its sender has not sent, or not so, may spoil the
//! record that it claims to be of: all of the message may then have to come again. A packet that
//! reaches a host that is away or has little memory may have to come again, too. Each header that a
//! switch has left of a packet may bring forward one question (§9.10).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use smt_proto::Time;
use smt_wire::{DataHeader, MessageId, PacketType, SessionIndex};
use xxhash_rust::xxh3::xxh3_64;

use super::{Checker, Failure};
use crate::net::network::Tap;
use crate::net::packet::{HostId, Packet, packets_of};

/// Watches all messages.
#[derive(Debug, Default)]
pub(crate) struct Repetition {
    messages: BTreeMap<Name, Message>,
    /// Hosts that may not keep what reaches them.
    forgetful: BTreeSet<HostId>,
    failure: Option<Failure>,
}

/// A message, or a bundle, in one direction: the session is named by its receiver, for itself.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Name {
    to: HostId,
    session: SessionIndex,
    id: MessageId,
    from: HostId,
}

/// The facts that are known of a message.
#[derive(Debug)]
struct Message {
    /// When it last got further, or began.
    since: Time,
    /// How often each byte has left since.
    left: Counts,
    /// How often each byte has reached its receiver.
    came: Counts,
    /// Hashes of the packets that its sender has sent.
    packets: BTreeSet<u64>,
    /// Headers of packets trimmed by a switch that have reached its receiver since.
    trimmed: u32,
}

/// A number for each byte: for each place where it changes, the number from there on.
#[derive(Debug, Default)]
struct Counts(BTreeMap<u32, u32>);

/// The numbers that several bytes have.
#[derive(Clone, Copy, Debug)]
struct Times {
    least: u32,
    most: u32,
}

impl Repetition {
    /// These hosts have little memory: what reaches them may have to come again.
    pub(crate) fn new(forgetful: impl IntoIterator<Item = HostId>) -> Self {
        Self { forgetful: forgetful.into_iter().collect(), ..Self::default() }
    }

    /// A host was away: what came meanwhile has not reached it.
    pub(crate) fn was_away(&mut self, host: HostId) {
        let messages = self.messages.iter_mut();
        let to_it = messages.filter(|(name, _)| name.to == host);
        to_it.for_each(|(_, message)| message.came.clear());
    }

    /// Returns the failure that was found first.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn departed(&mut self, now: Time, packet: &Packet) {
        for (header, bytes) in data_of(&packet.bytes) {
            let name = Name::of(packet, &header);
            let message = self.messages.entry(name).or_insert_with(|| Message::new(now));
            message.packets.insert(xxh3_64(bytes));
            let times = message.left.add(&range(&header, bytes)).most;
            let most = message.most(now);
            if times > most && self.failure.is_none() {
                let text = format!(
                    "{:?} sent byte {} of {} to {:?} {times} times in {:?} in which nothing new of it came, more than \
                     {most}",
                    name.from,
                    header.offset,
                    name.id,
                    name.to,
                    now.since(message.since)
                );
                self.failure = Some(Failure::new(Checker::Repetition, text));
            }
        }
    }

    fn arrived(&mut self, now: Time, packet: &Packet) {
        if packet.is_trimmed {
            if let Ok(header) = DataHeader::of_trimmed(smt_wire::VERSION, &packet.bytes)
                && let Some(message) = self.messages.get_mut(&Name::of(packet, &header))
            {
                message.trimmed += 1;
            }
            return;
        }
        for (header, bytes) in data_of(&packet.bytes) {
            let name = Name::of(packet, &header);
            let Some(message) = self.messages.get_mut(&name) else {
                continue;
            };
            let is_genuine = message.packets.contains(&xxh3_64(bytes));
            if !is_genuine || self.forgetful.contains(&name.to) {
                message.came.clear();
            }
            if message.came.add(&range(&header, bytes)).least == 1 || !is_genuine {
                message.got_further(now);
            }
        }
    }
}

impl Name {
    fn of(packet: &Packet, header: &DataHeader) -> Self {
        Self { to: packet.to, session: header.session, id: header.id, from: packet.from }
    }
}

impl Message {
    fn new(now: Time) -> Self {
        Self {
            since: now,
            left: Counts::default(),
            came: Counts::default(),
            packets: BTreeSet::new(),
            trimmed: 0,
        }
    }

    fn got_further(&mut self, now: Time) {
        self.since = now;
        self.left.clear();
        self.trimmed = 0;
    }

    /// How often a byte may have left since the message got further.
    fn most(&self, now: Time) -> u32 {
        SENT_AT_LEAST + ASKERS * questions(now.since(self.since)) + self.trimmed
    }
}

impl Counts {
    /// Counts these bytes once more.
    fn add(&mut self, range: &Range<u32>) -> Times {
        for at in [range.start, range.end] {
            let before = self.0.range(..=at).next_back();
            let count = before.map_or(0, |(_, count)| *count);
            self.0.insert(at, count);
        }
        let mut times = Times { least: u32::MAX, most: 0 };
        for count in self.0.range_mut(range.clone()).map(|(_, count)| count) {
            *count += 1;
            times.least = times.least.min(*count);
            times.most = times.most.max(*count);
        }
        times
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// How many questions a schedule has in this time (SPEC §9.3).
fn questions(time: Duration) -> u32 {
    let (mut count, mut due, mut interval) = (0, RESEND_INTERVAL, RESEND_INTERVAL);
    while due <= time && interval < RESEND_INTERVAL_MAX {
        count += 1;
        interval = RESEND_INTERVAL_MAX.min(interval * 2);
        due += interval;
    }
    let rest = time.saturating_sub(due);
    let further = rest.as_nanos() / RESEND_INTERVAL_MAX.as_nanos();
    count + u32::try_from(further).unwrap_or(u32::MAX) + u32::from(due <= time)
}

/// The DATA packets of a datagram.
fn data_of(datagram: &[u8]) -> impl Iterator<Item = (DataHeader, &[u8])> + '_ {
    packets_of(datagram)
        .filter(|(of, bytes)| *of == PacketType::Data && bytes.len() > DataHeader::LEN)
        .filter_map(|(_, bytes)| {
            let header = DataHeader::of_trimmed(smt_wire::VERSION, bytes).ok()?;
            Some((header, bytes))
        })
}

/// The bytes of a record stream that a packet has.
fn range(header: &DataHeader, packet: &[u8]) -> Range<u32> {
    let length = (packet.len() - DataHeader::LEN) as u32;
    header.offset..header.offset.saturating_add(length)
}

/// Watches a network.
pub(crate) struct RepetitionTap(pub(crate) Rc<RefCell<Repetition>>);

impl Tap for RepetitionTap {
    fn departed(&mut self, now: Time, packet: &Packet) {
        self.0.borrow_mut().departed(now, packet);
    }

    fn arrived(&mut self, now: Time, packet: &Packet) {
        self.0.borrow_mut().arrived(now, packet);
    }
}

/// The first wait of a question, and the longest (SPEC §9.3).
const RESEND_INTERVAL: Duration = Duration::from_millis(5);
const RESEND_INTERVAL_MAX: Duration = Duration::from_millis(500);
/// Two schedules ask for the same bytes: that of the message, and that of the epoch which it holds
/// (SPEC §7.3).
const ASKERS: u32 = 2;
/// The first time, once more ahead of an early question, eight times at 40 ms for the epoch, and
/// what had been asked for before the message got further: it waits in sockets and delays, a few
/// times at most.
const SENT_AT_LEAST: u32 = 16;

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The messages of SMT as switches see them: how many packets of each pass between racks, and by
//! which paths.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use smt_proto::Time;
use smt_switch::{DataHeader, MessageCounters, MessageName};

use crate::net::network::Tap;
use crate::net::packet::{Packet, Protocol};
use crate::net::switch::ends;

/// The messages that a watch has seen; shared with the tap in the network.
#[derive(Clone, Default)]
pub(super) struct MessageWatch(Rc<RefCell<Seen>>);

pub(super) struct Seen {
    /// Packets that passed from the first rack to a spine, by message.
    pub(super) counters: MessageCounters,
    /// The spines that each message has taken.
    pub(super) paths: BTreeMap<MessageName, BTreeSet<u32>>,
    /// Packets that left hosts, by message.
    pub(super) sent: BTreeMap<MessageName, u64>,
    /// The first packets of messages, by spine.
    pub(super) begun: BTreeMap<u32, u64>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            counters: MessageCounters::new(MESSAGES_MAX),
            paths: BTreeMap::new(),
            sent: BTreeMap::new(),
            begun: BTreeMap::new(),
        }
    }
}

impl MessageWatch {
    pub(super) fn tap(&self) -> Box<dyn Tap> {
        Box::new(self.clone())
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.0.borrow())
    }
}

impl Tap for MessageWatch {
    fn departed(&mut self, _now: Time, packet: &Packet) {
        if let Some((name, _)) = message_of(packet) {
            *self.0.borrow_mut().sent.entry(name).or_default() += 1;
        }
    }

    fn arrived(&mut self, _now: Time, _packet: &Packet) {}

    fn crossed(&mut self, _now: Time, [from, to]: [u32; 2], packet: &Packet) {
        if let (FIRST_RACK, Some((name, header))) = (from, message_of(packet)) {
            let seen = &mut *self.0.borrow_mut();
            seen.counters.count_data(name, &header, packet.bytes.len());
            let paths = seen.paths.entry(name).or_default();
            if paths.is_empty() {
                *seen.begun.entry(to).or_default() += 1;
            }
            paths.insert(to);
        }
    }
}

/// The message of a packet, by its clear header.
fn message_of(packet: &Packet) -> Option<(MessageName, DataHeader)> {
    let header = (packet.protocol == Protocol::Smt).then(|| DataHeader::read(&packet.bytes))??;
    let name = MessageName { addresses: ends(packet), session: header.session, id: header.id };
    Some((name, header))
}

const FIRST_RACK: u32 = 0;
/// More messages than a run has.
const MESSAGES_MAX: usize = 1 << 20;

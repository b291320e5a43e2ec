// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server: it opens records, delivers messages once, and drops keys when it is told to.

use std::collections::{BTreeMap, BTreeSet};

use smt_record::{
    ControlWindow, CryptoProvider, Delivered, IdWindow, KeyLimits, OpenKeys, SealKeys, Side,
    open_first, open_rest,
};
use smt_wire::MessageId;

use crate::broken::{Broken, Rules};
use crate::crypto::{SUITE, session_secrets};
use crate::packet::{Body, Content, Packet};
use crate::reached::Reached;
use crate::session::{FIRST_FREE, LAYOUT, WINDOW, geometry, index_bits, seal_control};

/// The server's end of a session.
pub(crate) struct Server {
    rules: Rules,
    session: u8,
    pub(crate) window: IdWindow,
    pub(crate) open: OpenKeys,
    seal: SealKeys,
    pub(crate) replay: ControlWindow,
    pub(crate) controls: u64,
    /// Messages of which record 0 has opened and another has not, by counter.
    pub(crate) incoming: BTreeMap<u64, Incoming>,
    /// Epochs whose keys EPOCH_DONE has dropped.
    pub(crate) dropped: BTreeSet<u32>,
}

/// A message that is not whole yet.
pub(crate) struct Incoming {
    pub(crate) opened: BTreeSet<u32>,
    records: u32,
    number: u8,
}

/// The effects of a packet that came.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) answer: Option<Body>,
    /// The application's number of the message that was delivered.
    pub(crate) delivered: Option<u8>,
    pub(crate) reached: Vec<Reached>,
    /// It opened under an epoch that EPOCH_DONE has dropped.
    pub(crate) is_of_a_dropped_epoch: bool,
    /// It opened, and its counter is not below the limit.
    pub(crate) is_out_of_range: bool,
}

/// A record that has opened.
struct Opened {
    counter: u64,
    index: u32,
    records: u32,
    number: u8,
}

impl Server {
    pub(crate) fn new(rules: Rules, session: u8, keys: u8, crypto: &CryptoProvider) -> Self {
        let secrets = session_secrets(keys);
        let limits = KeyLimits::default();
        Self {
            rules,
            session,
            window: window(),
            open: OpenKeys::with_provider(secrets.client, SUITE, limits, None, crypto.clone()),
            seal: SealKeys::with_provider(secrets.server, SUITE, limits, None, crypto.clone()),
            replay: ControlWindow::new(),
            controls: 0,
            incoming: BTreeMap::new(),
            dropped: BTreeSet::new(),
        }
    }

    /// Takes a DATA packet.
    pub(crate) fn take_record(&mut self, packet: &Packet) -> Taken {
        let mut taken = Taken::default();
        let Content::Record { id, index, padded } = packet.content else {
            return taken;
        };
        let Some(parts) = LAYOUT.split(MessageId(id)) else {
            return taken;
        };
        let Some((epoch, number)) = self.open_record(packet) else {
            if self.dropped.contains(&packet.epoch) {
                taken.reached.push(Reached::RefusedDroppedEpoch);
            }
            return taken;
        };
        taken.is_of_a_dropped_epoch = self.dropped.contains(&epoch);
        self.opened(epoch, &mut taken);
        let opened =
            Opened { counter: parts.counter, index, records: geometry().records(padded), number };
        if !self.window.in_range(opened.counter) {
            taken.is_out_of_range = true;
            return taken;
        }
        self.place(&opened, &mut taken);
        taken
    }

    /// The epoch that opens a record, and the first byte of its content.
    fn open_record(&mut self, packet: &Packet) -> Option<(u32, u8)> {
        let Content::Record { id, index, padded } = packet.content else {
            return None;
        };
        let sequence = index_bits().sequence(MessageId(id), index).ok()?;
        let (epoch, key) = self.open.data(packet.epoch.to_le_bytes()[0]).ok()?;
        let mut body = Vec::new();
        if index == 0 {
            open_first(key, sequence, geometry(), padded, &packet.sealed, &mut body).ok()?;
        } else {
            let place = geometry().record(padded, index);
            body.resize(place.content(padded), 0);
            let scratch = &mut Vec::new();
            open_rest(key, sequence, &place, padded, &packet.sealed, &mut body, scratch).ok()?;
        }
        Some((epoch, *body.first()?))
    }

    /// Something has opened under an epoch: it may be a new one ([7.3-9]).
    fn opened(&mut self, epoch: u32, taken: &mut Taken) {
        if self.open.opened(epoch) {
            taken.reached.push(Reached::NewEpoch);
            if self.rules.lack(Broken::ForgetsMarks) {
                self.window = window();
            }
        }
    }

    /// Puts an opened record in its place: live state is looked up before the floor ([4.2-3]).
    fn place(&mut self, record: &Opened, taken: &mut Taken) {
        let counter = record.counter;
        if !self.incoming.contains_key(&counter) {
            if self.window.is_seen(counter) {
                taken.reached.push(Reached::RefusedRepetition);
                taken.answer = self.answer_of_seen(counter);
                return;
            }
            // A later record alone shows nothing: it is asked for again.
            if record.index != 0 || !self.mark(counter) {
                return;
            }
            let incoming = Incoming {
                opened: BTreeSet::new(),
                records: record.records,
                number: record.number,
            };
            self.incoming.insert(counter, incoming);
        }
        let Some(incoming) = self.incoming.get_mut(&counter) else {
            return;
        };
        incoming.opened.insert(record.index);
        if incoming.opened.len() as u32 == incoming.records {
            taken.delivered = Some(incoming.number);
            self.incoming.remove(&counter);
            self.window.mark_delivered(counter);
            taken.answer = self.answer_of_seen(counter);
            if self.rules.lack(Broken::MarksNothing) {
                let limit = self.limit();
                taken.answer = Some(Body::Ack { counter, limit });
            }
        }
    }

    /// Marks a counter seen ([4.2-1]). False if it was seen.
    fn mark(&mut self, counter: u64) -> bool {
        self.rules.lack(Broken::MarksNothing) || self.window.mark_seen(counter).is_some()
    }

    /// The limit that is advertised ([4.2-4]).
    fn limit(&self) -> u64 {
        let ahead = match self.rules.lack(Broken::AdvertisesAhead) {
            true => WINDOW.into(),
            false => 0,
        };
        self.window.limit() + ahead
    }

    fn answer_of_seen(&self, counter: u64) -> Option<Body> {
        let limit = self.limit();
        match self.window.is_delivered(counter) {
            Delivered::Yes => Some(Body::Ack { counter, limit }),
            Delivered::No => None,
            Delivered::Unknown => Some(Body::SeenAndGone { counter }),
        }
    }

    /// Takes a control packet that has opened under an epoch.
    pub(crate) fn take_control(&mut self, epoch: u32, body: Body) -> Taken {
        let mut taken =
            Taken { is_of_a_dropped_epoch: self.dropped.contains(&epoch), ..Taken::default() };
        self.opened(epoch, &mut taken);
        taken.answer = match body {
            Body::EpochDone { epoch } => self.epoch_done(epoch),
            Body::Cancel { counter } => self.cancelled(counter),
            Body::WindowRequest => Some(Body::Window { limit: self.limit() }),
            _ => None,
        };
        taken
    }

    fn epoch_done(&mut self, epoch: u32) -> Option<Body> {
        let is_over = match self.rules.lack(Broken::KeepsOldKeys) {
            true => epoch < self.open.epoch(),
            false => self.open.finish(epoch),
        };
        if is_over {
            self.dropped.extend(0..=epoch);
        }
        is_over.then_some(Body::EpochAck { epoch })
    }

    fn cancelled(&mut self, counter: u64) -> Option<Body> {
        if self.rules.lack(Broken::LooksAtTheFloorFirst) && self.window.is_seen(counter) {
            return Some(Body::Seen { counter });
        }
        if self.incoming.remove(&counter).is_some() {
            return Some(Body::Voided { counter });
        }
        if !self.window.is_seen(counter) {
            if !self.rules.lack(Broken::VoidsWithoutMark) {
                self.window.mark_seen(counter)?;
            }
            return Some(Body::Voided { counter });
        }
        Some(match self.window.is_delivered(counter) {
            Delivered::Yes => Body::Seen { counter },
            Delivered::No => Body::Voided { counter },
            Delivered::Unknown => Body::SeenAndGone { counter },
        })
    }

    /// Whether the key of an epoch is there, or can be derived ([7.3-9], [7.3-12]).
    pub(crate) fn can_open(&self, epoch: u32) -> bool {
        let current = self.open.epoch();
        let previous = self.open.previous();
        epoch == current || previous == Some(epoch) || (epoch == current + 1 && previous.is_none())
    }

    /// Whether a record of a message is not needed any more.
    pub(crate) fn has_opened(&self, counter: u64, index: u32) -> bool {
        match self.incoming.get(&counter) {
            Some(incoming) => incoming.opened.contains(&index),
            None => self.window.is_seen(counter),
        }
    }

    pub(crate) fn control(&mut self, body: Body) -> Packet {
        let number = self.controls;
        self.controls += 1;
        Packet {
            session: self.session,
            to_server: false,
            epoch: self.seal.epoch(),
            content: Content::Control { number, body },
            sealed: seal_control(&mut self.seal, number, body),
        }
    }
}

/// The window as the exploration finds it.
fn window() -> IdWindow {
    let mut window = IdWindow::new(WINDOW, LAYOUT, Side::Client, 0);
    for counter in 1..FIRST_FREE {
        window.mark_seen(counter);
        window.mark_delivered(counter);
    }
    window
}

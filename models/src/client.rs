// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client: it sends messages, moves its sending keys on, and gives messages up.

use std::collections::BTreeMap;

use bytes::Bytes;
use smt_record::{
    ControlWindow, CryptoProvider, FrozenMessage, IdAllocator, KeyLimits, NumberError, OpenKeys,
    OutgoingId, SealKeys, Side,
};
use smt_wire::{Geometry, InnerHeader, Kind, PartMarks};

use crate::broken::{Broken, Rules};
use crate::crypto::{SUITE, session_secrets};
use crate::packet::{Body, Content, Packet};
use crate::session::{FIRST_FREE, LAYOUT, WINDOW, geometry, index_bits};

/// The client's end of a session.
pub(crate) struct Client {
    rules: Rules,
    session: u8,
    ids: IdAllocator,
    /// The id of counter 0, which is begun late: it holds the window's floor.
    oldest: Option<OutgoingId>,
    /// The first counter that the server does not permit yet, as far as the client knows.
    pub(crate) limit: u64,
    pub(crate) seal: SealKeys,
    pub(crate) open: OpenKeys,
    pub(crate) replay: ControlWindow,
    pub(crate) controls: u64,
    /// Messages that are not over, by counter.
    pub(crate) messages: BTreeMap<u64, Outgoing>,
    /// EPOCH_DONE has left for the previous epoch ([7.3-17]).
    pub(crate) is_done_told: bool,
}

/// A message that is not over.
pub(crate) struct Outgoing {
    /// The application's number of it.
    pub(crate) number: u8,
    pub(crate) frozen: FrozenMessage,
    /// Given up, and the server's answer to CANCEL is awaited. Nothing of it is sent any more.
    pub(crate) is_cancelled: bool,
}

/// A message that the application sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToSend {
    pub(crate) number: u8,
    pub(crate) records: u32,
}

impl Client {
    pub(crate) fn new(rules: Rules, session: u8, keys: u8, crypto: &CryptoProvider) -> Self {
        let secrets = session_secrets(keys);
        let limits = KeyLimits::default();
        let mut ids = IdAllocator::new(LAYOUT, Side::Client, 0);
        let oldest = ids.next(WINDOW.into()).ok();
        // The messages of these ids are over: the server has seen them.
        for _ in 1..FIRST_FREE {
            let _over = ids.next(WINDOW.into());
        }
        Self {
            rules,
            session,
            ids,
            oldest,
            limit: WINDOW.into(),
            seal: SealKeys::with_provider(secrets.client, SUITE, limits, None, crypto.clone()),
            open: OpenKeys::with_provider(secrets.server, SUITE, limits, None, crypto.clone()),
            replay: ControlWindow::new(),
            controls: 0,
            messages: BTreeMap::new(),
            is_done_told: false,
        }
    }

    /// Begins a message: its first record leaves. `None` if the window blocks it ([4.2-6]).
    pub(crate) fn begin(&mut self, to_send: ToSend) -> Option<Packet> {
        let limit = match self.rules.lack(Broken::IgnoresLimit) {
            true => u64::MAX,
            false => self.limit,
        };
        let id = match self.oldest.take() {
            Some(id) => id,
            None => self.ids.next(limit).ok()?,
        };
        let frozen = freeze(id, to_send, self.limit).expect("small ids and indices fit");
        let counter = counter_of(&frozen);
        let outgoing = Outgoing { number: to_send.number, frozen, is_cancelled: false };
        self.messages.insert(counter, outgoing);
        self.record(counter, 0)
    }

    /// Seals the next record of a message for the first time.
    pub(crate) fn go_on(&mut self, counter: u64) -> Option<Packet> {
        let frozen = &self.messages.get(&counter)?.frozen;
        let next = frozen.sealed_records();
        (next < frozen.records()).then(|| self.record(counter, next)).flatten()
    }

    /// Repeats what of a message has left. `None` if the key is not there any more.
    pub(crate) fn repeat(&mut self, counter: u64) -> Option<Vec<Packet>> {
        let frozen = &self.messages.get(&counter)?.frozen;
        let sealed = frozen.sealed_records();
        if self.rules.lack(Broken::SealsRepetitionAnew) {
            self.freeze_anew(counter);
        }
        (0..sealed).map(|index| self.record(counter, index)).collect()
    }

    /// The same id once more, which the types of the product do not permit: a second allocator.
    fn freeze_anew(&mut self, counter: u64) {
        let id = IdAllocator::starting_at(LAYOUT, Side::Client, 0, counter).next(u64::MAX);
        let (Some(outgoing), Ok(id)) = (self.messages.get_mut(&counter), id) else {
            return;
        };
        let to_send = ToSend { number: outgoing.number, records: outgoing.frozen.records() };
        let sealed = outgoing.frozen.sealed_records();
        outgoing.frozen = freeze(id, to_send, self.limit).expect("small ids and indices fit");
        for index in 0..sealed {
            self.record(counter, index);
        }
    }

    fn record(&mut self, counter: u64, index: u32) -> Option<Packet> {
        let frozen = &mut self.messages.get_mut(&counter)?.frozen;
        let mut sealed = vec![0; 256];
        let length = frozen.seal(index, &mut self.seal, &mut sealed).ok()?;
        sealed.truncate(length);
        Some(Packet {
            session: self.session,
            to_server: true,
            epoch: frozen.epoch_of(index)?,
            content: Content::Record { id: frozen.id().0, index, padded: frozen.padded_length() },
            sealed,
        })
    }

    /// Moves to the next epoch, if the one before the current is finished ([7.3-18]).
    pub(crate) fn update(&mut self) -> bool {
        if self.rules.lack(Broken::MovesTwice) {
            self.seal.finish_previous();
        }
        if !self.seal.can_update() {
            return false;
        }
        self.seal.update();
        self.is_done_told = false;
        if self.rules.lack(Broken::RestartsControlNumbers) {
            self.controls = 0;
        }
        true
    }

    /// EPOCH_DONE, if it is due: nothing sealed in the previous epoch is outstanding ([7.3-13]).
    pub(crate) fn epoch_done(&mut self) -> Option<Packet> {
        let epoch = self.seal.previous()?;
        let mut live = self.messages.values().filter(|live| !live.is_cancelled);
        let is_held =
            live.any(|live| live.frozen.first_epoch().is_some_and(|first| first <= epoch));
        if is_held && !self.rules.lack(Broken::SaysDoneEarly) {
            return None;
        }
        if self.is_done_told && self.rules.lack(Broken::SaysDoneOnce) {
            return None;
        }
        self.is_done_told = true;
        Some(self.control(Body::EpochDone { epoch }))
    }

    /// Gives a message up; again, to repeat that.
    pub(crate) fn cancel(&mut self, counter: u64) -> Option<Packet> {
        self.messages.get_mut(&counter)?.is_cancelled = true;
        Some(self.control(Body::Cancel { counter }))
    }

    /// Asks for the window's limit ([4.2-7]).
    pub(crate) fn ask_for_window(&mut self) -> Packet {
        self.control(Body::WindowRequest)
    }

    fn control(&mut self, body: Body) -> Packet {
        let number = self.controls;
        self.controls += 1;
        let sealed = crate::session::seal_control(&mut self.seal, number, body);
        Packet {
            session: self.session,
            to_server: true,
            epoch: self.seal.epoch(),
            content: Content::Control { number, body },
            sealed,
        }
    }

    /// Takes a control packet that has opened.
    pub(crate) fn take(&mut self, body: Body) {
        match body {
            Body::EpochAck { epoch } => self.epoch_acked(epoch),
            Body::Ack { counter, limit } => {
                self.messages.remove(&counter);
                self.limit = self.limit.max(limit);
            }
            Body::Window { limit } => self.limit = self.limit.max(limit),
            Body::Voided { counter } | Body::Seen { counter } => {
                self.messages.remove(&counter);
            }
            Body::SeenAndGone { counter } => {
                self.messages.remove(&counter);
            }
            Body::EpochDone { .. } | Body::Cancel { .. } | Body::WindowRequest => {}
        }
    }

    fn epoch_acked(&mut self, epoch: u32) {
        let is_ours = self.seal.previous() == Some(epoch) && self.is_done_told;
        if is_ours || self.rules.lack(Broken::TakesAnyAck) {
            self.seal.finish_previous();
            self.is_done_told = false;
        }
    }
}

impl Outgoing {
    /// The epochs of its sealed records; `None` for one that was forgotten.
    pub(crate) fn epochs(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        (0..self.frozen.sealed_records()).map(|index| (index, self.frozen.epoch_of(index)))
    }
}

fn counter_of(frozen: &FrozenMessage) -> u64 {
    let parts = LAYOUT.split(frozen.id());
    parts.expect("the allocator's ids are in the layout").counter
}

/// A message whose body begins with the application's number of it.
fn freeze(id: OutgoingId, to_send: ToSend, limit: u64) -> Result<FrozenMessage, NumberError> {
    let body = vec![to_send.number; body_length(to_send.records, geometry())];
    let true_length = u32::try_from(body.len()).expect("bodies are short");
    let header = InnerHeader {
        true_length,
        padded_length: InnerHeader::LEN as u32 + true_length,
        kind: Kind::OneWay,
        deadline_us: 0,
        reply_unscheduled: 0,
        failure: None,
        has_metadata: false,
        parts: PartMarks::default(),
        // The limit stands for all that changes in a header while a message is repeated.
        window: u32::try_from(limit).unwrap_or(u32::MAX),
        ack: None,
    };
    FrozenMessage::new(id, &header, Bytes::from(body).into(), geometry(), index_bits())
}

/// One byte in the first record, and one in each further one.
fn body_length(records: u32, geometry: Geometry) -> usize {
    let header = InnerHeader::LEN as u32;
    let fits = |length: &u32| geometry.records(header + length) == records;
    (1..1000).find(fits).expect("some length has so many records") as usize
}

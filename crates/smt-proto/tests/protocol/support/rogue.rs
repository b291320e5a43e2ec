// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer that holds the session's keys and breaks the rules.
//!
//! It seals control packets and messages as it likes in the name of node 0, the client, or node 1,
//! the server. The honest endpoint of that node goes on beside it; their numbers do not meet, since
//! the rogue's begin higher. Not here: parts of messages but a bundle's first, later epochs,
//! handshakes.

use std::cell::RefCell;

use bytes::Bytes;
use smt_record::{
    FrozenMessage, IdAllocator, IdLayout, IdWindow, IndexBits, KeyLimits, OutgoingId, SealKeys,
    SessionSecrets, Side, Suite,
};
use smt_testkit::Transcript;
use smt_wire::{
    Body, ControlHeader, ControlNumber, DataHeader, Geometry, InnerHeader, Kind, MessageId,
    RECORD_OVERHEAD, SessionIndex, TAG_LEN,
};

use super::{Datagram, World};

thread_local! {
    /// Transcript of the handshake that was the last to finish in this test.
    static TRANSCRIPT: RefCell<Option<Transcript>> = const { RefCell::new(None) };
}

/// Notes what the keys of a session are made of.
pub fn learn(transcript: &Transcript) {
    TRANSCRIPT.set(Some(*transcript));
}

pub struct Rogue {
    keys: SealKeys,
    from: usize,
    /// The receiver's index.
    index: SessionIndex,
    counter: u64,
    ids: IdAllocator,
    /// Whether its messages claim to have metadata.
    pub has_metadata: bool,
    /// The marks of parts that its messages have.
    pub parts: smt_wire::PartMarks,
}

impl Rogue {
    /// Speaks as the client of the session that was established last.
    pub fn client(at_server: SessionIndex) -> Self {
        Self::new(0, at_server)
    }

    /// Speaks as its server.
    pub fn server(at_client: SessionIndex) -> Self {
        Self::new(1, at_client)
    }

    /// The same where ids have this layout.
    pub fn with_ids(mut self, layout: IdLayout) -> Self {
        self.ids = IdAllocator::starting_at(layout, side_of(self.from), 0, FIRST_ID);
        self
    }

    fn new(from: usize, index: SessionIndex) -> Self {
        let SessionSecrets { client, server, .. } = TRANSCRIPT
            .with_borrow(|last| last.as_ref().expect("a session was established").secrets());
        let secrets = if from == 0 { client } else { server };
        Self {
            keys: SealKeys::new(secrets, Suite::Aes128Gcm, KeyLimits::default(), None),
            from,
            index,
            counter: 700,
            ids: IdAllocator::starting_at(layout(), side_of(from), 0, FIRST_ID),
            has_metadata: false,
            parts: smt_wire::PartMarks::default(),
        }
    }

    /// Says all of this in one datagram, which is handed in now.
    pub fn say(&mut self, world: &mut World, bodies: &[Body<'_>]) {
        let bytes = bodies.iter().flat_map(|body| self.packet(body)).collect();
        world.hand_in(&self.datagram(world, bytes));
    }

    /// A datagram that says this under a number of the caller's choice, to be handed in later.
    pub fn control(&self, world: &World, number: ControlNumber, body: &Body<'_>) -> Datagram {
        let bytes = self.sealed_control(number, body);
        self.datagram(world, bytes)
    }

    /// The tag that a control packet of its node has under this number, by the words of SPEC §3.4.
    pub fn tag_of(&self, number: u64, aad: &[u8]) -> [u8; TAG_LEN] {
        let cipher = self.keys.control().unwrap();
        cipher.seal(number, aad, &mut []).unwrap()
    }

    fn datagram(&self, world: &World, bytes: Vec<u8>) -> Datagram {
        Datagram { at: world.now, from: self.from, to: 1 - self.from, bytes, is_trimmed: false }
    }

    /// Sends a message of this kind with these application bytes, under an id of its own, which is
    /// handed in now.
    pub fn message(&mut self, world: &mut World, kind: Kind, bytes: &[u8]) -> MessageId {
        let right = self.next_id();
        let (id, whole) = self.sealed(world, (right, kind), bytes);
        world.hand_in(&whole);
        id
    }

    /// The same under an id of its peer's.
    pub fn answer(&mut self, world: &mut World, (id, kind): (MessageId, Kind), bytes: &[u8]) {
        let parts = layout().split(id).expect("an id");
        let mut window = IdWindow::new(4_096, layout(), parts.initiator, 0);
        let sight = window.mark_seen(parts.counter).expect("a low id");
        let (_, whole) = self.sealed(world, (sight.reply_right(), kind), bytes);
        world.hand_in(&whole);
    }

    /// All of such a message in one packet, to be handed in later.
    pub fn whole(&mut self, world: &World, kind: Kind, bytes: &[u8]) -> Datagram {
        let right = self.next_id();
        self.sealed(world, (right, kind), bytes).1
    }

    /// Sends a bundle with these application bytes, which is handed in now.
    pub fn bundle(&mut self, world: &mut World, bytes: &[u8]) {
        self.message(world, Kind::Bundle, bytes);
    }

    /// Sends record 0 alone of a message of this kind. Its id, and all of it in one packet, to be
    /// handed in later.
    pub fn first_of(
        &mut self,
        world: &mut World,
        kind: Kind,
        bytes: &[u8],
    ) -> (MessageId, Datagram) {
        let right = self.next_id();
        let (id, whole) = self.sealed(world, (right, kind), bytes);
        let mut first = whole.clone();
        first.bytes.truncate(DataHeader::LEN + 1_142 + RECORD_OVERHEAD);
        world.hand_in(&first);
        (id, whole)
    }

    fn next_id(&mut self) -> OutgoingId {
        self.ids.next(u64::MAX).expect("it uses few ids")
    }

    fn sealed(
        &mut self,
        world: &World,
        (right, kind): (OutgoingId, Kind),
        bytes: &[u8],
    ) -> (MessageId, Datagram) {
        let id = right.id();
        let padded_length = (InnerHeader::LEN + bytes.len()) as u32;
        let header = InnerHeader {
            true_length: bytes.len() as u32,
            padded_length,
            kind,
            deadline_us: 0,
            reply_unscheduled: 0,
            failure: None,
            has_metadata: self.has_metadata,
            parts: self.parts,
            window: 0,
            ack: None,
        };
        let geometry = Geometry::new(1_142, 16_384).expect("the default");
        let bits = IndexBits::new(16).expect("the default");
        let body = Bytes::copy_from_slice(bytes);
        let frozen = FrozenMessage::new(right, &header, body.into(), geometry, bits);
        let mut frozen = frozen.expect("id and length are small");
        let length = geometry.stream_length(padded_length) as usize;
        let mut packet = vec![0; DataHeader::LEN + length];
        let (head, mut rest) = packet.split_at_mut(DataHeader::LEN);
        for index in 0..frozen.records() {
            let sealed = frozen.seal(index, &mut self.keys, rest);
            rest = &mut rest[sealed.expect("the key is fresh")..];
        }
        let header = DataHeader {
            epoch: self.keys.epoch() as u8,
            retransmit: false,
            session: self.index,
            id,
            message_length: padded_length,
            offset: 0,
        };
        header.emit(smt_wire::VERSION, head.try_into().expect("its length"));
        (id, self.datagram(world, packet))
    }

    fn packet(&mut self, body: &Body<'_>) -> Vec<u8> {
        let number = ControlNumber { stripe: 0, counter: self.counter };
        self.counter += 1;
        self.sealed_control(number, body)
    }

    fn sealed_control(&self, number: ControlNumber, body: &Body<'_>) -> Vec<u8> {
        let header = ControlHeader { epoch: self.keys.epoch() as u8, session: self.index, number };
        let mut packet = vec![0; ControlHeader::packet_len(body)];
        let length = header.emit(smt_wire::VERSION, body, &mut packet);
        let (aad, sealed) = packet.split_at_mut(length);
        // A token or a key that is encrypted is all zeros.
        let (plaintext, tag) = sealed.split_at_mut(sealed.len() - TAG_LEN);
        let cipher = self.keys.control().unwrap();
        let computed = cipher.seal(number.to_u64(), aad, plaintext).unwrap();
        tag.copy_from_slice(&computed);
        packet
    }
}

/// Ids as the default configuration has them.
pub fn layout() -> IdLayout {
    striped(0)
}

/// Ids of this many stripes, as a power of two.
pub fn striped(stripes_log2: u8) -> IdLayout {
    let bits = IndexBits::new(16).expect("the default");
    IdLayout::new(bits, bits, stripes_log2).expect("few stripes")
}

fn side_of(node: usize) -> Side {
    if node == 0 { Side::Client } else { Side::Server }
}

/// The honest endpoint's ids are below.
const FIRST_ID: u64 = 2_000;

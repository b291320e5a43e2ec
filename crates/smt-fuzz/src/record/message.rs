// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A sealed message, and its plaintext as the specification has it.

use arbitrary::Arbitrary;
use smt_record::{
    Aead, FrozenMessage, IdAllocator, IdLayout, IndexBits, OpenError, Side, Suite, open_first,
    open_rest,
};
use smt_wire::{Ack, Geometry, InnerHeader, Kind, MessageId, PartMarks};

use super::keys;

/// How a message is made.
#[derive(Arbitrary, Debug)]
pub struct Sizes {
    suite: u8,
    first: u16,
    rest: u16,
    index_bits: u8,
    counter: u16,
    body: u16,
    padding: u16,
    fill: u8,
    /// The number of a part, or none for a one-way message; and whether parts follow.
    part: Option<(u32, bool)>,
}

/// A message and its records.
pub(super) struct Message {
    pub(super) suite: Suite,
    pub(super) geometry: Geometry,
    pub(super) bits: IndexBits,
    pub(super) id: MessageId,
    pub(super) header: InnerHeader,
    pub(super) body: Vec<u8>,
    pub(super) records: Vec<Vec<u8>>,
    /// The key that they were sealed under.
    pub(super) aead: Box<dyn Aead>,
}

impl Message {
    /// Seals a message of a few records at most.
    pub(super) fn seal(sizes: &Sizes) -> Self {
        let suite = Suite::ALL[usize::from(sizes.suite) % 3];
        let first = 64 + sizes.first % 400;
        let geometry = Geometry::new(first, first + sizes.rest % 600).expect("in range");
        let bits = IndexBits::new(8 + sizes.index_bits % 10).expect("8 to 17");
        // Runs of a byte, so that a cut may fall where 0x17 or a zero stands.
        let body: Vec<u8> =
            (0..sizes.body % 4_000).map(|at| sizes.fill.wrapping_add((at / 64) as u8)).collect();
        let true_length = body.len() as u32;
        let header = InnerHeader {
            true_length,
            padded_length: 40 + true_length + u32::from(sizes.padding % 1_500),
            kind: if sizes.part.is_some() { Kind::Part } else { Kind::OneWay },
            deadline_us: 0,
            reply_unscheduled: 0,
            failure: None,
            has_metadata: false,
            parts: sizes.part.map_or_else(PartMarks::default, |(number, more)| PartMarks {
                reply_in_parts: false,
                more,
                number,
            }),
            window: sizes.counter.into(),
            ack: Some(Ack { base: MessageId(sizes.body.into()), bits: 1 }),
        };
        let layout = IdLayout::new(bits, bits, 0).expect("one stripe");
        let mut ids = IdAllocator::starting_at(layout, Side::Client, 0, sizes.counter.into());
        let right = ids.next(u64::MAX).expect("ids have 47 bits");
        let id = right.id();
        let (mut seal_keys, _) = keys::pair(suite);
        let mut frozen = FrozenMessage::new(right, &header, body.clone().into(), geometry, bits)
            .expect("indices of 8 bits suffice");
        let mut message = Self {
            suite,
            geometry,
            bits,
            id,
            header,
            body,
            records: Vec::new(),
            aead: keys::aead_of(suite, 0),
        };
        for index in 0..frozen.records() {
            let mut out = vec![0; 16_406];
            let length = frozen.seal(index, &mut seal_keys, &mut out);
            out.truncate(length.expect("the key is new"));
            let plaintext = message.plaintext(index);
            let expected = keys::seal(&*message.aead, message.sequence(index), &plaintext);
            assert_eq!(out, expected, "record {index}");
            message.records.push(out);
        }
        message
    }

    /// Opens a record as it was sealed.
    pub(super) fn open_genuine(&self, index: usize) {
        let record = &self.records[index];
        let index = index as u32;
        let (_, mut keys) = keys::pair(self.suite);
        let (_, aead) = keys.data(0).expect("the first epoch's key");
        let opened =
            self.open(index, self.header.padded_length, self.sequence(index), (aead, record));
        assert_eq!(opened.as_deref(), Ok(self.content(index)), "record {index}");
    }

    /// Tries to open `record` in the place of record `index`; yields the application bytes in it.
    ///
    /// Whatever comes of it, nothing but the record's own place is written.
    #[expect(clippy::panic_in_result_fn, reason = "a broken promise is what the fuzzer looks for")]
    pub(super) fn open(
        &self,
        index: u32,
        claimed: u32,
        sequence: u64,
        (aead, record): (&dyn Aead, &[u8]),
    ) -> Result<Vec<u8>, OpenError> {
        if index == 0 {
            let mut body = BEFORE.to_vec();
            let opened = open_first(aead, sequence, self.geometry, claimed, record, &mut body);
            assert!(body.starts_with(BEFORE));
            assert!(opened.is_ok() || body == BEFORE, "an error leaves no byte");
            return opened.map(|_| body.split_off(BEFORE.len()));
        }
        let place = self.geometry.record(claimed, index);
        let length = place.content(self.true_inner());
        let mut scratch = Vec::new();
        let mut without = vec![0; length];
        let mut open = |content: &mut [u8]| {
            let true_inner = self.true_inner();
            open_rest(aead, sequence, &place, true_inner, record, content, &mut scratch)
        };
        let opened = open(&mut without);
        let mut with_extra = vec![0; length + 1];
        with_extra[length] = EXTRA_BYTE;
        assert_eq!(open(&mut with_extra), opened, "a byte more makes no difference");
        assert_eq!(with_extra[length], EXTRA_BYTE, "the byte behind is put back");
        opened.map(|()| {
            assert_eq!(without, with_extra[..length]);
            without
        })
    }

    /// The plaintext of a record by SPEC §5.2 and §5.3.
    pub(super) fn plaintext(&self, index: u32) -> Vec<u8> {
        let mut inner = vec![0; InnerHeader::LEN];
        self.header.emit((&mut inner[..]).try_into().expect("40 bytes"));
        inner.extend_from_slice(&self.body);
        let place = self.geometry.record(self.header.padded_length, index);
        let start = (place.inner_start as usize).min(inner.len());
        let end = (start + usize::from(place.extent)).min(inner.len());
        let mut plaintext = inner[start..end].to_vec();
        plaintext.push(0x17);
        plaintext.resize(usize::from(place.extent) + 1, 0);
        plaintext
    }

    /// The inner bytes in a record: of record 0 those of the header, and then the application's.
    pub(super) fn inner(&self, index: u32) -> Vec<u8> {
        let header = if index == 0 { InnerHeader::LEN } else { 0 };
        let mut inner = self.plaintext(index);
        inner.truncate(header + self.content(index).len());
        inner
    }

    /// The application bytes in a record.
    pub(super) fn content(&self, index: u32) -> &[u8] {
        let place = self.geometry.record(self.header.padded_length, index);
        let place_of = |inner: u32| (inner as usize).saturating_sub(40).min(self.body.len());
        let end = place.inner_start + u32::from(place.extent);
        &self.body[place_of(place.inner_start)..place_of(end)]
    }

    pub(super) fn sequence(&self, index: u32) -> u64 {
        let sequence = self.bits.sequence(self.id, index);
        sequence.expect("indices of 8 bits suffice")
    }

    pub(super) fn true_inner(&self) -> u32 {
        40 + self.header.true_length
    }
}

const BEFORE: &[u8] = b"what was there before";
const EXTRA_BYTE: u8 = 0xA7;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The datagrams of the carrier are those that the core would have sealed itself.

use bytes::Bytes;
use smt_carrier::{Path, TAG_BYTES, Unsealed};
use smt_record::{
    CryptoProvider, FrozenMessage, IdAllocator, IdLayout, ImportedIdentity, ImportedKey, IndexBits,
    KeyLimits, SealKeys, Side, Unavailable,
};
use smt_wire::{DataHeader, Geometry, InnerHeader, Kind, SessionIndex, VERSION};

use super::*;

/// Keeps the datagrams that it is to send.
#[derive(Default)]
struct Kept(Mutex<Vec<Vec<u8>>>);

impl Carrier for &Kept {
    fn send(&self, batch: &Batch<'_>) -> Result<(), SendError> {
        let segments = batch.bytes.chunks(batch.plain_segment_size());
        self.0.lock().unwrap().extend(segments.map(<[u8]>::to_vec));
        Ok(())
    }

    fn receive(&self, _: &mut dyn FnMut(Arrival<'_>), _: Wait) -> Result<usize, ReceiveError> {
        Ok(0)
    }

    fn local_address(&self) -> SocketAddr {
        "192.0.2.1:1".parse().unwrap()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(1_472).with_segments_max(64)
    }
}

/// The library aws-lc, which tells the keys that it is given.
#[derive(Clone, Default)]
struct Telling(Arc<Mutex<Vec<Key>>>);

/// A key and its IV.
type Key = (Vec<u8>, [u8; 12]);

impl AeadProvider for Telling {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        self.0.lock().unwrap().push((key.to_vec(), iv));
        AwsLc.aead(suite, key, iv)
    }
}

/// A message of several records.
struct Message {
    header: DataHeader,
    /// Sealed, one behind the other.
    sealed: Vec<u8>,
    /// The same bytes before they were sealed, with room for the tags.
    plain: Vec<u8>,
    /// Where each record's plaintext is in them, its length and its number.
    records: Vec<(usize, usize, u64)>,
    key: Vec<u8>,
    iv: [u8; 12],
}

/// Sending keys, which are told when they come into use.
fn keys(suite: Suite, telling: &Telling) -> SealKeys {
    let identity = ImportedIdentity { key_name: b"", client: b"client", server: b"server" };
    let secrets = ImportedKey::new(&AwsLc, suite, b"a key for tests", &identity)
        .session_secrets(&AwsLc, &[1; 32]);
    SealKeys::with_provider(
        secrets.client,
        suite,
        KeyLimits::default(),
        None,
        CryptoProvider::aws_lc().with_aead(Arc::new(telling.clone())),
    )
}

/// Seals a message by `smt-record`.
fn message(suite: Suite) -> Message {
    let telling = Telling::default();
    let mut keys = keys(suite, &telling);
    let layout = IdLayout { id_bits: 47, stripes_log2: 0 };
    let id = IdAllocator::starting_at(layout, Side::Client, 0, 0).next(u64::MAX).unwrap();
    let header = InnerHeader {
        true_length: BODY as u32,
        padded_length: (BODY + 40) as u32,
        kind: Kind::Request,
        deadline_us: 0,
        reply_unscheduled: 60_000,
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
        window: 4_096,
        ack: None,
    };
    let body = Bytes::from_iter((0..BODY).map(|at| (at % 251) as u8));
    let geometry = Geometry::new(1_142, 2_000).unwrap();
    let bits = IndexBits::new(16).unwrap();
    let message_id = id.id();
    let data_header = DataHeader {
        epoch: 0,
        retransmit: false,
        session: SessionIndex(7),
        id: message_id,
        message_length: header.padded_length,
        offset: 0,
    };
    let mut frozen = FrozenMessage::new(id, &header, body.into(), geometry, bits).unwrap();
    let (mut sealed, mut records) = (Vec::new(), Vec::new());
    for index in 0..frozen.records() {
        let mut out = vec![0; 3_000];
        let length = frozen.seal(index, &mut keys, &mut out).unwrap();
        let plain = length - 5 - TAG_BYTES;
        records.push((sealed.len() + 5, plain, bits.sequence(message_id, index).unwrap()));
        sealed.extend_from_slice(&out[..length]);
    }
    let (key, iv) = telling.0.lock().unwrap()[0].clone();
    let opening = AwsLc.aead(suite, &key, iv).unwrap();
    let mut plain = sealed.clone();
    for (at, length, number) in &records {
        let header = plain[at - 5..*at].to_vec();
        let record = &mut plain[*at..at + length + TAG_BYTES];
        opening.open_in_place(*number, &header, record).unwrap();
        record[*length..].fill(0);
    }
    Message { header: data_header, sealed, plain, records, key, iv }
}

#[test]
fn a_stream_of_plaintext_records_leaves_as_the_datagrams_that_the_core_would_seal() {
    for suite in Suite::ALL {
        let message = message(suite);
        assert!(message.records.len() > 3 && message.plain != message.sealed);
        let kept = Kept::default();
        let carrier = SealingCarrier::new(&kept, 1);
        let store = Carrier::keys(&carrier).unwrap();
        let key = store.install(suite.code(), &message.key, message.iv).unwrap();
        let unsealed: Vec<Unsealed> = message
            .records
            .iter()
            .map(|(at, length, number)| Unsealed {
                at: *at as u32,
                length: *length as u32,
                key,
                number: *number,
            })
            .collect();
        let mut header = [0; DataHeader::LEN];
        message.header.emit(VERSION, &mut header);
        let path = Path::to("192.0.2.2:2".parse().unwrap());
        let batch = Batch {
            layout: Layout::Segmented { header: &header, payload_max: PAYLOAD },
            unsealed: &unsealed,
            ..Batch::datagrams(path, 1, &message.plain)
        };
        carrier.send(&batch).unwrap();
        let expected = message.sealed.chunks(PAYLOAD).enumerate();
        let expected: Vec<Vec<u8>> = expected
            .map(|(number, part)| {
                let mut header = [0; DataHeader::LEN];
                let offset = (number * PAYLOAD) as u32;
                let own = DataHeader { offset, ..message.header };
                own.emit(VERSION, &mut header);
                [&header[..], part].concat()
            })
            .collect();
        assert_eq!(*kept.0.lock().unwrap(), expected, "{suite:?}");
    }
}

#[test]
fn a_store_takes_as_many_keys_as_it_has_room_for_and_known_suites() {
    let kept = Kept::default();
    let carrier = SealingCarrier::new(&kept, 1);
    let keys = carrier.sealing_keys();
    let install = |suite| keys.install(suite, &[1; 16], [2; 12]);
    assert_eq!(install(0x1399), Err(NoRoom));
    let first = install(Suite::Aes128Gcm.code()).unwrap();
    assert_eq!(install(Suite::Aes128Gcm.code()), Err(NoRoom));
    keys.remove(first);
    assert_ne!(install(Suite::Aes128Gcm.code()).unwrap(), first);
}

const BODY: usize = 9_000;
/// Bytes of the stream in a datagram: no record begins or ends where one does.
const PAYLOAD: usize = 1_436;

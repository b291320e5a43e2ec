// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The records of a message are the same bytes whether the CPU has sealed them (smt-record, by
//! aws-lc) or the NIC (by a library of its own), for sizes around every boundary.

use std::sync::{Arc, Mutex};

use smt_nic::completion::Status;
use smt_nic::descriptor::{ContextId, Work};
use smt_nic::tls::TlsEngine;
use smt_nic::{Nic, NicConfig};
use smt_record::{
    Aead, AeadProvider, AwsLc, Body, CryptoProvider, DirectionSecrets, FrozenMessage, IdAllocator,
    IdLayout, IndexBits, KeyLimits, OpenFailed, SealKeys, SessionSecrets, Side, Suite, Unavailable,
};
use smt_wire::{Geometry, InnerHeader, Kind, PartMarks};

use super::support::{Host, Run, tls_block};

/// A record as the CPU was given it to seal.
#[derive(Clone)]
struct Given {
    key: Vec<u8>,
    iv: [u8; 12],
    number: u64,
    header: Vec<u8>,
    plaintext: Vec<u8>,
}

impl Given {
    /// The record in a NIC's segment: header, plaintext and room for the tag.
    fn unsealed(&self) -> Vec<u8> {
        [&self.header[..], &self.plaintext, &[0; 16]].concat()
    }
}

/// The library aws-lc, and what it was given to seal.
#[derive(Clone, Default)]
struct Watched(Arc<Mutex<Vec<Given>>>);

struct WatchedAead {
    inner: Box<dyn Aead>,
    key: Vec<u8>,
    iv: [u8; 12],
    given: Watched,
}

impl AeadProvider for Watched {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        Ok(Box::new(WatchedAead {
            inner: AwsLc.aead(suite, key, iv)?,
            key: key.to_vec(),
            iv,
            given: self.clone(),
        }))
    }
}

impl WatchedAead {
    fn note(&self, number: u64, header: &[u8], plaintext: &[u8]) {
        self.given.0.lock().unwrap().push(Given {
            key: self.key.clone(),
            iv: self.iv,
            number,
            header: header.to_vec(),
            plaintext: plaintext.to_vec(),
        });
    }
}

impl Aead for WatchedAead {
    fn seal(&self, number: u64, aad: &[u8], text: &mut [u8]) -> Result<[u8; 16], Unavailable> {
        self.note(number, aad, text);
        self.inner.seal(number, aad, text)
    }

    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        self.note(number, aad, &[body, tail].concat());
        self.inner.seal_scatter(number, aad, body, tail, out)
    }

    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; 16],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        self.inner.open(number, aad, ciphertext, tag, out)
    }

    fn open_in_place(&self, number: u64, aad: &[u8], text: &mut [u8]) -> Result<(), OpenFailed> {
        self.inner.open_in_place(number, aad, text)
    }
}

/// A session's sending side: keys, ids, and what they were given.
struct Sender {
    given: Watched,
    keys: SealKeys,
    ids: IdAllocator,
    bits: IndexBits,
}

impl Sender {
    fn new(suite: Suite) -> Self {
        let given = Watched::default();
        let crypto = CryptoProvider::aws_lc().with_aead(Arc::new(given.clone()));
        let bits = IndexBits::new(16).unwrap();
        let layout = IdLayout::new(bits, bits, 0).unwrap();
        let limits = KeyLimits::new(1 << 20, 1 << 19, 64).unwrap();
        Self {
            keys: SealKeys::with_provider(secrets(suite), suite, limits, None, crypto),
            given,
            ids: IdAllocator::new(layout, Side::Client, 0),
            bits,
        }
    }

    /// The record stream of a message of so many bytes, and the records that it was sealed of.
    fn seal(&mut self, length: u32, geometry: Geometry) -> (Vec<u8>, Vec<Given>) {
        let padded_length = InnerHeader::LEN as u32 + length;
        let header = InnerHeader {
            true_length: length,
            padded_length,
            kind: Kind::Request,
            deadline_us: 0,
            reply_unscheduled: 0,
            failure: None,
            has_metadata: false,
            parts: PartMarks::default(),
            window: 64,
            ack: None,
        };
        let body: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
        let id = self.ids.next(u64::MAX).unwrap();
        let body = Body::from(body);
        let mut frozen = FrozenMessage::new(id, &header, body, geometry, self.bits).unwrap();
        let mut stream = Vec::new();
        for index in 0..frozen.records() {
            let mut out = vec![0; 20_000];
            let bytes = frozen.seal(index, &mut self.keys, &mut out).unwrap();
            stream.extend(&out[..bytes]);
        }
        let given = std::mem::take(&mut *self.given.0.lock().unwrap());
        (stream, given)
    }
}

fn secrets(suite: Suite) -> DirectionSecrets {
    let made = SessionSecrets::from_exporter(suite, &[0; 32], |out, _, _| {
        out.fill(0x5A);
        Ok::<(), ()>(())
    });
    made.unwrap().client
}

/// Lets a NIC seal the records in segments of at most 64 KiB, by one context from the first
/// record's number on.
fn by_nic(suite: Suite, records: &[Given], stride: u16) -> Run {
    let (mut host, mut nic) = (Host::default(), Nic::new(NicConfig::default(), TlsEngine));
    let queue = host.add_queue(&mut nic, 64);
    let first = &records[0];
    let context = ContextId(1);
    let block = tls_block(suite.code(), &first.key, first.iv, first.number);
    let create = host.create(context, &block);
    host.post(&mut nic, queue, create);
    let mut segment = Vec::new();
    for record in records {
        let record = record.unsealed();
        if segment.len() + record.len() > 65_536 {
            let work = host.segment(Some(context), &segment, stride);
            host.post(&mut nic, queue, work);
            segment.clear();
        }
        segment.extend(record);
    }
    let work = host.segment(Some(context), &segment, stride);
    host.post(&mut nic, queue, work);
    let run = host.run(&mut nic, queue);
    assert!(run.completions.iter().all(|of| of.status == Status::Done));
    assert_eq!(nic.counters().records_sealed, records.len() as u64);
    run
}

/// Lengths of messages whose record streams end around the ends of records, packets and segments.
fn lengths(geometry: Geometry, stride: u32) -> Vec<u32> {
    let first = u32::from(geometry.record(u32::MAX, 0).extent);
    let next = u32::from(geometry.record(u32::MAX, 1).extent);
    let header = InnerHeader::LEN as u32;
    let ends = [
        header,
        stride - 22,
        stride,
        first,
        first + next,
        first + 2 * next,
        2 * stride,
        65_536 - 22 * (1 + 65_536 / next),
        65_536,
        100_000,
    ];
    let around = ends.iter().flat_map(|end| end.saturating_sub(2)..=end + 2);
    around.map(|padded| padded.saturating_sub(header)).collect()
}

#[test]
fn messages_of_all_sizes_around_the_boundaries_are_the_same_bytes() {
    for suite in Suite::ALL {
        for (first, size, stride) in [(1_142, 16_384, 1_400), (64, 64, 200), (1_142, 4_096, 8_940)]
        {
            let geometry = Geometry::new(first, size).unwrap();
            let mut sender = Sender::new(suite);
            for length in lengths(geometry, stride.into()) {
                let (stream, records) = sender.seal(length, geometry);
                let run = by_nic(suite, &records, stride);
                assert!(run.stream() == stream, "{suite:?}, {length} bytes");
                let most = run.packets.iter().map(Vec::len).max().unwrap();
                assert!(most <= usize::from(stride) + 64);
            }
        }
    }
}

#[test]
fn a_record_that_is_sent_again_by_either_is_the_same_bytes() {
    let geometry = Geometry::new(1_142, 4_096).unwrap();
    let mut sender = Sender::new(Suite::Aes128Gcm);
    let (stream, records) = sender.seal(20_000, geometry);
    let (mut host, mut nic) = (Host::default(), Nic::new(NicConfig::default(), TlsEngine));
    let queue = host.add_queue(&mut nic, 64);
    let context = ContextId(1);
    let first = &records[0];
    let block = tls_block(0x1301, &first.key, first.iv, 0);
    let create = host.create(context, &block);
    host.post(&mut nic, queue, create);
    // The CPU has sent the message; of its records the NIC sends some again, in any order.
    for index in [3, 0, 3, 1, 4] {
        let record = &records[index];
        let number = record.number;
        host.post(&mut nic, queue, Work::Resync { context, number });
        let work = host.segment(Some(context), &record.unsealed(), 0);
        host.post(&mut nic, queue, work);
        let again = host.run(&mut nic, queue).stream();
        let place = geometry.record(20_040, index as u32);
        let start = place.stream_start as usize;
        assert!(again == stream[start..start + place.stream_len()]);
    }
}

#[test]
fn the_next_key_is_a_context_of_its_own() {
    let geometry = Geometry::new(1_142, 4_096).unwrap();
    let mut sender = Sender::new(Suite::Aes256Gcm);
    let (before, of_before) = sender.seal(10_000, geometry);
    sender.keys.update();
    let (after, of_after) = sender.seal(10_000, geometry);
    assert!(of_before[0].key != of_after[0].key);
    let (mut host, mut nic) = (Host::default(), Nic::new(NicConfig::default(), TlsEngine));
    let queue = host.add_queue(&mut nic, 64);
    for (id, records) in [(1, &of_before), (2, &of_after)] {
        let first = &records[0];
        let block = tls_block(0x1302, &first.key, first.iv, first.number);
        let create = host.create(ContextId(id), &block);
        host.post(&mut nic, queue, create);
    }
    for (id, records) in [(2, &of_after), (1, &of_before)] {
        let payload: Vec<u8> = records.iter().flat_map(Given::unsealed).collect();
        let work = host.segment(Some(ContextId(id)), &payload, 1_400);
        host.post(&mut nic, queue, work);
    }
    assert!(host.run(&mut nic, queue).stream() == [after, before].concat());
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The test kit that several of this crate's tests share: secrets, keys, messages, and an AEAD that
//! records the nonces it seals under.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use smt_wire::{Geometry, InnerHeader, Kind, TAG_LEN};

use crate::aead::{Aead, AeadProvider, OpenFailed, Unavailable};
use crate::aws_lc::AwsLc;
use crate::frozen_message::FrozenMessage;
use crate::imported_key::{ImportedIdentity, ImportedKey};
use crate::key_limits::KeyLimits;
use crate::key_schedule::{DirectionSecrets, Side};
use crate::numbers::{IdAllocator, IdLayout, IndexBits};
use crate::open_keys::OpenKeys;
use crate::seal_keys::SealKeys;
use crate::suite::Suite;

pub(crate) const LAYOUT: IdLayout = IdLayout { id_bits: 47, stripes_log2: 0 };

/// 16 records per key, update wanted from 12 on, 20 failed openings.
pub(crate) fn small_limits() -> KeyLimits {
    KeyLimits::new(16, 12, 20).unwrap()
}

/// The same secrets for the same side and suite.
pub(crate) fn secrets(suite: Suite, side: Side) -> DirectionSecrets {
    let identity = ImportedIdentity { key_name: b"", client: b"client", server: b"server" };
    let session = ImportedKey::new(&AwsLc, suite, b"a key for tests", &identity)
        .session_secrets(&AwsLc, &[1; 32]);
    match side {
        Side::Client => session.client,
        Side::Server => session.server,
    }
}

pub(crate) fn seal_keys(suite: Suite) -> SealKeys {
    SealKeys::new(secrets(suite, Side::Client), suite, small_limits(), None)
}

pub(crate) fn open_keys(suite: Suite) -> OpenKeys {
    OpenKeys::new(secrets(suite, Side::Client), suite, small_limits(), None)
}

pub(crate) fn geometry() -> Geometry {
    Geometry::new(64, 100).unwrap()
}

pub(crate) fn index_bits() -> IndexBits {
    IndexBits::new(16).unwrap()
}

pub(crate) fn header(true_length: u32, padded_length: u32) -> InnerHeader {
    InnerHeader {
        true_length,
        padded_length,
        kind: Kind::Request,
        deadline_us: 1_000,
        reply_unscheduled: 60_000,
        failure: None,
        has_metadata: false,
        parts: smt_wire::PartMarks::default(),
        window: 4_096,
        ack: None,
    }
}

/// A message of the client with counter `counter` and some padding.
pub(crate) fn message(counter: u64, body: &[u8], padding: u32) -> FrozenMessage {
    let id = IdAllocator::starting_at(LAYOUT, Side::Client, 0, counter).next(u64::MAX).unwrap();
    let length = u32::try_from(body.len()).unwrap();
    let header = header(length, 40 + length + padding);
    FrozenMessage::new(id, &header, Bytes::copy_from_slice(body).into(), geometry(), index_bits())
        .unwrap()
}

pub(crate) fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

pub(crate) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i % 251) as u8).collect()
}

/// Seals one record into a vector of its length.
pub(crate) fn sealed(message: &mut FrozenMessage, index: u32, keys: &mut SealKeys) -> Vec<u8> {
    let mut out = vec![0; 200];
    let length = message.seal(index, keys, &mut out).unwrap();
    out.truncate(length);
    out
}

/// Sees the uses of ciphers, and may refuse them; the ciphers themselves are those of aws-lc.
/// `smt-testkit` has the same for other crates, but depends on this one.
trait Watch: Clone + Send + Sync + 'static {
    /// A cipher is about to be made, or to be used.
    fn attempt(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// These bytes, one after the other, are about to be sealed under this key.
    fn sealing(&self, _key: &[u8], _number: u64, _aad: &[u8], _plaintext: &[&[u8]]) {}

    /// A cipher that is watched.
    fn watched(
        &self,
        suite: Suite,
        key: &[u8],
        iv: [u8; 12],
    ) -> Result<Box<dyn Aead>, Unavailable> {
        self.attempt()?;
        Ok(Box::new(Watched {
            inner: AwsLc.aead(suite, key, iv)?,
            key: key.to_vec(),
            watch: self.clone(),
        }))
    }
}

struct Watched<W> {
    inner: Box<dyn Aead>,
    key: Vec<u8>,
    watch: W,
}

impl<W: Watch> Aead for Watched<W> {
    fn seal(
        &self,
        number: u64,
        aad: &[u8],
        plaintext: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Unavailable> {
        self.watch.attempt()?;
        self.watch.sealing(&self.key, number, aad, &[plaintext]);
        self.inner.seal(number, aad, plaintext)
    }

    fn seal_scatter(
        &self,
        number: u64,
        aad: &[u8],
        body: &[u8],
        tail: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unavailable> {
        self.watch.attempt()?;
        self.watch.sealing(&self.key, number, aad, &[body, tail]);
        self.inner.seal_scatter(number, aad, body, tail, out)
    }

    fn open(
        &self,
        number: u64,
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        out: &mut [u8],
    ) -> Result<(), OpenFailed> {
        self.watch.attempt()?;
        self.inner.open(number, aad, ciphertext, tag, out)
    }

    fn open_in_place(&self, number: u64, aad: &[u8], sealed: &mut [u8]) -> Result<(), OpenFailed> {
        self.watch.attempt()?;
        self.inner.open_in_place(number, aad, sealed)
    }
}

/// Sealed inputs, AAD and plaintext, by key and number.
type Seen = HashMap<(Vec<u8>, u64), Vec<u8>>;

/// Remembers (key, number, plaintext): the same key and number with other bytes is a reused nonce.
#[derive(Clone, Default)]
pub(crate) struct NonceWatch {
    seen: Arc<Mutex<Seen>>,
}

impl NonceWatch {
    pub(crate) fn numbers(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub(crate) fn keys(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.keys().map(|(key, _)| key.clone()).collect::<HashSet<_>>().len()
    }
}

impl Watch for NonceWatch {
    fn sealing(&self, key: &[u8], number: u64, aad: &[u8], plaintext: &[&[u8]]) {
        let sealed = [aad, &plaintext.concat()].concat();
        let mut seen = self.seen.lock().unwrap();
        let before = seen.entry((key.to_vec(), number)).or_insert_with(|| sealed.clone());
        assert_eq!(*before, sealed, "number {number} with other bytes under one key");
    }
}

impl AeadProvider for NonceWatch {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        self.watched(suite, key, iv)
    }
}

/// Ciphers that can be tried while `can_try` says so.
#[derive(Clone, Default)]
pub(crate) struct Unsteady {
    pub(crate) can_try: Arc<AtomicBool>,
}

impl Watch for Unsteady {
    fn attempt(&self) -> Result<(), Unavailable> {
        let can_try = self.can_try.load(Ordering::Relaxed);
        can_try.then_some(()).ok_or(Unavailable)
    }
}

impl AeadProvider for Unsteady {
    fn aead(&self, suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Box<dyn Aead>, Unavailable> {
        self.watched(suite, key, iv)
    }
}

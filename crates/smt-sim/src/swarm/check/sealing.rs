// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sees every sealing and opening, beneath the code under test: at its cipher library.
//!
//! Under one key a record number may be sealed again only with the same bytes (a retransmission,
//! SPEC §5.5), and a control number never (§3.4); nor does a control number open twice, since its
//! window looks before (§4.3). A key seals no more numbers than its host's limit permits (§7.3).
//! Keys are known by their bytes, so two hosts with one key are seen as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_testkit::{CipherWatch, KeyWatch};
use smt_wire::RECORD_HEADER_LEN;
use xxhash_rust::xxh3::Xxh3;

use super::{Checker, Failure};

/// Hashes of all plaintexts by key and number, and the control packets that have opened.
#[derive(Debug, Default)]
pub struct SealBook {
    sealed: BTreeMap<(u64, u64), u64>,
    /// Numbers under each key.
    numbers: BTreeMap<u64, u64>,
    opened: BTreeSet<(u64, u64)>,
    failures: Vec<Failure>,
}

impl SealBook {
    /// Returns the failures that were found so far.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Whether nothing was found.
    pub(crate) fn is_well(&self) -> bool {
        self.failures.is_empty()
    }

    /// How many different numbers were used, over all keys.
    pub fn count(&self) -> usize {
        self.sealed.len()
    }

    fn note(&mut self, key: Key, number: u64, aad: &[u8], digest: u64) {
        let before = self.sealed.insert((key.name, number), digest);
        // The additional data of a control packet is longer (SPEC §3.4).
        let is_record = aad.len() == RECORD_HEADER_LEN;
        let text = match before {
            None => return self.count_number(key),
            Some(_) if !is_record => format!("control number {number:#x} was used again"),
            Some(same) if same == digest => return,
            Some(_) => format!("record number {number:#x} sealed two different plaintexts"),
        };
        self.failures.push(Failure::new(Checker::Sealing, text));
    }

    /// Told once of a key.
    fn count_number(&mut self, key: Key) {
        let numbers = self.numbers.entry(key.name).or_default();
        *numbers += 1;
        if *numbers == key.numbers_max + 1 {
            let text = format!("more numbers were sealed under a key than {}", key.numbers_max);
            self.failures.push(Failure::new(Checker::Sealing, text));
        }
    }

    fn note_opened(&mut self, key: u64, number: u64) {
        if !self.opened.insert((key, number)) {
            let text = format!("control number {number:#x} was believed again");
            self.failures.push(Failure::new(Checker::Sealing, text));
        }
    }
}

/// Sees the ciphers of one host.
pub struct SealWatch {
    book: Arc<Mutex<SealBook>>,
    numbers_max: u64,
}

impl SealWatch {
    /// Writes into `book`. The host seals at most `numbers_max` records, or control packets, under
    /// one key.
    pub fn new(book: Arc<Mutex<SealBook>>, numbers_max: u64) -> Self {
        Self { book, numbers_max }
    }
}

/// A key, and how many numbers it may seal.
#[derive(Clone, Copy)]
struct Key {
    name: u64,
    numbers_max: u64,
}

impl CipherWatch for SealWatch {
    fn key(&self, key: &[u8], iv: &[u8; 12]) -> Box<dyn KeyWatch> {
        Box::new(SealKeyWatch {
            key: Key { name: digest(&[key, iv]), numbers_max: self.numbers_max },
            book: Arc::clone(&self.book),
        })
    }
}

struct SealKeyWatch {
    key: Key,
    book: Arc<Mutex<SealBook>>,
}

impl SealKeyWatch {
    fn book(&self) -> MutexGuard<'_, SealBook> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyWatch for SealKeyWatch {
    fn sealing(&self, number: u64, aad: &[u8], plaintext: &[&[u8]]) {
        let digest = digest(&[&[aad], plaintext].concat());
        self.book().note(self.key, number, aad, digest);
    }

    fn opened(&self, number: u64, aad: &[u8]) {
        if aad.len() != RECORD_HEADER_LEN {
            self.book().note_opened(self.key.name, number);
        }
    }
}

/// A collision by accident is as good as impossible in a run, and nobody here makes them on
/// purpose.
fn digest(parts: &[&[u8]]) -> u64 {
    let mut hash = Xxh3::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.digest()
}

#[cfg(test)]
mod tests {
    use smt_record::{AeadProvider, Suite};
    use smt_testkit::WatchedCipher;
    use smt_wire::TAG_LEN;

    use super::*;

    const RECORD: [u8; RECORD_HEADER_LEN] = [0x17, 3, 3, 0, 20];
    const CONTROL: [u8; 28] = [1; 28];

    /// Seals these texts under number 7 of one key, or of one key each.
    fn failures(aad: &[u8], keys: [u8; 2], texts: [&[u8]; 2]) -> usize {
        let book = Arc::new(Mutex::new(SealBook::default()));
        let cipher = WatchedCipher::new(SealWatch::new(Arc::clone(&book), 100));
        for (key, text) in keys.iter().zip(texts) {
            let aead = cipher.aead(Suite::Aes128Gcm, &[*key; 16], [0; 12]).unwrap();
            aead.seal(7, aad, &mut text.to_vec()).unwrap();
        }
        let book = book.lock().unwrap();
        book.failures().len()
    }

    #[test]
    fn a_record_may_be_sealed_again_but_not_with_other_bytes() {
        assert_eq!(failures(&RECORD, [1, 1], [b"same", b"same"]), 0);
        assert_eq!(failures(&RECORD, [1, 1], [b"same", b"diff"]), 1);
        assert_eq!(failures(&RECORD, [1, 2], [b"same", b"diff"]), 0);
    }

    #[test]
    fn a_control_number_is_used_once() {
        assert_eq!(failures(&CONTROL, [1, 1], [b"", b""]), 1);
        assert_eq!(failures(&CONTROL, [1, 2], [b"", b""]), 0);
    }

    #[test]
    fn a_key_is_used_up_to_its_limit() {
        let book = Arc::new(Mutex::new(SealBook::default()));
        let cipher = WatchedCipher::new(SealWatch::new(Arc::clone(&book), 3));
        let aead = cipher.aead(Suite::Aes128Gcm, &[1; 16], [0; 12]).unwrap();
        let failures_after = |numbers: &[u64]| {
            for number in numbers {
                aead.seal(*number, &RECORD, &mut []).unwrap();
            }
            book.lock().unwrap().failures().len()
        };
        assert_eq!(failures_after(&[1, 2, 3]), 0);
        assert_eq!(failures_after(&[1, 2, 3]), 0, "sealed again");
        assert_eq!(failures_after(&[4, 5]), 1);
    }

    #[test]
    fn a_control_number_opens_once() {
        for (aad, expected) in [(&CONTROL[..], 1), (&RECORD, 0)] {
            let book = Arc::new(Mutex::new(SealBook::default()));
            let cipher = WatchedCipher::new(SealWatch::new(Arc::clone(&book), 100));
            let aead = cipher.aead(Suite::Aes128Gcm, &[1; 16], [0; 12]).unwrap();
            let tag = aead.seal(7, aad, &mut []).unwrap();
            let forged = [0; TAG_LEN];
            assert!(aead.open_in_place(7, aad, &mut forged.clone()).is_err());
            for _ in 0..2 {
                aead.open_in_place(7, aad, &mut tag.clone()).unwrap();
            }
            assert_eq!(book.lock().unwrap().failures().len(), expected);
        }
    }
}

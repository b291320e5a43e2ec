// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The keys of all sessions: sending keys for context blocks and for sealing in software, receiving
//! keys for context blocks alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_carrier::{KeyHandle, KeyStore, NoRoom, ReceivingFlow, ReceivingKey};
use smt_nic::engine::CONTEXT_BLOCK_BYTES;
use smt_nic::tls;
use smt_record::{Aead, AeadProvider, AwsLc, Suite};
use zeroize::Zeroizing;

/// The keys that a driver seals records with, in the device or in software.
pub struct NicKeys {
    library: Arc<dyn AeadProvider>,
    keys_max: usize,
    table: Mutex<KeyTable>,
}

#[derive(Default)]
struct KeyTable {
    next: u64,
    keys: BTreeMap<KeyHandle, Arc<Key>>,
    receiving: BTreeMap<KeyHandle, Arc<KeptReceivingKey>>,
    /// Receiving keys that were installed, and that the driver has not given the device yet.
    installed: Vec<KeyHandle>,
    /// Keys that were removed, and whose contexts the driver has not destroyed yet.
    removed: Vec<KeyHandle>,
}

/// Changes of keys, from one look at the table. A flow has one context in the device: the key that
/// a newer one replaces is among those that were removed by then, and its context goes first.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct KeyChanges {
    /// Keys whose contexts are to be destroyed.
    pub(crate) removed: Vec<KeyHandle>,
    /// Receiving keys that were installed, and are there still.
    pub(crate) installed: Vec<KeyHandle>,
}

/// One receiving key.
pub(crate) struct KeptReceivingKey {
    suite: u16,
    key: Zeroizing<Vec<u8>>,
    iv: Zeroizing<[u8; 12]>,
    epoch: u8,
    flow: ReceivingFlow,
}

impl KeptReceivingKey {
    /// The block of which the device makes a receive context.
    pub(crate) fn block(&self) -> Zeroizing<[u8; CONTEXT_BLOCK_BYTES]> {
        let flow = self.flow;
        let mut block = Zeroizing::new([0; CONTEXT_BLOCK_BYTES]);
        block[..2].copy_from_slice(&[tls::ENGINE, tls::receive::RECEIVING]);
        block[2..4].copy_from_slice(&self.suite.to_be_bytes());
        block[4..4 + self.key.len()].copy_from_slice(&self.key);
        block[36..48].copy_from_slice(&self.iv[..]);
        block[48..56].copy_from_slice(&flow.session.to_be_bytes());
        block[56] = self.epoch;
        block[57] = flow.index_bits;
        block[58..60].copy_from_slice(&flow.first_record.to_be_bytes());
        block[60..62].copy_from_slice(&flow.record.to_be_bytes());
        block
    }
}

/// One key.
pub(crate) struct Key {
    pub(crate) suite: Suite,
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) iv: Zeroizing<[u8; 12]>,
    pub(crate) aead: Box<dyn Aead>,
}

impl NicKeys {
    /// Room for this many sending keys, and for as many receiving keys.
    #[must_use]
    pub fn new(keys_max: usize) -> Arc<Self> {
        Self::with_library(Arc::new(AwsLc), keys_max)
    }

    /// The same with another library for what is sealed in software.
    #[must_use]
    pub fn with_library(library: Arc<dyn AeadProvider>, keys_max: usize) -> Arc<Self> {
        Arc::new(Self { library, keys_max, table: Mutex::default() })
    }

    /// The key, if it was not removed.
    pub(crate) fn get(&self, handle: KeyHandle) -> Option<Arc<Key>> {
        self.table().keys.get(&handle).cloned()
    }

    /// Whether keys were installed or removed of which the device has not been told.
    pub(crate) fn has_changes(&self) -> bool {
        let table = self.table();
        !table.removed.is_empty() || !table.installed.is_empty()
    }

    /// The changes since the last call.
    pub(crate) fn take_changes(&self) -> KeyChanges {
        let table = &mut *self.table();
        KeyChanges {
            removed: std::mem::take(&mut table.removed),
            installed: std::mem::take(&mut table.installed),
        }
    }

    /// The receiving key, if it was not removed.
    pub(crate) fn receiving(&self, handle: KeyHandle) -> Option<Arc<KeptReceivingKey>> {
        self.table().receiving.get(&handle).cloned()
    }

    /// Counts all receiving keys as installed anew: the device has forgotten them.
    pub(crate) fn reinstall_receiving(&self) {
        let table = &mut *self.table();
        table.installed = table.receiving.keys().copied().collect();
    }

    fn table(&self) -> MutexGuard<'_, KeyTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyStore for NicKeys {
    fn install(&self, suite: u16, key: &[u8], iv: [u8; 12]) -> Result<KeyHandle, NoRoom> {
        let suite = Suite::from_code(suite).ok_or(NoRoom)?;
        if key.len() != suite.key_len() {
            return Err(NoRoom);
        }
        let aead = self.library.aead(suite, key, iv).map_err(|_| NoRoom)?;
        let mut table = self.table();
        if table.keys.len() >= self.keys_max {
            return Err(NoRoom);
        }
        table.next += 1;
        let handle = KeyHandle(table.next);
        let key = Key { suite, key: Zeroizing::new(key.to_vec()), iv: Zeroizing::new(iv), aead };
        table.keys.insert(handle, Arc::new(key));
        Ok(handle)
    }

    fn install_receiving(&self, key: &ReceivingKey<'_>) -> Result<KeyHandle, NoRoom> {
        let suite = Suite::from_code(key.suite).ok_or(NoRoom)?;
        let mut table = self.table();
        if key.key.len() != suite.key_len() || table.receiving.len() >= self.keys_max {
            return Err(NoRoom);
        }
        table.next += 1;
        let handle = KeyHandle(table.next);
        let kept = KeptReceivingKey {
            suite: key.suite,
            key: Zeroizing::new(key.key.to_vec()),
            iv: Zeroizing::new(*key.iv),
            epoch: key.epoch,
            flow: key.flow,
        };
        table.receiving.insert(handle, Arc::new(kept));
        table.installed.push(handle);
        Ok(handle)
    }

    fn remove(&self, key: KeyHandle) {
        let mut table = self.table();
        let is_receiving = table.receiving.remove(&key).is_some();
        if is_receiving && let Some(at) = table.installed.iter().position(|of| *of == key) {
            // The device has not heard of it.
            table.installed.remove(at);
            return;
        }
        if table.keys.remove(&key).is_some() || is_receiving {
            table.removed.push(key);
        }
    }
}

/// How many keys there are, none of them.
impl std::fmt::Debug for NicKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NicKeys").field("keys", &self.table().keys.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_there_until_it_is_removed_and_its_contexts_are_told_once() {
        let keys = NicKeys::new(1);
        let handle = keys.install(0x1301, &[1; 16], [2; 12]).unwrap();
        assert!(keys.get(handle).is_some());
        assert_eq!(keys.install(0x1301, &[1; 16], [2; 12]), Err(NoRoom));
        keys.remove(handle);
        keys.remove(handle);
        assert!(keys.get(handle).is_none());
        // A packet for the key that is gone must not leave under another.
        let next = keys.install(0x1301, &[3; 16], [4; 12]).unwrap();
        assert_ne!(next, handle);
        assert!(keys.get(handle).is_none());
        assert!(keys.has_changes());
        assert_eq!(keys.take_changes().removed, [handle]);
        assert!(!keys.has_changes());
        assert_eq!(keys.take_changes(), KeyChanges::default());
    }

    #[test]
    fn an_unknown_suite_and_a_key_of_another_length_are_refused() {
        let keys = NicKeys::new(9);
        assert_eq!(keys.install(0x1399, &[1; 16], [2; 12]), Err(NoRoom));
        assert_eq!(keys.install(0x1302, &[1; 16], [2; 12]), Err(NoRoom));
    }

    fn receiving(session: u64) -> ReceivingKey<'static> {
        ReceivingKey {
            suite: 0x1301,
            key: &[1; 16],
            iv: &[2; 12],
            epoch: 0,
            flow: ReceivingFlow { session, index_bits: 16, first_record: 1_142, record: 16_384 },
        }
    }

    #[test]
    fn receiving_keys_have_room_of_their_own_and_are_told_once() {
        let keys = NicKeys::new(1);
        let sending = keys.install(0x1301, &[1; 16], [2; 12]).unwrap();
        let handle = keys.install_receiving(&receiving(7)).unwrap();
        assert_ne!(handle, sending);
        assert_eq!(keys.install_receiving(&receiving(8)), Err(NoRoom));
        assert!(keys.has_changes());
        assert_eq!(keys.take_changes().installed, [handle]);
        assert!(!keys.has_changes());
        keys.reinstall_receiving();
        assert_eq!(keys.take_changes().installed, [handle]);
        keys.remove(handle);
        assert_eq!(keys.take_changes().removed, [handle]);
        assert!(keys.receiving(handle).is_none());
    }

    #[test]
    fn a_receiving_key_that_the_device_never_had_is_not_taken_from_it() {
        let keys = NicKeys::new(1);
        let handle = keys.install_receiving(&receiving(7)).unwrap();
        keys.remove(handle);
        assert!(!keys.has_changes());
        assert_eq!(keys.take_changes(), KeyChanges::default());
    }

    /// A session rests and comes back while the driver looks: its flow never has two contexts.
    #[test]
    fn a_key_that_replaces_another_is_told_with_the_removal_of_that_one() {
        const TURNS: usize = 50_000;
        let keys = NicKeys::new(2);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..TURNS {
                    let handle = keys.install_receiving(&receiving(7)).unwrap();
                    keys.remove(handle);
                }
                is_over.store(true, order);
            });
            let mut has = Vec::new();
            while !is_over.load(order) {
                let KeyChanges { removed, installed } = keys.take_changes();
                has.retain(|key| !removed.contains(key));
                has.extend(installed);
                assert!(has.len() <= 1, "the device would refuse the second: {has:?}");
            }
        });
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The associations of PSP: those that the device has allocated and nobody has taken yet, and those
//! of peers, under which the driver sends.
//!
//! They have a lock of their own. The core asks for an association while the device is locked, from
//! within a call that hands over what has arrived: what it gets was allocated before.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smt_carrier::{
    Association, AssociationHandle, AssociationKey, Associations, NoRoom, NotInstalled,
};
use smt_nic::engine::CONTEXT_BLOCK_BYTES;
use smt_nic::psp::{self, PspVersion};
use zeroize::Zeroizing;

use crate::ended_associations::{EndedAssociations, print_of};

/// The associations of one device.
pub struct NicAssociations {
    sending_max: usize,
    /// Looked at for each arrival, without the lock.
    rotations: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Associations that the device has allocated, by their versions.
    allocated: [Vec<Association>; VERSIONS.len()],
    /// The handle that was given last.
    named: u64,
    /// Room that was set aside, for as many associations of peers at most.
    reserved: usize,
    sending: BTreeMap<AssociationHandle, Arc<KeptAssociation>>,
    /// Associations that were removed, and whose contexts the driver has not destroyed yet.
    removed: Vec<AssociationHandle>,
    ended: EndedAssociations,
}

/// An association of a peer, and how many of its IVs may have been used.
pub(crate) struct KeptAssociation {
    pub(crate) handle: AssociationHandle,
    version: PspVersion,
    spi: u32,
    key: AssociationKey,
    /// The lowest IV that no packet can have had.
    next_iv: AtomicU64,
}

impl KeptAssociation {
    /// Sets the IVs of so many packets aside, whether they will leave or not, and returns the
    /// first. `None`: there are not as many.
    pub(crate) fn reserve(&self, packets: u64) -> Option<u64> {
        let order = Ordering::Relaxed;
        let reserved = self.next_iv.fetch_update(order, order, |next| next.checked_add(packets));
        reserved.ok()
    }

    /// The block of which a context is made that begins with this IV.
    pub(crate) fn block(&self, iv: u64) -> Zeroizing<[u8; CONTEXT_BLOCK_BYTES]> {
        let mut block = Zeroizing::new([0; CONTEXT_BLOCK_BYTES]);
        block[..2].copy_from_slice(&[psp::ENGINE, self.version.number()]);
        block[4..36].copy_from_slice(self.key.bytes());
        block[36..40].copy_from_slice(&self.spi.to_be_bytes());
        block[40..48].copy_from_slice(&iv.to_be_bytes());
        block
    }

    fn print(&self) -> u64 {
        print_of(self.spi, self.key.bytes())
    }

    fn is_same(&self, other: &Self) -> bool {
        self.spi == other.spi && self.key.bytes() == other.key.bytes()
    }
}

impl NicAssociations {
    /// Room for this many associations of peers.
    pub(crate) fn new(sending_max: usize) -> Arc<Self> {
        Arc::new(Self { sending_max, rotations: AtomicU64::new(0), table: Mutex::default() })
    }

    /// The association of a peer, if it was not removed.
    pub(crate) fn get(&self, handle: AssociationHandle) -> Option<Arc<KeptAssociation>> {
        self.table().sending.get(&handle).cloned()
    }

    /// Whether associations were removed of which the device has not been told.
    pub(crate) fn has_removed(&self) -> bool {
        !self.table().removed.is_empty()
    }

    /// The associations that were removed since the last call.
    pub(crate) fn take_removed(&self) -> Vec<AssociationHandle> {
        std::mem::take(&mut self.table().removed)
    }

    /// Lets the device allocate as many associations as were taken.
    pub(crate) fn refill(&self, mut allocate: impl FnMut(PspVersion) -> Option<psp::Association>) {
        let table = &mut *self.table();
        for (pool, version) in table.allocated.iter_mut().zip(VERSIONS) {
            let missing = ALLOCATED_AHEAD.saturating_sub(pool.len());
            let fresh = std::iter::from_fn(|| allocate(version)).take(missing);
            pool.extend(fresh.map(|of| told(&of)));
        }
    }

    /// Rotates the keys of the device by this, which returns whether one of two was replaced. No
    /// association of the key before is given afterwards.
    pub(crate) fn rotate(&self, rotate: impl FnOnce() -> bool) {
        let table = &mut *self.table();
        self.rotations.fetch_add(u64::from(rotate()), Ordering::SeqCst);
        table.allocated = Default::default();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Associations for NicAssociations {
    /// There are none while the device has no key.
    fn versions(&self) -> &[u8] {
        let table = self.table();
        match table.allocated.iter().all(|pool| !pool.is_empty()) {
            true => &VERSION_NUMBERS,
            false => &[],
        }
    }

    fn reserve(&self) -> Result<(), NoRoom> {
        let mut table = self.table();
        if table.reserved >= self.sending_max {
            return Err(NoRoom);
        }
        table.reserved += 1;
        Ok(())
    }

    fn release(&self) {
        let mut table = self.table();
        table.reserved = table.reserved.saturating_sub(1);
    }

    fn allocate(&self, version: u8) -> Result<Association, NoRoom> {
        let place = VERSION_NUMBERS.iter().position(|of| *of == version);
        let pool = &mut self.table().allocated[place.ok_or(NoRoom)?];
        pool.pop().ok_or(NoRoom)
    }

    /// Refuses an association that is there already, or was removed lately: packets would share
    /// their IVs, since each installation counts from 1. One that was removed before 65,536 others
    /// is not known any more, and must not come again.
    fn install(&self, association: Association) -> Result<AssociationHandle, NotInstalled> {
        let mut table = self.table();
        let handle = AssociationHandle(table.named + 1);
        let version = PspVersion::of_number(association.version).ok_or(NotInstalled::NoRoom)?;
        let kept = KeptAssociation {
            handle,
            version,
            spi: association.spi,
            key: association.key,
            next_iv: AtomicU64::new(FIRST_IV),
        };
        let is_there = table.sending.values().any(|other| other.is_same(&kept));
        if is_there || table.ended.contains(kept.print()) {
            return Err(NotInstalled::UsedBefore);
        }
        if table.sending.len() >= self.sending_max || kept.spi << 1 == 0 {
            return Err(NotInstalled::NoRoom);
        }
        table.named = handle.0;
        table.sending.insert(handle, Arc::new(kept));
        Ok(handle)
    }

    fn remove(&self, association: AssociationHandle) {
        let table = &mut *self.table();
        if let Some(kept) = table.sending.remove(&association) {
            table.ended.add(kept.print());
            table.removed.push(association);
        }
    }

    fn rotations(&self) -> u64 {
        self.rotations.load(Ordering::SeqCst)
    }
}

/// How many associations there are, no key of them.
impl fmt::Debug for NicAssociations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NicAssociations")
            .field("sending", &self.table().sending.len())
            .finish_non_exhaustive()
    }
}

/// An association of the device, as its host tells the peer.
fn told(of: &psp::Association) -> Association {
    Association {
        version: of.version.number(),
        spi: of.spi,
        key: AssociationKey::new(*of.key.bytes()),
    }
}

/// The versions, the preferred one first, and their numbers.
const VERSIONS: [PspVersion; 2] = [PspVersion::AesGcm128, PspVersion::AesGcm256];
const VERSION_NUMBERS: [u8; 2] = [0, 1];
/// Associations of each version that the device has allocated before anybody asks.
const ALLOCATED_AHEAD: usize = 32;
/// The IV of an association's first packet (SPEC §15.3).
const FIRST_IV: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_nic::psp::{MasterKey, MasterKeys};

    fn association(spi: u32) -> Association {
        Association { version: 0, spi, key: AssociationKey::new([spi as u8; 32]) }
    }

    #[test]
    fn an_association_of_a_peer_is_there_until_it_is_removed_and_its_handle_is_new() {
        let all = NicAssociations::new(1);
        let handle = all.install(association(5)).unwrap();
        assert_eq!(all.install(association(6)), Err(NotInstalled::NoRoom));
        all.remove(handle);
        all.remove(handle);
        assert!(all.get(handle).is_none() && all.has_removed());
        assert_eq!(all.take_removed(), [handle]);
        assert_ne!(all.install(association(6)), Ok(handle));
    }

    // SMT [15.4-14]
    #[test]
    fn room_is_set_aside_for_so_many_associations_until_it_is_given_back() {
        let all = NicAssociations::new(2);
        let reserved = [(), (), ()].map(|()| all.reserve());
        assert_eq!(reserved, [Ok(()), Ok(()), Err(NoRoom)]);
        all.release();
        assert_eq!([all.reserve(), all.reserve()], [Ok(()), Err(NoRoom)]);
    }

    #[test]
    fn an_association_that_is_there_is_not_taken_twice() {
        let all = NicAssociations::new(9);
        all.install(association(5)).unwrap();
        let used_before = Err(NotInstalled::UsedBefore);
        assert_eq!(all.install(association(5)), used_before);
        let of_another_device = Association { key: AssociationKey::new([9; 32]), ..association(5) };
        assert!(all.install(of_another_device).is_ok());
        let handle = all.install(association(6)).unwrap();
        all.remove(handle);
        assert_eq!(all.install(association(6)), used_before, "its IVs were used");
    }

    #[test]
    fn an_unknown_version_and_an_spi_that_no_device_gives_are_refused() {
        let all = NicAssociations::new(9);
        let mut unknown = association(5);
        unknown.version = 2;
        assert_eq!(all.install(unknown), Err(NotInstalled::NoRoom));
        assert_eq!(all.install(association(0)), Err(NotInstalled::NoRoom));
        assert_eq!(all.install(association(1 << 31)), Err(NotInstalled::NoRoom));
        assert_eq!(all.allocate(2).map(|of| of.spi), Err(NoRoom));
    }

    // SMT [15.3-2], [15.3-4]
    #[test]
    fn no_association_of_an_older_key_is_given_after_a_rotation() {
        let all = NicAssociations::new(9);
        assert_eq!(all.allocate(0).map(|of| of.spi), Err(NoRoom));
        let mut keys = MasterKeys::new(MasterKey::new([1; 32]));
        all.refill(|version| keys.allocate(version).ok());
        let [first, second] = [0, 1].map(|version| all.allocate(version).unwrap().spi);
        assert!(first != second && (first | second) >> 31 == 0);
        all.rotate(|| {
            keys.rotate(MasterKey::new([2; 32]));
            true
        });
        assert_eq!(all.allocate(0).map(|of| of.spi), Err(NoRoom));
        all.refill(|version| keys.allocate(version).ok());
        assert_eq!(all.allocate(0).unwrap().spi >> 31, 1);
        assert_eq!(all.rotations(), 1);
    }

    // SMT [15.3-7]
    #[test]
    fn ivs_that_were_set_aside_are_not_given_again_and_end() {
        let all = NicAssociations::new(9);
        let handle = all.install(association(5)).unwrap();
        let kept = all.get(handle).unwrap();
        let reserved = [3, 1, u64::MAX, u64::MAX - 5, 1].map(|packets| kept.reserve(packets));
        assert_eq!(reserved, [Some(1), Some(4), None, Some(5), None]);
    }

    #[test]
    fn no_key_is_shown() {
        let all = NicAssociations::new(9);
        all.install(association(77)).unwrap();
        assert_eq!(format!("{all:?}"), "NicAssociations { sending: 1, .. }");
    }
}

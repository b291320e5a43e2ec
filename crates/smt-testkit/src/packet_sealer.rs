// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A device that seals whole packets, as one of PSP does, and two keys that it replaces by turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use smt_carrier::{
    Association, AssociationHandle, AssociationKey, Associations, NoRoom, NotInstalled,
};

use crate::hash;

/// A device that seals whole packets. It keeps nothing for a receiving association: SPI and its
/// own key give the association's key again, as with PSP. Payloads stay in the clear.
///
/// | off | size | field of a sealed packet |
/// |--:|--:|:--|
/// | 0 | 1 | 0xFE, which no datagram of SMT begins with |
/// | 1 | 4 | SPI |
/// | 5 | 8 | number under the association |
/// | 13 | .. | datagram |
/// | .. | 16 | hash of the key and all bytes before |
#[derive(Debug)]
pub struct PacketSealer(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The device's keys, by the top bit of their SPIs.
    keys: [Option<[u8; 32]>; 2],
    rotations: u64,
    /// SPIs that were given under the current key.
    allocated: u32,
    sending: BTreeMap<AssociationHandle, Sending>,
    handles: u64,
    /// Associations that were installed: SPI and key.
    had: BTreeSet<(u32, [u8; 32])>,
    /// Associations for which room may be set aside from now on.
    room: u64,
    /// Associations that may be given and taken from now on.
    left: u64,
}

#[derive(Debug)]
struct Sending {
    spi: u32,
    key: [u8; 32],
    packets: u64,
}

impl PacketSealer {
    /// A device whose keys come of this number: two devices differ in it.
    #[must_use]
    pub fn new(number: u8) -> Self {
        Self(Mutex::new(State {
            keys: [Some([number; 32]), None],
            rotations: 0,
            allocated: 0,
            sending: BTreeMap::new(),
            handles: 0,
            had: BTreeSet::new(),
            room: u64::MAX / 2,
            left: u64::MAX,
        }))
    }

    /// Replaces the older one of the device's keys.
    pub fn rotate(&self) {
        let state = &mut *self.state();
        state.rotations += 1;
        state.allocated = 0;
        let current = state.keys[1 - state.place()].expect("one key is there from the beginning");
        let place = state.place();
        state.keys[place] = Some(hash(&[&current]));
    }

    /// Gives the SPIs of the current key again, as a device does that gets one that it had before.
    pub fn give_spis_again(&self) {
        self.state().allocated = 0;
    }

    /// Has room for so many associations from now on, and what is given back.
    pub fn set_room(&self, associations: u64) {
        self.state().room = associations;
    }

    /// Gives and takes so many associations from now on.
    pub fn set_left(&self, associations: u64) {
        self.state().left = associations;
    }

    /// The associations that packets may be sealed under.
    #[must_use]
    pub fn installed(&self) -> Vec<AssociationHandle> {
        self.state().sending.keys().copied().collect()
    }

    /// Seals a datagram. `None`: there is no such association.
    pub fn seal(&self, association: AssociationHandle, datagram: &[u8]) -> Option<Vec<u8>> {
        let state = &mut *self.state();
        let sending = state.sending.get_mut(&association)?;
        sending.packets += 1;
        let mut packet = vec![MARK];
        packet.extend(sending.spi.to_be_bytes());
        packet.extend(sending.packets.to_be_bytes());
        packet.extend(datagram);
        let tag = hash(&[&sending.key, &packet]);
        packet.extend(&tag[..TAG]);
        Some(packet)
    }

    /// The SPI and the datagram in a sealed packet; `None` if it is none, or none of this device.
    #[must_use]
    pub fn open(&self, packet: &[u8]) -> Option<(u32, Vec<u8>)> {
        let (front, tag) = packet.split_last_chunk::<TAG>()?;
        let (header, datagram) = front.split_first_chunk::<HEADER>()?;
        let spi = u32::from_be_bytes(*header[1..].first_chunk()?);
        let key = self.state().key_of(spi)?;
        let is_genuine = header[0] == MARK && hash(&[&key, front])[..TAG] == tag[..];
        is_genuine.then(|| (spi, datagram.to_vec()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The place of the current key.
    fn place(&self) -> usize {
        (self.rotations % 2) as usize
    }

    fn key_of(&self, spi: u32) -> Option<[u8; 32]> {
        let device = self.keys[usize::from(spi & KEY_BIT != 0)]?;
        Some(hash(&[&device, &spi.to_be_bytes()]))
    }

    fn take_one(&mut self) -> Result<(), NoRoom> {
        self.left = self.left.checked_sub(1).ok_or(NoRoom)?;
        Ok(())
    }
}

impl Associations for PacketSealer {
    fn versions(&self) -> &[u8] {
        &[1, 0]
    }

    fn reserve(&self) -> Result<(), NoRoom> {
        let state = &mut *self.state();
        state.room = state.room.checked_sub(1).ok_or(NoRoom)?;
        Ok(())
    }

    fn release(&self) {
        self.state().room += 1;
    }

    fn allocate(&self, version: u8) -> Result<Association, NoRoom> {
        let state = &mut *self.state();
        state.take_one()?;
        state.allocated += 1;
        let top = if state.place() == 1 { KEY_BIT } else { 0 };
        let spi = top | state.allocated;
        let key = AssociationKey::new(state.key_of(spi).ok_or(NoRoom)?);
        Ok(Association { version, spi, key })
    }

    fn install(&self, association: Association) -> Result<AssociationHandle, NotInstalled> {
        let state = &mut *self.state();
        let (spi, key) = (association.spi, *association.key.bytes());
        if state.had.contains(&(spi, key)) {
            return Err(NotInstalled::UsedBefore);
        }
        state.take_one().map_err(|NoRoom| NotInstalled::NoRoom)?;
        state.had.insert((spi, key));
        state.handles += 1;
        let handle = AssociationHandle(state.handles);
        let sending = Sending { spi, key, packets: 0 };
        state.sending.insert(handle, sending);
        Ok(handle)
    }

    fn remove(&self, association: AssociationHandle) {
        self.state().sending.remove(&association);
    }

    fn rotations(&self) -> u64 {
        self.state().rotations
    }
}

/// The first byte of a sealed packet.
const MARK: u8 = 0xFE;
/// Bytes before the datagram.
const HEADER: usize = 13;
/// Bytes behind the datagram.
const TAG: usize = 16;
/// The bit of an SPI that names the device's key.
const KEY_BIT: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet from one device to another.
    fn sealed(from: &PacketSealer, to: &PacketSealer) -> Vec<u8> {
        let association = to.allocate(1).unwrap();
        let handle = from.install(association).unwrap();
        from.seal(handle, b"datagram").unwrap()
    }

    #[test]
    fn the_device_that_gave_the_association_opens_its_packets_and_no_other_does() {
        let [a, b] = [1, 2].map(PacketSealer::new);
        let packet = sealed(&a, &b);
        assert_eq!(b.open(&packet), Some((1, b"datagram".to_vec())));
        assert_eq!(a.open(&packet), None);
        for at in 0..packet.len() {
            let mut forged = packet.clone();
            forged[at] ^= 1;
            assert_eq!(b.open(&forged), None, "byte {at}");
        }
    }

    #[test]
    fn an_association_ends_with_the_second_rotation() {
        let [a, b] = [1, 2].map(PacketSealer::new);
        let packet = sealed(&a, &b);
        b.rotate();
        assert!(b.open(&packet).is_some());
        assert_eq!(b.allocate(1).unwrap().spi, 0x8000_0001);
        b.rotate();
        assert!(b.open(&packet).is_none());
    }

    #[test]
    fn an_association_that_was_removed_seals_nothing() {
        let [a, b] = [1, 2].map(PacketSealer::new);
        let handle = a.install(b.allocate(1).unwrap()).unwrap();
        a.remove(handle);
        assert_eq!(a.seal(handle, b"datagram"), None);
    }
}

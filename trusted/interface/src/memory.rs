// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Memory of this node that other members may read or write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smt_attestation::DeviceId;

/// The number of registered memory. It is no secret: the sender of each request is known.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct RegionKey(pub u32);

/// The permissions of others on registered memory. They say who may ask, and hide nothing: each
/// frame, thus each answer with its bytes, goes to the hosts of all members.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// Members that may read.
    pub readers: Vec<DeviceId>,
    /// Members that may write.
    pub writers: Vec<DeviceId>,
}

/// Registered memory as it is announced.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Region {
    /// Its number.
    pub key: RegionKey,
    /// Its length in bytes.
    pub length: u64,
}

/// Why a read or write was denied by the other member.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
pub enum Denied {
    /// There is no such memory.
    #[error("there is no memory of that number")]
    Key,
    /// It ends before.
    #[error("the memory ends before")]
    Bounds,
    /// The member may not.
    #[error("the member may not use this memory so")]
    Permission,
}

/// All registered memory of a node.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: BTreeMap<RegionKey, (Vec<u8>, Access)>,
    next: u32,
}

impl Memory {
    pub(crate) fn register(&mut self, bytes: Vec<u8>, access: Access) -> RegionKey {
        let key = RegionKey(self.next);
        // A number is not used again, so a late request meets no other memory.
        self.next += 1;
        self.regions.insert(key, (bytes, access));
        key
    }

    pub(crate) fn remove(&mut self, key: RegionKey) -> Option<Vec<u8>> {
        self.regions.remove(&key).map(|(bytes, _)| bytes)
    }

    pub(crate) fn bytes(&self, key: RegionKey) -> Option<&[u8]> {
        self.regions.get(&key).map(|(bytes, _)| &bytes[..])
    }

    /// All that a member may use.
    pub(crate) fn announced(&self) -> Vec<Region> {
        let region = |(key, (bytes, _)): (&RegionKey, &(Vec<u8>, Access))| Region {
            key: *key,
            length: bytes.len() as u64,
        };
        self.regions.iter().map(region).collect()
    }

    pub(crate) fn read(
        &self,
        from: DeviceId,
        place: (RegionKey, u64),
        length: u64,
    ) -> Result<Vec<u8>, Denied> {
        let (bytes, access) = self.regions.get(&place.0).ok_or(Denied::Key)?;
        if !access.readers.contains(&from) {
            return Err(Denied::Permission);
        }
        let range = range_of(place.1, length, bytes.len()).ok_or(Denied::Bounds)?;
        Ok(bytes[range].to_vec())
    }

    pub(crate) fn write(
        &mut self,
        from: DeviceId,
        place: (RegionKey, u64),
        new: &[u8],
    ) -> Result<(), Denied> {
        let (bytes, access) = self.regions.get_mut(&place.0).ok_or(Denied::Key)?;
        if !access.writers.contains(&from) {
            return Err(Denied::Permission);
        }
        let range = range_of(place.1, new.len() as u64, bytes.len()).ok_or(Denied::Bounds)?;
        bytes[range].copy_from_slice(new);
        Ok(())
    }
}

fn range_of(offset: u64, length: u64, limit: usize) -> Option<std::ops::Range<usize>> {
    let end = offset.checked_add(length)?;
    (end <= limit as u64).then_some(offset as usize..end as usize)
}

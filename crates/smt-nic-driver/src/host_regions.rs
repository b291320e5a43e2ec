// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The memory that the driver shares with the device: regions of bytes, each at addresses of its
//! own.

use smt_nic::{DmaFault, HostMemory};

/// Regions of memory. Region `n` is at the addresses from `n << 32` on.
#[derive(Debug, Default)]
pub(crate) struct HostRegions {
    regions: Vec<Vec<u8>>,
}

/// A region.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Region(usize);

impl Region {
    pub(crate) fn address(self) -> u64 {
        (self.0 as u64) << 32
    }
}

impl HostRegions {
    /// A new region of zeros.
    pub(crate) fn add(&mut self, bytes: usize) -> Region {
        self.regions.push(vec![0; bytes]);
        Region(self.regions.len() - 1)
    }

    pub(crate) fn bytes(&self, region: Region) -> &[u8] {
        &self.regions[region.0]
    }

    pub(crate) fn bytes_mut(&mut self, region: Region) -> &mut [u8] {
        &mut self.regions[region.0]
    }

    /// Exchanges all of a region's bytes, which are not copied.
    pub(crate) fn swap(&mut self, region: Region, bytes: &mut Vec<u8>) {
        std::mem::swap(&mut self.regions[region.0], bytes);
    }

    fn place(&mut self, at: u64, bytes: usize) -> Result<&mut [u8], DmaFault> {
        let region = usize::try_from(at >> 32).unwrap_or(usize::MAX);
        let start = (at & u64::from(u32::MAX)) as usize;
        let region = self.regions.get_mut(region);
        let place = region.and_then(|region| region.get_mut(start..start.checked_add(bytes)?));
        place.ok_or(DmaFault { at })
    }
}

impl HostMemory for HostRegions {
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), DmaFault> {
        into.copy_from_slice(self.place(at, into.len())?);
        Ok(())
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), DmaFault> {
        self.place(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_beyond_a_region_is_a_fault_and_changes_nothing() {
        let mut memory = HostRegions::default();
        let (first, second) = (memory.add(4), memory.add(4));
        assert_eq!(memory.write(second.address() + 2, &[7, 8]), Ok(()));
        let at = second.address() + 3;
        assert_eq!(memory.write(at, &[9, 9]), Err(DmaFault { at }));
        assert_eq!(memory.bytes(first), [0; 4]);
        assert_eq!(memory.bytes(second), [0, 0, 7, 8]);
        let at = u64::MAX;
        assert_eq!(memory.read(at, &mut [0]), Err(DmaFault { at }));
    }
}

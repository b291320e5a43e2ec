// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Logs as firmware writes them.

/// A log in the making.
#[derive(Clone)]
pub struct Firmware {
    /// Its bytes.
    pub log: Vec<u8>,
    /// The registers that were extended, and the digests.
    pub extended: Vec<(u32, [u8; 32])>,
}

impl Firmware {
    /// A log with digests of SHA-1 and SHA-256, and nothing behind its first event.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a log is written, not assumed")]
    pub fn new() -> Self {
        let mut text = b"Spec ID Event03\0".to_vec();
        // A client, version 2.0, errata 0, numbers of 64 bits, two algorithms, nothing of a vendor.
        text.extend([0, 0, 0, 0, 0, 2, 0, 2, 2, 0, 0, 0, 4, 0, 20, 0, 0x0b, 0, 32, 0, 0]);
        let mut log = [0, 3].map(u32::to_le_bytes).concat();
        log.extend([0; 20]);
        log.extend((text.len() as u32).to_le_bytes());
        log.extend(text);
        Self { log, extended: Vec::new() }
    }

    /// Measures something that has this digest.
    pub fn measure(&mut self, register: u32, kind: u32, digest: [u8; 32], text: &[u8]) {
        self.log.extend([register, kind, 2].map(u32::to_le_bytes).concat());
        self.log.extend([4, 0]);
        self.log.extend([0x51; 20]);
        self.log.extend([0x0b, 0]);
        self.log.extend(digest);
        self.log.extend((text.len() as u32).to_le_bytes());
        self.log.extend(text);
        if kind != 3 {
            self.extended.push((register, digest));
        }
    }

    /// A boot of three events, of which a loader has `loader` for its digest.
    #[must_use]
    pub fn boot(loader: [u8; 32]) -> Self {
        let mut firmware = Self::new();
        firmware.measure(0, 8, [1; 32], b"version 7");
        firmware.measure(4, 0x8000_0003, loader, b"a path");
        firmware.measure(7, 4, [3; 32], &[0; 4]);
        firmware
    }
}

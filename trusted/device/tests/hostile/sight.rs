// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All bytes that the host has seen, searched for keys.

/// The secrets of a device, as the search knows them and the host must not.
pub(crate) struct Sight {
    /// Both halves of each secret.
    halves: Vec<[u8; 16]>,
    /// Whether a half begins with these two bytes: most places of memory are passed over by it.
    begins: Vec<bool>,
    /// Bytes that were not searched yet, behind the last ones that were: a key may begin in those.
    seen: Vec<u8>,
}

impl Sight {
    pub(crate) fn new(secrets: &[[u8; 32]]) -> Self {
        let halves: Vec<[u8; 16]> =
            secrets.iter().flat_map(|it| it.as_chunks().0).copied().collect();
        let mut begins = vec![false; 1 << 16];
        for half in &halves {
            begins[usize::from(u16::from_be_bytes([half[0], half[1]]))] = true;
        }
        Self { halves, begins, seen: Vec::new() }
    }

    /// The host sees bytes. They are searched together with those that come later.
    pub(crate) fn sees(&mut self, bytes: &[u8]) {
        self.seen.extend_from_slice(bytes);
        if self.seen.len() > 1 << 20 {
            self.look();
        }
    }

    /// Searches what was seen since the last look.
    pub(crate) fn look(&mut self) {
        for bytes in self.seen.windows(16) {
            let begin = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
            let is_key = self.begins[begin] && self.halves.iter().any(|half| half == bytes);
            assert!(!is_key, "a key is in memory, files or answers that the host sees");
        }
        self.seen.drain(..self.seen.len().saturating_sub(15));
    }
}

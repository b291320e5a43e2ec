// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traffic that has left by the network devices of this process's network namespace.

use crate::failure::Failure;

/// Counters of all devices together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Traffic {
    /// The traffic that has left since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// The traffic that has left so far. On loopback this counts both directions, and all processes.
pub(crate) fn sent() -> Result<Traffic, Failure> {
    Ok(parse(&std::fs::read_to_string("/proc/self/net/dev")?))
}

/// Two lines of headings, then `name: bytes packets ...`, eight numbers received and as many sent.
fn parse(text: &str) -> Traffic {
    let mut total = Traffic { packets: 0, bytes: 0 };
    for line in text.lines().skip(2) {
        let numbers = line.split_once(':').map_or("", |(_, numbers)| numbers);
        let mut numbers = numbers.split_whitespace().skip(8).map_while(|word| word.parse().ok());
        total.bytes += numbers.next().unwrap_or(0);
        total.packets += numbers.next().unwrap_or(0);
    }
    total
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_devices_are_counted() {
        let text = "a\nb\n lo: 1 1 0 0 0 0 0 0 100 2 0 0 0 0 0 0\nveth: 0 0 0 0 0 0 0 0 11 3 0 0 0 0 0 0\n";
        let traffic = super::parse(text);
        assert_eq!((traffic.bytes, traffic.packets), (111, 5));
    }
}

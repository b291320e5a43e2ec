// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cycles that a machine needs for the bytes of a message, measured where this runs.

use std::hint::black_box;

use smt_record::{Aead, AeadProvider, AwsLc, Suite};

use crate::stopwatch::{Stopwatch, least};

/// A cost that grows with bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// Cycles for none.
    pub fixed: f64,
    /// Cycles for each byte.
    pub per_byte: f64,
}

impl Linear {
    /// The cycles for so many bytes.
    #[must_use]
    pub fn of(self, bytes: usize) -> f64 {
        self.fixed + self.per_byte * bytes as f64
    }

    /// The line through two points, which have different numbers of bytes.
    fn through([(few, cheap), (many, dear)]: [(usize, f64); 2]) -> Self {
        let per_byte = (dear - cheap) / (many as f64 - few as f64);
        Self { fixed: cheap - per_byte * few as f64, per_byte }
    }
}

/// The costs of bytes on a machine, in cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Cycles a second.
    pub clock_hz: f64,
    /// To seal a record with AES-128-GCM.
    pub seal: Linear,
    /// To open one.
    pub open: Linear,
    /// To copy a byte of a message that is in no near cache.
    pub copy_per_byte: f64,
}

impl Machine {
    /// Measures this machine. Each cost is the least of many rounds: others use the machine too.
    ///
    /// # Panics
    /// If the library cannot seal.
    #[must_use]
    pub fn measured() -> Self {
        let clock_hz = clock();
        let cycles = |seconds: f64| seconds * clock_hz;
        let both = |of: fn(usize) -> f64| {
            Linear::through([SHORT, LONG].map(|bytes| (bytes, cycles(of(bytes)))))
        };
        Self {
            clock_hz,
            seal: both(sealing),
            open: both(opening),
            copy_per_byte: cycles(copying(COPIED)) / COPIED as f64,
        }
    }

    /// The cycles of so many seconds here.
    #[must_use]
    pub fn cycles(&self, seconds: f64) -> f64 {
        seconds * self.clock_hz
    }
}

/// The clock that Linux tells of the first core, or 2.4 GHz where it tells none.
fn clock() -> f64 {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = told.lines().find(|line| line.starts_with("cpu MHz"));
    let value = line.and_then(|line| line.split(':').nth(1)?.trim().parse::<f64>().ok());
    value.map_or(2.4e9, |mega| mega * 1e6)
}

fn aead() -> Box<dyn Aead> {
    let aead = AwsLc.aead(Suite::Aes128Gcm, &[7; 16], [9; 12]);
    aead.expect("a library that always can")
}

/// Seconds to seal a record.
fn sealing(bytes: usize) -> f64 {
    let (aead, mut buffer) = (aead(), vec![0; bytes]);
    seconds(|number| {
        let sealed = aead.seal(number, &HEADER, &mut buffer);
        black_box(sealed.expect("a library that always can"));
    })
}

/// Seconds to open one.
fn opening(bytes: usize) -> f64 {
    let (aead, mut record) = (aead(), vec![0; bytes]);
    let tag = aead.seal(0, &HEADER, &mut record);
    record.extend_from_slice(&tag.expect("a library that always can"));
    let mut buffer = record.clone();
    let both = seconds(|_| {
        buffer.copy_from_slice(&record);
        let opened = aead.open_in_place(0, &HEADER, &mut buffer);
        opened.expect("a record that was sealed above");
        black_box(&buffer);
    });
    both - seconds(|_| buffer.copy_from_slice(black_box(&record)))
}

/// Seconds to copy bytes.
fn copying(bytes: usize) -> f64 {
    let (from, mut to) = (vec![1_u8; bytes], vec![0; bytes]);
    seconds(|_| {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
    })
}

/// The least seconds of one in a round of calls, which get numbers from 0.
fn seconds(mut of: impl FnMut(u64)) -> f64 {
    let stopwatch = Stopwatch::new();
    least(ROUNDS, |round| {
        let first = u64::from(round) * INNER;
        stopwatch.seconds(|| (first..first + INNER).for_each(&mut of)) / INNER as f64
    })
}

const HEADER: [u8; 5] = [0x17, 3, 3, 0, 0];
/// Bytes of the records that are measured.
const SHORT: usize = 64;
const LONG: usize = 16_384;
/// Bytes that are copied: more than the second cache has.
const COPIED: usize = 4 << 20;
const ROUNDS: u32 = 100;
const INNER: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_its_two_points() {
        let line = Linear::through([(100, 300.0), (300, 500.0)]);
        assert_eq!((line.fixed, line.per_byte), (200.0, 1.0));
        assert_eq!(line.of(300), 500.0);
    }
}

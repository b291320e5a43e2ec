// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How long messages are: the five workloads of the Homa papers, or one fixed size.
//!
//! A workload is a table of steps: a size, and the share of messages that are no longer, in
//! billionths. [`Workload::size`] turns a uniform number into a size by finding its step, as the
//! simulator of the Homa paper does; sizes between two steps never occur. Integers only, so that a
//! seed means the same run on every machine.
//!
//! The tables keep the mean of their sources within 0.03 %; where they come from, what was thinned
//! and which published figures they were checked against is in docs/WORKLOADS.md. When messages
//! arrive, and between whom, is not decided here.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

mod w1;
mod w2;
mod w3;
mod w4;
mod w5;

#[cfg(test)]
mod tests;

/// A distribution of message sizes. W1 to W5 are in the order of their means, as in Figure 1 of the
/// Homa paper (Montazeri et al., SIGCOMM 2018).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Workload {
    /// Facebook's memcached pool ETC: half of the messages up to 27 B, the longest 100 KB.
    W1,
    /// A search application at Google: half up to 269 B, the longest 3.5 MB.
    W2,
    /// All applications of a Google datacenter: half up to 268 B, the longest 15 MB.
    W3,
    /// A Hadoop cluster at Facebook: half up to 654 B, the longest 10 MB.
    W4,
    /// The web search of the DCTCP paper: whole packets of 1,442 B, half up to 69 KB, the longest
    /// 28.8 MB.
    W5,
    /// Every message has this many bytes.
    Fixed(u32),
}

impl Workload {
    /// As [`FromStr`] reads it.
    pub fn name(&self) -> String {
        match self {
            Self::W1 => "W1".to_owned(),
            Self::W2 => "W2".to_owned(),
            Self::W3 => "W3".to_owned(),
            Self::W4 => "W4".to_owned(),
            Self::W5 => "W5".to_owned(),
            Self::Fixed(bytes) => bytes.to_string(),
        }
    }

    /// The mean size of a message.
    pub fn mean(&self) -> f64 {
        if let Self::Fixed(bytes) = self {
            return f64::from(*bytes);
        }
        let mut below = 0;
        let mut weighted = 0;
        for &(size, up_to) in self.steps() {
            weighted += u64::from(size) * u64::from(up_to - below);
            below = up_to;
        }
        weighted as f64 / f64::from(BILLION)
    }

    /// All sizes that occur, ascending.
    pub fn sizes(&self) -> Vec<u32> {
        if let Self::Fixed(bytes) = self {
            return vec![*bytes];
        }
        self.steps().iter().map(|(size, _)| *size).collect()
    }

    /// The mean of what `of` says of a message's size.
    pub fn mean_of(&self, of: impl Fn(u32) -> f64) -> f64 {
        if let Self::Fixed(bytes) = self {
            return of(*bytes);
        }
        let mut below = 0;
        let mut weighted = 0.0;
        for &(size, up_to) in self.steps() {
            weighted += of(size) * f64::from(up_to - below);
            below = up_to;
        }
        weighted / f64::from(BILLION)
    }

    /// The size of a message for a number that is uniform over all of `u64`: greater numbers,
    /// longer messages.
    pub fn size(&self, uniform: u64) -> u32 {
        if let Self::Fixed(bytes) = self {
            return *bytes;
        }
        let billionth = (u128::from(uniform) * u128::from(BILLION)) >> 64;
        self.step(|up_to| u128::from(up_to) <= billionth)
    }

    /// The least size that this share of messages does not exceed: `quantile(0.5)` is the median. A
    /// share beyond 0 to 1 counts as the nearer of the two.
    pub fn quantile(&self, share: f64) -> u32 {
        if let Self::Fixed(bytes) = self {
            return *bytes;
        }
        let billionths = share * f64::from(BILLION);
        self.step(|up_to| f64::from(up_to) < billionths)
    }

    /// The size of the first step that does not end too early.
    fn step(&self, ends_too_early: impl Fn(u32) -> bool) -> u32 {
        let steps = self.steps();
        let index = steps.partition_point(|&(_, up_to)| ends_too_early(up_to));
        steps[index.min(steps.len() - 1)].0
    }

    /// Sizes, and the billionths of messages that are no longer; both strictly increase. The list
    /// is empty for a fixed size.
    fn steps(&self) -> &'static [(u32, u32)] {
        match self {
            Self::W1 => &w1::STEPS,
            Self::W2 => &w2::STEPS,
            Self::W3 => &w3::STEPS,
            Self::W4 => &w4::STEPS,
            Self::W5 => &w5::STEPS,
            Self::Fixed(_) => &[],
        }
    }
}

/// `w1` to `w5` in either case, or the bytes of every message: `1000`, `64K` (65,536), `1M`.
impl FromStr for Workload {
    type Err = UnknownWorkload;

    fn from_str(text: &str) -> Result<Self, UnknownWorkload> {
        match text {
            "w1" | "W1" => Ok(Self::W1),
            "w2" | "W2" => Ok(Self::W2),
            "w3" | "W3" => Ok(Self::W3),
            "w4" | "W4" => Ok(Self::W4),
            "w5" | "W5" => Ok(Self::W5),
            _ => fixed(text).ok_or_else(|| UnknownWorkload(text.to_owned())),
        }
    }
}

/// A size as the command line's `Size` reads it, from 1 B: a load of empty messages has no rate.
fn fixed(text: &str) -> Option<Workload> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" | "B" => 1,
        "K" | "KB" | "KiB" | "k" => 1 << 10,
        "M" | "MB" | "MiB" => 1 << 20,
        "G" | "GB" | "GiB" => 1 << 30,
        _ => return None,
    };
    let bytes = number.parse::<u32>().ok()?.checked_mul(factor)?;
    (bytes > 0).then_some(Workload::Fixed(bytes))
}

/// A text that is neither a workload nor a message's size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownWorkload(String);

impl fmt::Display for UnknownWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a workload is w1, w2, w3, w4, w5 or a message's bytes from 1 to 4294967295, such as 1000 or 64K; \
             not {:?}",
            self.0
        )
    }
}

impl Error for UnknownWorkload {}

/// The unit of the shares in the tables.
const BILLION: u32 = 1_000_000_000;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A rate limit: a token bucket that yields a number of tokens a second, with a burst of a tenth of
//! that.

use crate::time::Time;

/// A token bucket.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    per_second: u32,
    /// Tokens, in billionths.
    tokens: u64,
    at: Time,
}

impl TokenBucket {
    pub(crate) fn new(per_second: u32) -> Self {
        Self { per_second, tokens: burst(per_second), at: Time::default() }
    }

    /// Takes one token if there is one.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        let earned =
            (now.since(self.at).as_nanos() as u64).saturating_mul(u64::from(self.per_second));
        self.tokens = self.tokens.saturating_add(earned).min(burst(self.per_second));
        self.at = now;
        if self.tokens < TOKEN {
            return false;
        }
        self.tokens -= TOKEN;
        true
    }
}

fn burst(per_second: u32) -> u64 {
    u64::from(per_second.div_ceil(10)) * TOKEN
}

const TOKEN: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_yields_the_rate_and_no_more() {
        let mut rate = TokenBucket::new(1_000);
        let taken =
            (0..1_000_000u64).filter(|micros| rate.take(Time::from_nanos(micros * 1_000))).count();
        assert!((1_000..=1_101).contains(&taken), "{taken}");
    }
}

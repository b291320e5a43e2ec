// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How often one key may be used (SPEC §7.3): the limits and the count against them.
//!
//! Records and control packets have keys of their own, so each is counted on its own. The limits
//! are per key over all stripes. They can be lowered, for tests, and never raised.

use crate::limits::{
    CONTROLS_PER_RECORD, FAILED_OPENS_DEFAULT, FAILED_OPENS_MIN, RECORDS_PER_KEY_MAX,
    RECORDS_PER_KEY_MIN,
};

/// Limits of one key; always within their ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// Records that may be sealed under one key; hard.
    pub(crate) records: u64,
    /// Number of records, or of control packets, from which on an update is wanted.
    pub(crate) update_at: u64,
    /// Failed openings under one key from which on the peer is asked for an update.
    pub(crate) failed_opens: u64,
}

impl KeyLimits {
    /// Limits, checked.
    ///
    /// # Errors
    /// [`KeyLimitsError`] names the value that is out of range.
    pub fn new(records: u64, update_at: u64, failed_opens: u64) -> Result<Self, KeyLimitsError> {
        let limits = Self { records, update_at, failed_opens };
        limits.check()?;
        Ok(limits)
    }

    /// Records that may be sealed under one key.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Control packets that may be sealed under one key: 16 times as many as records, since AES-GCM
    /// wears out by blocks, and a control packet has a fraction of the blocks of a record (RFC 9001
    /// appendix B.1: 2^28 packets of at most 2^11 bytes).
    #[must_use]
    pub fn controls(&self) -> u64 {
        self.records.saturating_mul(CONTROLS_PER_RECORD)
    }

    /// Number of records, or of control packets, from which on an update is wanted.
    pub fn update_at(&self) -> u64 {
        self.update_at
    }

    /// Failed openings under one key after which its peer is asked for the next.
    #[must_use]
    pub fn failed_opens(&self) -> u64 {
        self.failed_opens
    }

    fn check(&self) -> Result<(), KeyLimitsError> {
        if !(RECORDS_PER_KEY_MIN..=RECORDS_PER_KEY_MAX).contains(&self.records) {
            return Err(KeyLimitsError::Records(self.records));
        }
        if !(1..=self.records).contains(&self.update_at) {
            return Err(KeyLimitsError::UpdateAt(self.update_at, self.records));
        }
        if !(FAILED_OPENS_MIN..=FAILED_OPENS_DEFAULT).contains(&self.failed_opens) {
            return Err(KeyLimitsError::FailedOpens(self.failed_opens));
        }
        Ok(())
    }
}

impl Default for KeyLimits {
    /// 2^23 records, an update after three quarters of them, 2^35 failed openings.
    fn default() -> Self {
        Self {
            records: RECORDS_PER_KEY_MAX,
            update_at: RECORDS_PER_KEY_MAX / 4 * 3,
            failed_opens: FAILED_OPENS_DEFAULT,
        }
    }
}

/// A limit is out of range: the caller's configuration has to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyLimitsError {
    /// `records`: choose 16 to 2^23.
    #[error(
        "configured {0} records per key: choose {RECORDS_PER_KEY_MIN} to {RECORDS_PER_KEY_MAX}"
    )]
    Records(u64),
    /// `update_at`: choose 1 to `records`.
    #[error("configured a key update after {0} records: choose 1 to {1}, the records per key")]
    UpdateAt(u64, u64),
    /// `failed_opens`: choose 16 to 2^35.
    #[error(
        "configured {0} failed openings per key: choose {FAILED_OPENS_MIN} to \
         {FAILED_OPENS_DEFAULT}"
    )]
    FailedOpens(u64),
}

/// The current key has sealed all it may, and the previous epoch is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("limit reached: the key of epoch {epoch} has sealed {sealed} times: update it first")]
pub struct KeyUsedUp {
    /// The current epoch.
    pub epoch: u32,
    /// Records or control packets sealed under the key.
    pub sealed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    mod new {
        use super::*;

        #[test]
        fn borders_are_in() {
            assert!(KeyLimits::new(16, 1, 16).is_ok());
            assert!(KeyLimits::new(1 << 23, 1 << 23, 1 << 35).is_ok());
            assert_eq!(KeyLimits::default().check(), Ok(()));
        }

        #[test]
        fn limits_are_those_that_were_given_or_else_the_highest() {
            let all =
                |limits: KeyLimits| [limits.records(), limits.update_at(), limits.failed_opens()];
            assert_eq!(all(KeyLimits::new(100, 70, 50).unwrap()), [100, 70, 50]);
            let default = [1 << 23, 3 << 21, 1 << 35];
            assert_eq!(all(KeyLimits::default()), default);
        }

        #[test]
        fn values_past_a_border_are_refused() {
            use KeyLimitsError::{FailedOpens, Records, UpdateAt};
            assert_eq!(KeyLimits::new(15, 10, 16), Err(Records(15)));
            assert_eq!(KeyLimits::new((1 << 23) + 1, 10, 16), Err(Records((1 << 23) + 1)));
            assert_eq!(KeyLimits::new(16, 0, 16), Err(UpdateAt(0, 16)));
            assert_eq!(KeyLimits::new(16, 17, 16), Err(UpdateAt(17, 16)));
            assert_eq!(KeyLimits::new(16, 12, 15), Err(FailedOpens(15)));
            assert_eq!(KeyLimits::new(16, 12, 1 << 36), Err(FailedOpens(1 << 36)));
        }
    }
}

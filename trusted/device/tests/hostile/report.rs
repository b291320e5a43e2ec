// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Counts of what happened in a search.

use std::fmt;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Report {
    /// Operations of the host.
    pub(crate) operations: u64,
    /// Messages attested, votes among them.
    pub(crate) attested: u64,
    /// Messages taken.
    pub(crate) accepted: u64,
    /// Logs that were sealed, each time.
    pub(crate) sealed: u64,
    /// Ends of logs that were signed.
    pub(crate) signed_ends: u64,
    /// Requests that the kernel refused.
    pub(crate) refused: u64,
    /// Requests that are none.
    pub(crate) malformed: u64,
    /// Words of the shared memory that were changed between two accesses of the device.
    pub(crate) changed: u64,
    /// Connections that the device closed.
    pub(crate) dropped: u64,
    /// Starts of the device.
    pub(crate) starts: u64,
    /// Damaged files that were refused.
    pub(crate) damaged: u64,
    /// Restored files and copies that were refused.
    pub(crate) restored: u64,
    /// Starts that broke off by a trick on the way to the TPM.
    pub(crate) broken_off: u64,
    /// Whether there was a TPM, without which no file is restored and no start broken off.
    pub(crate) has_tpm: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} operations: attested {}, accepted {}, sealed {}, ends signed {}, refused {}, malformed {}, words changed {}, \
             connections closed {}, starts {}, refused files: damaged {}, restored or copied {}; \
             starts broken off at the TPM {}",
            self.operations,
            self.attested,
            self.accepted,
            self.sealed,
            self.signed_ends,
            self.refused,
            self.malformed,
            self.changed,
            self.dropped,
            self.starts,
            self.damaged,
            self.restored,
            self.broken_off
        )?;
        if self.has_tpm { Ok(()) } else { write!(out, "; no TPM, so the last two are left out") }
    }
}

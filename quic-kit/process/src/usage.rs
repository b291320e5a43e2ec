// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The CPU time of a process, and the counts of its stack.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    cpu_us: u64,
}

impl Usage {
    /// Until now.
    #[must_use]
    pub fn now() -> Self {
        let at = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(at.tv_sec).unwrap_or_default();
        let nanoseconds = u64::try_from(at.tv_nsec).unwrap_or_default();
        Self { cpu_us: seconds * 1_000_000 + nanoseconds / 1_000 }
    }

    /// The time after `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self { cpu_us: self.cpu_us.saturating_sub(before.cpu_us) }
    }
}

/// As a field of a report.
impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cpu_us={}", self.cpu_us)
    }
}

/// The counts of a stack over all its connections. A field that a stack does not tell
/// is absent from its report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets sent.
    pub sent: Option<u64>,
    /// Packets that were taken for lost.
    pub lost: Option<u64>,
    /// Packets that were taken for lost, and then acknowledged.
    pub spurious: Option<u64>,
    /// Bytes of the smallest congestion window at the end of a connection.
    pub window: Option<u64>,
    /// Packets of offloaded connections that an engine could open.
    pub eligible: Option<u64>,
    /// Packets that the engine opened.
    pub opened: Option<u64>,
    /// Packets that the engine sealed.
    pub sealed: Option<u64>,
}

impl Counts {
    pub(crate) fn fields(&self) -> String {
        let named = [
            ("sent", self.sent),
            ("lost", self.lost),
            ("spurious", self.spurious),
            ("window", self.window),
            ("eligible", self.eligible),
            ("opened", self.opened),
            ("sealed", self.sealed),
        ];
        let fields =
            named.iter().filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
        fields.collect::<Vec<_>>().join(" ")
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The time of day: for the log as RFC 3339 writes it, UTC, with microseconds, and for what has an
//! end.

use std::time::UNIX_EPOCH;

use smt::WallTime;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// The present moment, such as `2026-11-25T17:50:00.000001Z`.
pub(crate) fn now() -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    text
}

/// The seconds of the wall time. A clock before 1970 is one at 1970.
pub(crate) fn wall_time() -> WallTime {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH);
    WallTime::from_secs(since.unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_moment_has_microseconds() {
        let now = super::now();
        assert!(now.starts_with("20") && now.ends_with('Z'), "{now}");
        assert_eq!(now.len(), "2026-11-25T17:50:00.000001Z".len());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rows of the page: a peer of SMT, and peers with the same kind of interface.

use crate::results::Key;
use crate::scenario::{Case, Scenario};
use crate::size::Size;

/// A row of the page.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// Names the row.
    pub(super) what: String,
    /// A key of this comparison at no place yet.
    key: Key<'static>,
    pub(super) ours: &'static str,
    /// The best of these is the one to compare with.
    pub(super) theirs: &'static [&'static str],
}

impl Comparison {
    /// Names the figure that decides, at a place.
    pub(super) fn key<'a>(&self, place: &'a str) -> Key<'a> {
        Key { place, ..self.key }
    }

    /// Names CPU per RPC, if all calls of the case are alike.
    pub(super) fn cpu_key<'a>(&self, place: &'a str) -> Option<Key<'a>> {
        let figure = "cpu_us";
        let key = self.key(place);
        (key.scenario != Scenario::Beside).then_some(Key { figure, ..key })
    }

    fn is_of(&self, peer: &str) -> bool {
        self.ours == peer || self.theirs.contains(&peer)
    }

    fn new(what: String, ours: &'static str, key: Key<'static>) -> Self {
        let theirs = match ours {
            "smt" => BLOCKING,
            "smt-tokio" => ON_THIS_THREAD,
            _ => ON_TWO_WORKERS,
        };
        Self { what, key, ours, theirs }
    }
}

/// All rows, in the order of the page.
pub(super) fn all() -> Vec<Comparison> {
    let mut rows = Vec::new();
    for (ours, how) in [("smt", "blocking"), ("smt-tokio-mt", "tokio")] {
        rows.extend(SIZES.map(|size| {
            let what = format!("one call alone, {size}, {how}: p50, us");
            Comparison::new(what, ours, key(Scenario::Unloaded, size, 1, "p50_us"))
        }));
    }
    for (ours, how) in [("smt-tokio-mt", "tokio"), ("smt-tokio", "tokio, current thread")] {
        rows.extend(LOAD_SIZES.map(|size| {
            let what =
                format!("{LOAD_CALLERS} calls at once, {size}, {how}: thousand RPCs a second");
            let key = key(Scenario::Load, size, LOAD_CALLERS, "per_second");
            Comparison::new(what, ours, key)
        }));
    }
    for (ours, how) in [("smt", "blocking"), ("smt-tokio-mt", "tokio")] {
        let what = format!("1 MB, four at a time, {how}: Gbit/s");
        let key = key(Scenario::Goodput, Size(1 << 20), 4, "gbit_per_s");
        rows.push(Comparison::new(what, ours, key));
    }
    let what = "64 B beside these four, same connection, tokio: p99, us".to_owned();
    let key = key(Scenario::Beside, Size(64), 1, "p99_us");
    rows.push(Comparison {
        theirs: SHARED_ON_TWO_WORKERS,
        ..Comparison::new(what, "smt-tokio-mt", key)
    });
    rows
}

/// Whether a row of the page needs this peer in this case.
pub(crate) fn is_compared(case: &Case, peer: &str) -> bool {
    all().iter().any(|row| {
        (row.key.scenario, row.key.size, row.key.callers)
            == (case.scenario, case.size, case.callers)
            && row.is_of(peer)
    })
}

/// Whether some row of the page needs this peer.
pub(crate) fn is_peer(name: &str) -> bool {
    all().iter().any(|row| row.is_of(name))
}

fn key(scenario: Scenario, size: Size, callers: usize, figure: &'static str) -> Key<'static> {
    Key { place: "", scenario, size: size.0, callers, figure }
}

/// The scenarios of the rows.
pub(crate) const SCENARIOS: [Scenario; 4] =
    [Scenario::Unloaded, Scenario::Load, Scenario::Goodput, Scenario::Beside];
/// Sizes of messages, one call at a time.
pub(crate) const SIZES: [Size; 4] = [Size(64), Size(1 << 10), Size(8 << 10), Size(64 << 10)];
/// Sizes of messages under load.
pub(crate) const LOAD_SIZES: [Size; 3] = [Size(64), Size(1 << 10), Size(8 << 10)];
/// Calls at once under load.
pub(crate) const LOAD_CALLERS: usize = 100;

const BLOCKING: &[&str] = &["tls-blocking"];
const ON_THIS_THREAD: &[&str] = &["tls-tokio", "tls-multiplexed", "quinn", "grpc"];
const ON_TWO_WORKERS: &[&str] = &["tls-tokio-mt", "tls-multiplexed-mt", "quinn-mt", "grpc-mt"];
/// Those with one connection for all calls.
const SHARED_ON_TWO_WORKERS: &[&str] = &["tls-multiplexed-mt", "quinn-mt", "grpc-mt"];

#[cfg(test)]
mod tests {
    use super::all;
    use crate::peers;

    #[test]
    fn every_compared_peer_exists() {
        for row in all() {
            for name in row.theirs.iter().chain([&row.ours]) {
                assert!(peers::by_name(name).is_ok(), "{}: {name}", row.what);
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Observers of a running scenario. Looking changes nothing.

use std::time::Duration;

use crate::net::network::Tap;

/// The observers of a run.
#[derive(Default)]
pub struct Watch<'a> {
    /// Sees the packets of all hosts, those of setting up included.
    pub tap: Option<Box<dyn Tap>>,
    /// Is told how far the run is, thousands of times.
    pub tell: Option<&'a mut dyn FnMut(Standing)>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Standing {
    /// Virtual time since messages began.
    pub at: Duration,
    /// Messages that count and have begun, but have not arrived.
    pub awaited: u64,
}

#[cfg(test)]
mod tests {
    use super::super::{Named, ScenarioFile, run, run_watched};
    use super::*;

    #[test]
    fn observer_sees_time_pass_until_all_have_arrived_and_changes_nothing() {
        let named = Named::find("rack-10").unwrap();
        let mut file = ScenarioFile::parse(named.text).unwrap();
        file.set_duration(Duration::from_micros(100));
        let scenario = file.scenario();
        let mut told = Vec::new();
        let mut tell = |standing| told.push(standing);
        let watch = Watch { tell: Some(&mut tell), ..Watch::default() };
        let results = run_watched(&scenario, watch).unwrap();
        assert!(told.is_sorted_by(|one, next| one.at < next.at));
        assert!(told.iter().any(|standing| standing.awaited > 0));
        let last = told.last().unwrap();
        assert!(last.awaited == 0 && last.at >= results.lasted, "{last:?}");
        let unseen = run(&scenario).unwrap();
        assert_eq!(results.lasted, unseen.lasted);
        assert_eq!(results.counts, unseen.counts);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The most that happens in a model.

use super::Beginning;

/// The most that happens. By default three replicas make no checkpoint and restart never.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many replicas there are.
    pub replicas: u32,
    /// How many clients have a request, each one.
    pub requests: usize,
    /// The first view that lies are about.
    pub first_view: u64,
    /// The last view that replicas want.
    pub views: u64,
    /// The most statements of liars after the beginning, over all their epochs, but for those that
    /// a state takes which they show.
    pub lies: usize,
    /// Whether the liar's device may restart.
    pub restarts: bool,
    /// Whether the liar orders requests.
    pub orders: bool,
    /// Whether checkpoints are made, logs forgotten, and states given: with the smallest limits.
    pub states: bool,
    /// States of how many earlier checkpoints and views may come late.
    pub old_states: usize,
    /// Whether a stream comes to a replica as far as it was said, and no less of it.
    pub whole_rows: bool,
    /// How often devices of correct replicas restart, in all.
    pub recoveries: u64,
    /// Whether replicas have logs, and are killed. Their devices are not.
    pub kills: bool,
    /// One state of so many is closed in a fair way. 0: none, and each tick is a timeout.
    pub closings: u64,
    /// The script before all that is explored.
    pub beginning: Beginning,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            replicas: 3,
            requests: 1,
            first_view: 0,
            views: 1,
            lies: 2,
            restarts: false,
            orders: true,
            states: false,
            old_states: 0,
            whole_rows: false,
            recoveries: 0,
            kills: false,
            closings: 0,
            beginning: Beginning::New,
        }
    }
}

impl Bounds {
    /// Three replicas with one liar or none, whose logs are forgotten, and who give states. One of
    /// them has executed, and its checkpoint is stable; the other one has heard nothing.
    #[must_use]
    pub fn states() -> Self {
        let beginning = Beginning::Checkpoint;
        Self {
            requests: 2,
            states: true,
            old_states: 1,
            closings: 16,
            beginning,
            ..Self::default()
        }
    }

    /// Three correct replicas whose devices restart, one after the other. Two have admitted the
    /// third one again.
    #[must_use]
    pub fn recoveries() -> Self {
        let (beginning, whole_rows, old_states) = (Beginning::Admitted, true, 0);
        let states = Self::states();
        Self { recoveries: 2, views: 2, lies: 0, beginning, whole_rows, old_states, ..states }
    }

    /// Five replicas, one of which lies. The device of another one has restarted, and the rest has
    /// admitted it.
    #[must_use]
    pub fn recovery_beside_a_liar() -> Self {
        Self { replicas: 5, lies: 1, recoveries: 1, closings: 256, ..Self::recoveries() }
    }

    /// Three replicas with logs that are killed, one of which has restarted before.
    #[must_use]
    pub fn logs() -> Self {
        let beginning = Beginning::Recovered;
        Self { kills: true, requests: 1, closings: 0, beginning, ..Self::recoveries() }
    }

    /// Three correct replicas, of which one was cut off for long.
    #[must_use]
    pub fn cut_off() -> Self {
        let (beginning, whole_rows) = (Beginning::CutOff, true);
        Self { requests: 0, lies: 0, beginning, whole_rows, ..Self::states() }
    }

    /// Five replicas, of which 1 and 2 lie together. Replica 0 has opened view 5 with a batch, and
    /// replica 3 view 6 without it.
    #[must_use]
    pub fn two_openings() -> Self {
        let (first_view, views) = (5, 6);
        let (beginning, whole_rows, old_states) = (Beginning::TwoOpenings, true, 0);
        let states = Self::states();
        let states = Self { closings: 64, ..states };
        Self { replicas: 5, first_view, views, beginning, whole_rows, old_states, ..states }
    }

    /// Five correct replicas, of which one has restarted: three of the others have admitted it.
    #[must_use]
    pub fn newcomer() -> Self {
        let (beginning, whole_rows, old_states) = (Beginning::Newcomer, true, 0);
        let states = Self { replicas: 5, views: 2, lies: 0, ..Self::states() };
        Self { beginning, whole_rows, old_states, ..states }
    }
}

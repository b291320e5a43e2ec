// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs that violated a property once, with the smallest plan that did.

use smt_replica::Options;
use smt_replica::sim::{By, Conditions, Course, Crash, Step as Common, Until};

use crate::sim::plan::Plan;
use crate::sim::scenario::Scenario;
use crate::sim::step::{Led, Step};
use crate::sim::system::run;

// The leader's NEW-VIEW came before a stable checkpoint of its stream, and its ENTER after. A
// replica that followed the stream from there waited for the NEW-VIEW, which was not kept, and the
// two that had entered the view were too few to prove how it begins.
#[test]
fn a_new_view_before_a_checkpoint_is_known_to_one_that_follows_the_stream_from_there() {
    let steps = vec![
        Common::Part(vec![0, 0, 1, 0, 0]),
        Common::Follow(vec![0, 1, 2, 3]),
        Common::Wait(38),
        Common::Follow(vec![0, 2]),
        Common::Wait(31),
        Common::Ask(0),
        Common::Own(Step::Want { by: By::All, of: 0, led: Led::By(0), ahead: 0 }),
        Common::Until(0, Until::Opens),
        Common::Own(Step::Commit { by: By::One(4), of: 1, is_newest: true }),
    ];
    let options = Options {
        batch: 2,
        operation: 1024,
        interval: 3,
        window: 6,
        pipeline: 6,
        retained: 1,
        timeout: 8,
    };
    let course = Course {
        honest: 6712,
        end: 156_712,
        options: Some(options),
        crashes: [(2566, 4014), (6064, 6166)]
            .map(|(at, until)| Crash { node: 1, at, until })
            .to_vec(),
        has_to_catch_up: true,
        ..Course::default()
    };
    let service = Scenario::of_seed(2741).conditions.service;
    let conditions = Conditions { course, ..Conditions::new(2741, 5, service) };
    let plan = Some(Plan { liars: vec![4], steps });
    let (liars, crashes) = (Vec::new(), Vec::new());
    let scenario = Scenario { conditions, liars, crashes, is_rolled_back: false, plan };
    assert_eq!(run(&scenario).violations, []);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Client and server endpoints under a hostile network (SPEC §4 to §12; the targets `endpoint` and
//! `connect`).
//!
//! 1. The input is both configurations and a sequence of `Step`s: actions of applications, the
//!    fate of datagrams, forgeries, the passing of time.
//! 2. After every step all that both endpoints say is taken and checked (`world`).
//! 3. In the end the network is honest: everything ends, nothing is left, a fresh call succeeds.
//!
//! In `endpoint` a session is live before the first step; in `connect` the first step meets the
//! client's first flight.

mod made_up;
mod size;
mod step;
mod trimming;

use arbitrary::Arbitrary;

use crate::world::{Settings, World};
use step::Step;

/// Two configurations, and the steps of the case.
#[derive(Arbitrary, Debug)]
pub struct Case {
    client: Settings,
    server: Settings,
    /// Which of the datagrams in flight the honest network still delivers: all, or none.
    is_lost: bool,
    steps: Vec<Step>,
}

/// Steps on a live session.
pub fn check_endpoint(case: &Case) {
    let mut world = World::new([case.client, case.server]);
    world.establish();
    run(world, case);
}

/// Steps from the first flight on.
pub fn check_connect(case: &Case) {
    let mut world = World::new([case.client, case.server]);
    world.connect();
    run(world, case);
}

fn run(mut world: World, case: &Case) {
    let begin = world.now;
    for step in case.steps.iter().take(STEPS_MAX) {
        if world.now.since(begin) > TIME_MAX {
            break;
        }
        step.run(&mut world);
        world.check_memory();
    }
    world.finish(case.is_lost);
}

/// More would only cost time.
const STEPS_MAX: usize = 300;
/// Well below the time after which a server closes an idle session.
const TIME_MAX: core::time::Duration = core::time::Duration::from_secs(60);

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs in which liars work together: what they send, and what it changes.

use std::collections::BTreeSet;

use smt_replica::AnyService;
use smt_replica::sim::{Happening, Host, To};

use crate::replica::Replica;
use crate::sim::coalition::Lie;
use crate::sim::step::StepName;
use crate::sim::system::{Bft, World};

/// The most that a message of a liar takes.
const DELAY: u64 = 12;

/// The numbers of a replica that tell whether it did something.
type Numbers = [u64; 6];

/// The lies that a replica has heard since its numbers were looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    before: Numbers,
    heard: BTreeSet<StepName>,
}

fn numbers(of: &Replica<AnyService>) -> Numbers {
    let metrics = of.metrics;
    let faulty = of.streams.values().filter(|it| it.track.is_faulty).count();
    let said = of.device.counter();
    let known = of.views.len() as u64;
    [said, of.ledger.executed, metrics.states, metrics.stream_jumps, known, faulty as u64]
}

/// A liar of the coalition.
pub(super) fn join(world: &mut World, device: u32) -> Host<Bft> {
    let core = world.system.replica(device, world.random.nonce());
    if let (Some(core), Some(coalition)) = (core, &mut world.system.coalition) {
        coalition.join(device, core);
    }
    Host::Together
}

pub(super) fn tick(world: &mut World) {
    let may_part = world.schedule.now() < world.conditions.course.honest;
    let correct: Vec<_> = world.hosts.iter().map(Host::correct).collect();
    let Some(coalition) = &mut world.system.coalition else {
        return;
    };
    let lies = coalition.tick(&correct, may_part);
    send(world, lies);
}

/// A message for a liar of the coalition.
pub(super) fn receive(world: &mut World, device: u32, from: Option<u32>, bytes: &[u8]) {
    let Some(coalition) = &mut world.system.coalition else {
        return;
    };
    coalition.receive(device, from, bytes);
    let lies = coalition.outputs();
    send(world, lies);
}

/// The network loses no lie.
fn send(world: &mut World, lies: Vec<Lie>) {
    let at = world.schedule.now() + 1 + world.random.below(DELAY);
    lies.into_iter().for_each(|it| world.schedule.at(at, Happening::Of(it)));
}

pub(super) fn deliver(world: &mut World, lie: &Lie) {
    if let To::Node(to) = lie.to {
        let to = to as usize;
        if let Some(replica) = world.hosts[to].correct() {
            let effects = &mut world.system.effects[to];
            if effects.heard.is_empty() {
                effects.before = numbers(replica);
            }
            effects.heard.extend(&lie.steps);
        }
    }
    world.deliver(lie.to, Some(lie.from), &lie.bytes);
}

/// Whether a replica did something since it has heard lies.
pub(super) fn look(world: &mut World, device: usize) {
    let effects = &mut world.system.effects[device];
    let heard = std::mem::take(&mut effects.heard);
    if let (Some(replica), Some(coalition)) =
        (world.hosts[device].correct(), &mut world.system.coalition)
        && numbers(replica) != effects.before
    {
        coalition.bit.extend(heard);
    }
}

/// Notes the steps of the plan.
pub(super) fn finish(world: &mut World) {
    let Some(coalition) = &world.system.coalition else {
        return;
    };
    let steps: Vec<_> = coalition.carried_out.iter().map(|it| format!("{it:?}")).collect();
    let bit: Vec<_> = coalition.bit.iter().map(|it| it.bit()).collect();
    steps.into_iter().chain(bit).for_each(|it| world.note(it));
}

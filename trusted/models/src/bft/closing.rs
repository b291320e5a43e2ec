// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fair closings of replicas.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_bft::Output;
use smt_bft::sim::observe;
use smt_replica::Group;

use super::{Bft, Process};
use crate::closing::{TICKS, crashes};
use crate::{Cluster, State};

/// The client whose request is answered in a closing. It has none before.
const CLIENT: u32 = 3;

/// Whether all correct replicas that run come to the same, and answer a request, whichever others
/// crash as far as f allows it.
pub(super) fn holds(of: &Cluster<Bft>, state: &State) -> bool {
    let system = &of.system;
    let closes = |crashed: &[u32]| {
        let run = state.correct.iter().filter(|it| !crashed.contains(&it.0));
        let nodes = run.filter_map(|(own, run)| Some((*own, of.runs.machine(*run).node?)));
        Closing { nodes: nodes.collect(), group: system.group.clone() }.ends_well()
    };
    system.closings.hold((of, state), system.bounds.closings, || crashed(of, state), closes)
}

/// The sets of correct replicas that may crash now, beside silent liars and those whose restart is
/// not over. Nothing if more than f are faulty already.
fn crashed(of: &Cluster<Bft>, state: &State) -> Vec<Vec<u32>> {
    let (mut active, mut starting) = (Vec::new(), 0);
    for (own, seen) in of.see(state) {
        let is_started =
            seen.observed.as_ref().is_some_and(|it| it.epoch == 1 || it.metrics.is_active);
        if is_started { active.push(own) } else { starting += 1 }
    }
    let spare = of.system.group.faults().checked_sub(of.liars.len() + starting);
    spare.map(|spare| crashes(&active, spare)).unwrap_or_default()
}

struct Closing {
    nodes: BTreeMap<u32, Process>,
    group: Arc<Group>,
}

impl Closing {
    fn ends_well(mut self) -> bool {
        let mut client = observe::client(&self.group, CLIENT);
        client.submit([9; 16], 1000_u64.to_be_bytes().to_vec());
        let mut is_answered = false;
        for _ in 0..TICKS {
            client.tick();
            let mut sent: Vec<Output> = client.outputs();
            self.nodes.values_mut().for_each(Process::tick);
            loop {
                for output in sent {
                    match output {
                        Output::Client(_, bytes) => {
                            let end = client.receive(&bytes);
                            is_answered |= end.is_some_and(|it| it.result.is_ok());
                        }
                        Output::Node(to, bytes) => {
                            self.nodes.get_mut(&to).into_iter().for_each(|it| it.receive(&bytes));
                        }
                        Output::Nodes(bytes) => {
                            self.nodes.values_mut().for_each(|it| it.receive(&bytes));
                        }
                    }
                }
                sent = self.nodes.values_mut().flat_map(Process::outputs).collect();
                if sent.is_empty() {
                    break;
                }
            }
            if is_answered && self.have_come_to_one() {
                return self.agree();
            }
        }
        false
    }

    /// Whether all are active, and have executed as much.
    fn have_come_to_one(&self) -> bool {
        let metrics: Vec<_> = self.nodes.values().map(Process::metrics).collect();
        metrics.windows(2).all(|it| it[0].executed == it[1].executed)
            && metrics.iter().all(|it| it.is_active)
    }

    /// Whether they have executed the same.
    fn agree(&mut self) -> bool {
        let mut all = BTreeMap::new();
        self.nodes.values_mut().all(|it| {
            let mut executed = it.executed().iter();
            executed
                .all(|(place, batch)| all.entry(*place).or_insert_with(|| batch.clone()) == batch)
        })
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Fair closings of chains.

use std::collections::BTreeMap;
use std::sync::Arc;

use smt_chain::Output;
use smt_chain::sim::observe;
use smt_replica::Group;

use super::{Chain, Process};
use crate::closing::{TICKS, crashes};
use crate::{Cluster, State};

/// The client whose request is answered in a closing. It has none before.
const CLIENT: u32 = 3;

/// Whether all correct nodes that run come to the same, and answer a request, whichever others
/// crash as far as f allows it. The service makes a configuration when f + 1 of them accuse one.
pub(super) fn holds(of: &Cluster<Chain>, state: &State) -> bool {
    let system = &of.system;
    let nodes: Vec<u32> = state.correct.iter().map(|it| it.0).collect();
    let spare = system.group.faults().saturating_sub(of.liars.len());
    let closes = |crashed: &[u32]| {
        let run = state.correct.iter().filter(|it| !crashed.contains(&it.0));
        let nodes = run.filter_map(|(own, run)| Some((*own, of.runs.machine(*run).node?)));
        Closing { nodes: nodes.collect(), group: system.group.clone() }.ends_well()
    };
    system.closings.hold((of, state), system.bounds.closings, || crashes(&nodes, spare), closes)
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
            self.make_configuration();
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
                        Output::Host(_) => {}
                    }
                }
                sent = self.nodes.values_mut().flat_map(Process::outputs).collect();
                if sent.is_empty() {
                    break;
                }
            }
            if is_answered && self.is_one() {
                return true;
            }
        }
        false
    }

    /// All hear of the configuration after one that f + 1 accuse.
    fn make_configuration(&mut self) {
        let accused: Vec<u64> = self.nodes.values().filter_map(Process::accusation).collect();
        let is_by_quorum =
            |it: &&u64| accused.iter().filter(|other| other == it).count() >= self.group.quorum();
        if let Some(number) = accused.iter().find(is_by_quorum).copied() {
            self.nodes.values_mut().for_each(|it| it.configure(number + 1));
        }
    }

    /// Whether all have answered the same, and as much.
    fn is_one(&self) -> bool {
        let mut all = BTreeMap::new();
        let mut answered = self.nodes.values().flat_map(Process::answered);
        let committed: Vec<u64> = self.nodes.values().map(|it| it.metrics().committed).collect();
        committed.windows(2).all(|it| it[0] == it[1])
            && answered.all(|(place, it)| *all.entry(*place).or_insert(it) == it)
    }
}

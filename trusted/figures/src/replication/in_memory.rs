// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All members of a system in one thread, over a network in memory: the work of the protocol and
//! its devices alone.

use std::collections::VecDeque;

use smt_bft::Output;
use smt_loopback::Sender;

use super::REPLICAS;
use super::device::Devices;
use super::system::System;
use crate::Failure;

/// Bytes on their way to a replica.
type Arriving = VecDeque<(Sender, Vec<u8>)>;

/// Has clients make requests, of which so many are in progress, `count` times as many in all.
/// Returns how many messages replicas got.
///
/// # Errors
/// A device fails, or a request stays without an answer.
pub(crate) fn run(system: &System, clients: u32, count: u64) -> Result<u64, Failure> {
    let devices = Devices::start(system.attesting, REPLICAS)?;
    let place = system.place(&devices, clients)?;
    let machines = (0..REPLICAS).map(|it| place.machine(it));
    let mut machines: Vec<_> = machines.collect::<Result<_, _>>()?;
    let mut requesters = place.requesters(clients);
    let of_all = u64::from(clients) * count;
    let (mut begun, mut ended) = (u64::from(clients), 0);
    let mut network = Network { queues: vec![Arriving::new(); REPLICAS as usize], messages: 0 };
    let (mut answered, mut idle) = (0, 0);
    for request in 0..clients as usize {
        let client = request % requesters.len();
        requesters[client].submit();
    }
    while ended < of_all {
        let mut is_idle = true;
        for requester in &mut requesters {
            for output in requester.outputs() {
                is_idle = false;
                network.send(Sender::Client, output);
            }
        }
        for (own, machine) in (0..).zip(&mut machines) {
            for (from, bytes) in std::mem::take(&mut network.queues[own as usize]) {
                machine.receive(from, &bytes);
            }
            for output in machine.outputs()? {
                is_idle = false;
                let Output::Client(client, bytes) = output else {
                    network.send(Sender::Replica(own), output);
                    continue;
                };
                let requester = requesters.get_mut(client as usize).ok_or("no such client")?;
                if requester.receive(own, &bytes).is_some() {
                    (ended, answered) = (ended + 1, answered + 1);
                    if begun < of_all {
                        begun += 1;
                        requester.submit();
                    }
                }
            }
        }
        idle = if is_idle { idle + 1 } else { 0 };
        if idle > IDLE_MAX {
            return Err("the replicas give no answer".into());
        }
        // An audit waits for time to pass.
        if is_idle || answered >= ANSWERS_A_TICK {
            answered = 0;
            machines.iter_mut().for_each(|it| it.tick());
        }
    }
    Ok(network.messages)
}

/// Requests that are answered in a tick of 10 ms over SMT, about.
const ANSWERS_A_TICK: u32 = 25;
/// Ticks in which nothing is said after which nothing will be.
const IDLE_MAX: u32 = 10_000;

/// The queues of all replicas.
struct Network {
    queues: Vec<Arriving>,
    messages: u64,
}

impl Network {
    fn send(&mut self, from: Sender, output: Output) {
        match output {
            Output::Node(to, bytes) => {
                if let Some(queue) = self.queues.get_mut(to as usize) {
                    queue.push_back((from, bytes));
                    self.messages += 1;
                }
            }
            Output::Nodes(bytes) => {
                let others = (0..).zip(&mut self.queues);
                for (_, queue) in others.filter(|it| from != Sender::Replica(it.0)) {
                    queue.push_back((from, bytes.clone()));
                    self.messages += 1;
                }
            }
            Output::Client(..) => {}
        }
    }
}

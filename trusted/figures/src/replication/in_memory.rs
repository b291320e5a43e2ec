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

/// Has so many clients make their requests, each `count` of them, one at a time.
pub(crate) fn run(system: &System, clients: u32, count: u64) -> Result<(), Failure> {
    let devices = Devices::start(system.attesting, REPLICAS)?;
    let place = system.place(&devices, clients)?;
    let machines = (0..REPLICAS).map(|it| place.machine(it));
    let mut machines: Vec<_> = machines.collect::<Result<_, _>>()?;
    let mut requesters: Vec<_> = (0..clients).map(|it| place.requester(it)).collect();
    let mut left = vec![count; clients as usize];
    let mut network = Network(vec![Arriving::new(); REPLICAS as usize]);
    requesters.iter_mut().for_each(|it| it.submit());
    while left.iter().any(|it| *it > 0) {
        let mut is_idle = true;
        for requester in &mut requesters {
            for output in requester.outputs() {
                is_idle = false;
                network.send(Sender::Client, output);
            }
        }
        for (own, machine) in (0..).zip(&mut machines) {
            for (from, bytes) in std::mem::take(&mut network.0[own as usize]) {
                machine.receive(from, &bytes);
            }
            for output in machine.outputs()? {
                is_idle = false;
                let Output::Client(client, bytes) = output else {
                    network.send(Sender::Replica(own), output);
                    continue;
                };
                let requester = requesters.get_mut(client as usize).ok_or("no such client")?;
                let left = &mut left[client as usize];
                if *left > 0 && requester.receive(own, &bytes) {
                    *left -= 1;
                    if *left > 0 {
                        requester.submit();
                    }
                }
            }
        }
        // An audit waits for time to pass.
        if is_idle {
            machines.iter_mut().for_each(|it| it.tick());
        }
    }
    Ok(())
}

/// The queues of all replicas.
struct Network(Vec<Arriving>);

impl Network {
    fn send(&mut self, from: Sender, output: Output) {
        match output {
            Output::Replica(to, bytes) => {
                if let Some(queue) = self.0.get_mut(to as usize) {
                    queue.push_back((from, bytes));
                }
            }
            Output::Replicas(bytes) => {
                let others = (0..).zip(&mut self.0).filter(|it| from != Sender::Replica(it.0));
                others.for_each(|(_, queue)| queue.push_back((from, bytes.clone())));
            }
            Output::Client(..) => {}
        }
    }
}

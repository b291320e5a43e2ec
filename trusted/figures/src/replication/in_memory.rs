// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All members of a system in one thread, over a network in memory: the work of the protocol and
//! its devices alone.

use std::collections::VecDeque;

use super::REPLICAS;
use super::device::Devices;
use super::machine::{From, Sent, To};
use super::system::System;
use crate::Failure;

/// Bytes on their way to a replica.
type Arriving = VecDeque<(From, Vec<u8>)>;

/// Has so many clients make their requests, each `count` of them, one at a time.
pub(crate) fn run(system: &System, clients: u32, count: u64) -> Result<(), Failure> {
    let devices = Devices::start(system.attesting, REPLICAS)?;
    let place = system.place(&devices, clients)?;
    let machines = (0..REPLICAS).map(|it| place.machine(it));
    let mut machines: Vec<_> = machines.collect::<Result<_, _>>()?;
    let mut requesters: Vec<_> = (0..clients).map(|it| place.requester(it)).collect();
    let mut left = vec![count; clients as usize];
    let mut arriving = vec![Arriving::new(); REPLICAS as usize];
    requesters.iter_mut().for_each(|it| it.submit());
    while left.iter().any(|it| *it > 0) {
        let mut is_idle = true;
        for requester in &mut requesters {
            for Sent { to, bytes } in requester.outputs() {
                is_idle = false;
                send(&mut arriving, (None, to), From::Client, bytes);
            }
        }
        for (own, machine) in (0..).zip(&mut machines) {
            for (from, bytes) in std::mem::take(&mut arriving[own as usize]) {
                machine.receive(from, &bytes);
            }
            for Sent { to, bytes } in machine.outputs()? {
                is_idle = false;
                let To::Client(client) = to else {
                    send(&mut arriving, (Some(own), to), From::Replica(own), bytes);
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

fn send(arriving: &mut [Arriving], (own, to): (Option<u32>, To), from: From, bytes: Vec<u8>) {
    match to {
        To::Replica(to) => {
            if let Some(queue) = arriving.get_mut(to as usize) {
                queue.push_back((from, bytes));
            }
        }
        To::Replicas => {
            let others = (0..).zip(arriving).filter(|(it, _)| Some(*it) != own);
            others.for_each(|(_, queue)| queue.push_back((from, bytes.clone())));
        }
        To::Client(_) => {}
    }
}

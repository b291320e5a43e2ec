// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `minbft` over SMT: three replicas and a client on the loopback.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::Duration;

use smt_minbft::over_smt::{OverSmt, RunError, Times};
use smt_minbft::{Devices, GroupKeys, InProcess, MinReplica, Processes, Terms, Verification};
use smt_replica::{Counter, Options};

const TIMES: Times = Times { tick: Duration::from_millis(20), deadline: Duration::from_secs(60) };

fn start<D>(keys: &GroupKeys, devices: D) -> OverSmt
where
    D: Devices + Clone + Send + 'static,
    D::Device: 'static,
{
    let of_thread = keys.clone();
    let make = move |own| {
        let verification = Verification::EachTime;
        let terms = Terms { own, reply_key: of_thread.reply_key(own), verification };
        let device = devices.open(own).unwrap();
        MinReplica::new(of_thread.group.clone(), device, Counter::default(), terms)
    };
    OverSmt::start(keys, TIMES, make).unwrap()
}

fn keys(interval: u64) -> GroupKeys {
    GroupKeys::new(3, 1, Options { batch: 1, interval, ..Options::default() })
}

/// Adds one, so often, and returns the sum.
fn add(group: &mut OverSmt, requests: u64) -> u64 {
    group.run(requests, &1_u64.to_be_bytes()).unwrap();
    u64::from_be_bytes(group.answer(0).unwrap().try_into().unwrap())
}

/// Requests in the first view, then the leader ends, and others go on.
fn a_leader_ends(devices: impl Devices<Device: 'static> + Clone + Send + 'static) {
    let mut group = start(&keys(1000), devices.clone());
    assert_eq!(add(&mut group, 20), 20);
    group.stop(0).unwrap();
    assert_eq!(add(&mut group, 20), 40);
    for replica in [1, 2] {
        group.stop(replica).unwrap();
    }
}

#[test]
fn a_group_with_kernels_in_its_process_goes_on_without_its_leader() {
    a_leader_ends(InProcess);
}

#[test]
fn a_group_with_device_processes_goes_on_without_its_leader() {
    let program = Path::new(env!("CARGO_BIN_EXE_smt-minbft"));
    a_leader_ends(Processes::start(program, 3).unwrap());
}

#[test]
fn checkpoints_do_not_disturb_requests() {
    let mut group = start(&keys(2), InProcess);
    assert_eq!(add(&mut group, 25), 25);
    group.stop(2).unwrap();
    assert_eq!(add(&mut group, 25), 50);
}

#[test]
fn a_replica_whose_device_has_ended_says_so() {
    let program = Path::new(env!("CARGO_BIN_EXE_smt-minbft"));
    let processes = Processes::start(program, 3).unwrap();
    let mut group = start(&keys(1000), processes.clone());
    assert_eq!(add(&mut group, 5), 5);
    processes.kill(2);
    // The other two are enough.
    assert_eq!(add(&mut group, 20), 25);
    assert!(matches!(group.stop(2), Err(RunError::Device(2, _))));
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chains whose nodes have devices in processes of their own.

use std::fs;
use std::path::Path;

use crate::devices::DeviceProcess;
use crate::processes::Chain;

/// A chain without etcd, and its devices.
fn chain() -> (Chain, Vec<DeviceProcess>) {
    let mut chain = Chain::of_files("counter");
    let secret = chain.path("group.secret");
    let devices = (0..3).map(|number| {
        let directory = chain.path(&format!("device-{number}"));
        chain.edit(&format!("node-{number}.toml"), |text| {
            let text = text.replace("group_secret = \"group.secret\"\n", "");
            format!("{text}[device]\nsocket = \"device-{number}/socket\"\nsecret = 1\n")
        });
        DeviceProcess::new(Path::new(&directory), number, Some(Path::new(&secret)))
    });
    let devices = devices.collect();
    (0..3).for_each(|it| chain.start(it));
    (chain, devices)
}

#[test]
fn a_node_goes_on_with_the_device_that_outlived_it() {
    let (mut chain, _devices) = chain();
    assert_eq!(chain.call(&["add", "3"]), "3");
    for number in 0..3 {
        chain.kill(&[number]);
        chain.start(number);
        chain.call(&["add", "1"]);
    }
    chain.kill(&[0, 1, 2]);
    (0..3).for_each(|it| chain.start(it));
    assert_eq!(chain.call(&["add", "0"]), "6");
}

#[test]
fn a_log_older_than_the_counter_of_its_device_is_refused_and_so_is_a_device_that_was_restarted() {
    let (mut chain, mut devices) = chain();
    assert_eq!(chain.call(&["add", "1"]), "1");
    chain.kill(&[0]);
    let log = chain.path("node-0.state/log-1");
    let old = fs::read(&log).unwrap();
    chain.start(0);
    // The head speaks for each.
    assert_eq!(chain.call(&["add", "1"]), "2");
    assert_eq!(chain.call(&["add", "1"]), "3");
    chain.kill(&[0]);
    let newest = fs::read(&log).unwrap();
    fs::write(&log, old).unwrap();
    let text = chain.fails(0);
    assert!(text.contains("the log is older than the device's counter"), "{text}");
    assert!(text.contains("leave it off"), "{text}");
    fs::write(&log, newest).unwrap();
    chain.start(0);
    assert_eq!(chain.call(&["add", "1"]), "4");
    chain.kill(&[0]);
    devices[0].kill();
    devices[0].start();
    let text = chain.fails(0);
    assert!(text.contains("is in epoch 2, and the group has it in epoch 1"), "{text}");
    assert!(text.contains("leave it off"), "{text}");
}

#[test]
fn a_node_takes_the_device_of_its_own_number_alone() {
    let (mut chain, _devices) = chain();
    chain.kill(&[1]);
    chain.edit("node-1.toml", |text| text.replace("device-1", "device-2"));
    let text = chain.fails(1);
    assert!(text.contains("is number 2, and this member is number 1"), "{text}");
    chain.edit("node-1.toml", |text| text.replace("device-2", "nowhere"));
    let text = chain.fails(1);
    assert!(text.contains("no device at") && text.contains("nowhere/socket"), "{text}");
}

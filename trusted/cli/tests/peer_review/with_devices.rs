// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Trees whose nodes have devices in processes of their own.

use std::fs;
use std::path::Path;

use crate::devices::DeviceProcess;
use crate::processes::{NODES, Tree};

const ALL: [usize; NODES] = [0, 1, 2, 3];

/// A tree whose nodes do not run yet, and their devices.
fn tree(stream: usize) -> (Tree, Vec<DeviceProcess>) {
    let tree = Tree::of_files(stream);
    let devices = ALL.map(|number| {
        let directory = tree.path(&format!("device-{number}"));
        let device = DeviceProcess::new(Path::new(&directory), number, None);
        tree.edit(&format!("node-{number}.toml"), |text| {
            let own = format!("signing_key = \"node-{number}.signing\"\n");
            assert!(text.contains(&own), "{text}");
            // No other device knows it, since no node relies on the MACs of others.
            let entry = format!("[device]\nsocket = \"device-{number}/socket\"\nsecret = 0\n");
            format!("{}{entry}", text.replace(&own, ""))
        });
        tree.edit("group.toml", |text| {
            let mut keys = text.match_indices("key = \"").map(|it| it.0 + "key = \"".len());
            let at = keys.nth(number).unwrap();
            format!("{}{}{}", &text[..at], device.key, &text[at + 64..])
        });
        device
    });
    (tree, Vec::from(devices))
}

#[test]
fn a_stream_reaches_all_nodes_though_they_are_killed_and_their_devices_are_not() {
    let (mut tree, _devices) = tree(300_000);
    for number in ALL {
        // Journals are begun anew again and again.
        let config = format!("node-{number}.toml");
        tree.edit(&config, |text| text.replace("[device]", "journal_bytes = 200000\n[device]"));
        tree.start(number);
    }
    for number in ALL.into_iter().chain([1, 0]) {
        tree.kill(number);
        tree.start(number);
    }
    ALL.into_iter().for_each(|it| tree.kill(it));
    ALL.into_iter().for_each(|it| tree.start(it));
    tree.wait_for_stream(&ALL);
    for number in ALL {
        let metrics = tree.end(number);
        assert_eq!(metrics["bytes"], 300_000);
        assert!(metrics["exposed"].as_array().unwrap().is_empty(), "{metrics}");
    }
}

#[test]
fn a_journal_older_than_its_device_is_refused_and_so_is_a_device_that_was_restarted() {
    let (mut tree, mut devices) = tree(5_000);
    ALL.into_iter().for_each(|it| tree.start(it));
    tree.wait_for_stream(&ALL);
    tree.kill(0);
    let journal = tree.path("node-0.state/log-1");
    let old = fs::read(&journal).unwrap();
    let mut stream = fs::read(tree.path("stream")).unwrap();
    stream.extend(vec![9; 3_000]);
    fs::write(tree.path("stream"), stream).unwrap();
    tree.start(0);
    tree.wait_for_stream(&ALL);
    tree.kill(0);
    let newest = fs::read(&journal).unwrap();
    fs::write(&journal, old).unwrap();
    let text = Tree::fails(tree.node(0));
    assert!(text.contains("the log is older than the device's counter"), "{text}");
    fs::write(&journal, newest).unwrap();
    tree.start(0);
    tree.kill(0);
    devices[0].kill();
    devices[0].start();
    let text = Tree::fails(tree.node(0));
    assert!(text.contains("is in epoch 2, and the group has it in epoch 1"), "{text}");
    tree.kill(1);
    let [one, two] = [1, 2].map(|it: usize| devices[it].key.as_str());
    tree.edit("group.toml", |text| {
        text.replace(one, "one").replace(two, one).replace("\"one\"", &format!("\"{two}\""))
    });
    let text = Tree::fails(tree.node(1));
    assert!(text.contains("`key` of this node"), "{text}");
}

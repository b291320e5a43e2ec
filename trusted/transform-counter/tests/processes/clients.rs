// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Processes of one client at the same time.

use std::process::Stdio;

use crate::cluster::Cluster;

/// Numbers that each process adds.
const ADDED: usize = 60;

#[test]
fn two_processes_of_a_client_with_several_requests_in_progress_have_each_counted_once() {
    let cluster = Cluster::new();
    let mut arguments = vec!["--in-progress", "16"];
    arguments.extend([&"1"; ADDED]);
    let processes = [(); 2].map(|()| {
        let mut client = cluster.client(1, &arguments);
        client.stdout(Stdio::piped()).spawn().unwrap()
    });
    let mut sums = Vec::new();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        sums.extend(text.lines().map(|it| it.parse::<usize>().unwrap()));
    }
    sums.sort_unstable();
    assert_eq!(sums, Vec::from_iter(1..=2 * ADDED));
    assert_eq!(cluster.add(5), 2 * ADDED as u64 + 5);
}

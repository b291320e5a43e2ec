// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An endpoint that has nothing to do costs nothing, and one that has done much has kept nothing.
//!
//! Measured in a process of its own: other tests of this program would be measured too.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Credentials, assert_echo, echo, echo_pair};

/// Runs one of the ignored tests below alone.
fn alone(name: &str) {
    let program = std::env::current_exe().unwrap();
    let name = format!("an_idle_endpoint_rests::{name}");
    let output = Command::new(program)
        .args(["--exact", &name, "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    assert!(text.contains("1 passed"));
}

#[test]
fn threads_and_tasks_cost_no_time() {
    alone("measure_time_of_threads");
    alone("measure_time_of_tasks");
}

#[test]
fn calls_leave_no_memory_behind() {
    alone("measure_memory");
}

/// User and system time of this process, in clock ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Ticks of the next two seconds.
fn ticks_at_rest() -> u64 {
    let before = ticks();
    let until = Instant::now() + Duration::from_secs(2);
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
    ticks() - before
}

/// 1 % of a core.
const TICKS_MAX: u64 = 2;

#[test]
#[ignore = "is run alone by another test"]
fn measure_time_of_threads() {
    let (client, _server) = echo_pair();
    assert_echo(&client, vec![1; 1_000_000]);
    for _ in 0..8 {
        let waiting = client.clone();
        std::thread::spawn(move || waiting.accept_request());
    }
    let used = ticks_at_rest();
    assert!(used <= TICKS_MAX, "{used} ticks in 2 s");
}

#[test]
#[ignore = "is run alone by another test"]
fn measure_time_of_tasks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let credentials = Credentials::new();
    let client = runtime.block_on(async {
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                echo(request);
            }
        });
        let client = credentials.client().connect(address).await.unwrap();
        client.call(vec![1; 1_000_000]).await.unwrap();
        client
    });
    let used = ticks_at_rest();
    assert!(used <= TICKS_MAX, "{used} ticks in 2 s");
    drop(client);
}

#[test]
#[ignore = "is run alone by another test"]
fn measure_memory() {
    let (client, server) = echo_pair();
    let call = |number: usize| assert_echo(&client, vec![number as u8; number % 5_000]);
    (0..20_000).for_each(call);
    let before = resident_kib();
    (0..100_000).for_each(call);
    let after = resident_kib();
    println!("{before} KiB, {after} KiB");
    assert!(after < before + 2_000, "{before} KiB grew to {after} KiB");
    let statistics = (client.statistics(), server.statistics());
    assert_eq!((statistics.0.memory, statistics.1.memory), (0, 0));
}

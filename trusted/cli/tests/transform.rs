// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-trusted transform` as a user runs it. `transform-counter` tests nodes as processes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Output};

use clap::Parser;
use smt_transform::{Caller, Effect, Protocol};
use smt_transform_process::NodeArguments;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_smt-trusted")).args(arguments).output().unwrap()
}

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A protocol in which node 0 answers with the text itself, and needs no other node.
struct Echo(u32);

impl Protocol for Echo {
    fn message(&mut self, _: u32, _: &[u8]) -> Vec<Effect> {
        Vec::new()
    }

    fn timeout(&mut self, _: u32) -> Vec<Effect> {
        Vec::new()
    }

    fn request(&mut self, caller: Caller, number: u64, operation: &[u8]) -> Vec<Effect> {
        let reply = Effect::Reply { caller, number, answer: operation.to_vec() };
        (self.0 == 0).then_some(reply).into_iter().collect()
    }
}

/// A user's program.
#[derive(Parser)]
enum Program {
    Node(NodeArguments),
}

#[test]
fn a_call_has_the_answer_of_the_nodes_in_hexadecimal_or_as_a_text() {
    let name = format!("smt-trusted-transform-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    let path = |name: &str| directory.0.join(name).to_str().unwrap().to_owned();
    let sockets: Vec<_> = (0..3).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let addresses: Vec<_> = sockets.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
    drop(sockets);
    let mut init = vec!["transform", "init", directory.0.to_str().unwrap()];
    addresses.iter().for_each(|it| init.extend(["--node", it]));
    assert!(run(&init).status.success());
    for number in 0..3 {
        let config = path(&format!("node-{number}.toml"));
        // It runs as long as this process.
        std::thread::spawn(move || {
            let Program::Node(node) = Program::parse_from(["program", "node", "--config", &config]);
            node.run(|own, _| Echo(own)).unwrap();
        });
    }
    let config = path("client-1.toml");
    let call = |arguments: &[&str]| {
        let call = ["transform", "call", "--config", &config];
        run(&[&call, arguments].concat())
    };
    assert_eq!(call(&["00ff"]).stdout, b"00ff\n");
    assert_eq!(call(&["--text", "Bonn"]).stdout, b"Bonn\n");
    let text = String::from_utf8(call(&["Bonn"]).stderr).unwrap();
    assert_eq!(
        text,
        "smt-trusted: your request: the operation is not in hexadecimal; --text is for a text\n"
    );
}

#[test]
fn a_search_with_logs_prints_its_table_and_gives_it_again() {
    let search = || run(&["transform", "sim", "--seed", "5", "--count", "4", "--logs"]);
    let output = search();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("KillOfAll") && text.ends_with("0 violations\n"), "{text}");
    assert_eq!(String::from_utf8(search().stdout).unwrap(), text);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn on the engine with stock servers of each stack, as processes, over UDP sockets, through
//! the emulator with loss and packets out of order.
//!
//! `KIT_STACKS` names the stacks, quinn alone if it is not there; aioquic has the interpreter
//! `KIT_PYTHON`. The programs are those that cargo has put beside this test's. One that is
//! not there is told and passed over, but quinn's always is.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "certificates/mod.rs"]
mod files;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use kit_offload::client::Client;
use kit_offload::{DeviceConfig, DriverConfig, OffloadCounts};
use kit_process::{Cipher, ClientOptions, StackOptions, Switch};
use smt_nic::quic::AdmissionPolicy;

use crate::files::Files;

/// A process that ends with its test.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn begin(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// The address that it says it listens at.
    fn address(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening ").unwrap_or_else(|| panic!("{line:?}"));
        address.trim().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of programs: the test's is in `deps` below it.
fn programs() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_owned()
}

fn server(stack: &str) -> Option<Command> {
    let (program, script) = match stack {
        "aioquic" => {
            let python = PathBuf::from(std::env::var_os("KIT_PYTHON")?);
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            (python, Some(folder.join("../aioquic/kit-aioquic")))
        }
        stack => (programs().join(format!("kit-{stack}")), None),
    };
    if !program.exists() {
        return None;
    }
    let mut command = Command::new(program);
    command.args(script);
    Some(command)
}

struct Transfer {
    bytes: u64,
    key_updates: u32,
    id_lifetime: Option<Duration>,
    /// Arguments of the emulator.
    path: &'static [&'static str],
}

/// `None`: the stack is not here.
fn transfer(stack: &str, transfer: &Transfer) -> Option<OffloadCounts> {
    let Some(mut command) = server(stack) else {
        println!("{stack} is skipped: it is not built");
        return None;
    };
    let files = Files::make();
    command.arg("server").arg("--certificate").arg(&files.certificate);
    command.arg("--key").arg(&files.key);
    let mut server = Process::begin(command);
    let mut emulator = Command::new(programs().join("quic-kit"));
    emulator.args(["emulator", "--to", &server.address()]).args(transfer.path);
    let mut emulator = Process::begin(emulator);
    let options = ClientOptions {
        connect: emulator.address().parse().unwrap(),
        authority: files.authority.clone(),
        bytes: transfer.bytes,
        upload: transfer.bytes / 4,
        connections: 2,
        stack: StackOptions {
            cipher: Cipher::Aes128,
            segmentation: Switch::On,
            pacing: Switch::Default,
            datagram: 1_350,
        },
    };
    let config = DriverConfig {
        device: DeviceConfig {
            connections_max: 2,
            policy: AdmissionPolicy::ALL,
            is_compared: true,
        },
        id_lifetime: transfer.id_lifetime,
    };
    let mut client = Client::new(&options, config).unwrap();
    client.key_updates = transfer.key_updates;
    let ended = client.transfer_all();
    let counts = client.counts();
    println!("{stack}: {counts:?}");
    assert_eq!(ended.unwrap().len(), 2, "{stack}");
    assert_eq!((counts.different, counts.dropped), (0, 0), "{stack}");
    assert_eq!(counts.compared, counts.opened, "{stack}");
    assert_eq!(counts.sealed_in_software, 0, "{stack}");
    assert!(counts.eligible > 500, "{stack}: {counts:?}");
    assert!(counts.opened * 100 >= counts.eligible * 99, "{stack}: {counts:?}");
    Some(counts)
}

const STACKS: [(&str, &str); 4] =
    [("quinn", "quinn"), ("s2n-quic", "s2n"), ("quiche", "quiche"), ("aioquic", "aioquic")];

/// The programs of the stacks that are asked for.
fn stacks() -> Vec<&'static str> {
    let named = std::env::var("KIT_STACKS").unwrap_or_else(|_| "quinn".to_owned());
    let is_named = |stack: &str| named.split(',').any(|name| name == stack);
    let known = STACKS.iter().filter(|(stack, _)| is_named(stack));
    known.map(|(_, program)| *program).collect()
}

#[test]
fn stock_servers_are_talked_to_by_the_engine_over_a_path_that_loses_and_reorders() {
    for stack in stacks() {
        let plain = Transfer {
            bytes: 1_000_000,
            key_updates: 0,
            id_lifetime: None,
            path: &["--loss", "0.01", "--reordered", "0.05", "--seed", "7"],
        };
        let counts = transfer(stack, &plain);
        assert!(counts.is_some() || stack != "quinn", "quinn's server is always there");
    }
}

#[test]
fn stock_servers_follow_key_updates_and_new_ids() {
    for stack in stacks() {
        let changing = Transfer {
            bytes: 1_000_000,
            key_updates: 2,
            // quinn repeats a lost NEW_CONNECTION_ID frame with a later "retire prior to", which
            // aioquic takes for an error of the protocol.
            id_lifetime: (stack != "aioquic").then_some(Duration::from_millis(50)),
            path: &["--loss", "0.002", "--seed", "3"],
        };
        if let Some(counts) = transfer(stack, &changing) {
            // Two connections with two updates each; the last may meet the end of its transfer.
            assert!(counts.updates >= 2, "{stack}: {counts:?}");
        }
    }
}

#[test]
fn stock_servers_follow_a_client_behind_a_nat_that_forgets_it() {
    // s2n-quic's server has at times sent nothing more after the change: see docs/QUIC-NIC.md.
    for stack in stacks().into_iter().filter(|stack| *stack != "s2n") {
        let rebound = Transfer {
            bytes: 1_000_000,
            key_updates: 0,
            id_lifetime: None,
            path: &["--rebind-after", "80"],
        };
        transfer(stack, &rebound);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client that makes one request after the other.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::processes::Chain;

/// A test that waits for longer hangs.
const HANG: Duration = Duration::from_secs(120);

/// A client that makes requests all the time, and the answers that it prints.
pub(crate) struct Load {
    child: Child,
    answers: Receiver<String>,
    seen: Vec<u64>,
}

impl Load {
    pub(crate) fn start(chain: &Chain) -> Self {
        let mut command = chain.client(1, &["--deadline-s", "120", "load", "--count", "1000000"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines: Lines<BufReader<ChildStdout>> =
            BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, answers, seen: Vec::new() }
    }

    /// Waits for some more answers.
    pub(crate) fn wait_for(&mut self, count: usize) {
        for _ in 0..count {
            let answer =
                self.answers.recv_timeout(HANG).expect("no answer: the chain stands still");
            self.seen.push(answer.parse().unwrap());
        }
    }

    /// Ends the client, and returns all answers that it has printed.
    pub(crate) fn end(mut self) -> Vec<u64> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.seen.extend(self.answers.iter().map(|it| it.parse::<u64>().unwrap()));
        self.seen
    }
}

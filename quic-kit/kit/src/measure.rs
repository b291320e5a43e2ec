// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One measurement: a server, an emulator and a client as processes, and a transfer.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kit_process::{Doing, Failure};
use serde::{Deserialize, Serialize};

use crate::certificates::Certificates;
use crate::child::{Fields, Process, fields};
use crate::rules::Rules;
use crate::samples::{self, Perf, Shares};
use crate::stacks::Stack;

/// The choices of a measurement.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Setting {
    pub(crate) bytes: u64,
    pub(crate) connections: u32,
    pub(crate) cipher: String,
    pub(crate) segmentation: bool,
    /// `None`: what the stack does by itself.
    pub(crate) pacing: Option<bool>,
    /// Percent of packets, in each direction.
    pub(crate) loss: f64,
    /// Percent of packets, in each direction.
    pub(crate) reordered: f64,
    pub(crate) seed: u64,
}

/// The outcome of a measurement.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Outcome {
    pub(crate) server: String,
    pub(crate) client: String,
    pub(crate) setting: Setting,
    /// Megabits a second of each connection, without its handshake.
    pub(crate) each: Vec<f64>,
    /// Megabits a second of all, from the first handshake's begin to the last byte.
    pub(crate) all: f64,
    /// Microseconds of the mean handshake.
    pub(crate) handshake_us: f64,
    pub(crate) server_report: Fields,
    pub(crate) client_report: Fields,
    pub(crate) emulator_report: Fields,
    /// Samples by class, of server and client, if this measurement was sampled.
    pub(crate) server_samples: Option<Fields>,
    pub(crate) client_samples: Option<Fields>,
    /// The most frequent symbols that no rule catches.
    pub(crate) uncaught: Vec<(String, u64)>,
}

/// The place of a measurement.
pub(crate) struct Bench<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) certificates: &'a Certificates,
    pub(crate) rules: &'a Rules,
}

/// A way to sample a process.
enum Sampling {
    None,
    Perf(Perf),
    /// The process writes its samples when it ends.
    Own(PathBuf),
}

impl Bench<'_> {
    /// Measures `client` with `server`.
    pub(crate) fn measure(
        &self,
        (server, client): (&Stack, &Stack),
        setting: &Setting,
        is_sampled: bool,
    ) -> Result<Outcome, Failure> {
        let until = Instant::now() + LIMIT;
        let mut of_server = self.server(server, setting, is_sampled)?;
        let address = of_server.expect("listening", until)?;
        let mut emulator = emulator(&address, setting)?;
        let address = emulator.expect("listening", until)?;
        let mut of_client = self.client(client, setting, &address, is_sampled)?;
        of_client.expect("ready", until)?;
        let server_sampling = self.sample(server, of_server.id(), "server", is_sampled)?;
        let client_sampling = self.sample(client, of_client.id(), "client", is_sampled)?;
        of_client.order("go")?;
        let transfers = transfers(&of_client, until)?;
        let client_report = of_client.report()?;
        // The last acknowledgements and the end of the connections are the server's work too.
        std::thread::sleep(Duration::from_millis(20));
        let server_report = of_server.report()?;
        let emulator_report = emulator.report()?;
        let client_shares = self.end(of_client, client_sampling)?;
        emulator.end()?;
        let server_shares = self.end(of_server, server_sampling)?;
        let mut uncaught = server_shares.as_ref().map_or(Vec::new(), |of| of.uncaught.clone());
        uncaught.extend(client_shares.iter().flat_map(|of| of.uncaught.clone()));
        uncaught.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        uncaught.truncate(UNCAUGHT_MAX);
        Ok(Outcome {
            server: server.name.to_owned(),
            client: client.name.to_owned(),
            setting: setting.clone(),
            each: transfers.iter().map(Transferred::rate).collect(),
            all: rate_of_all(&transfers),
            handshake_us: mean(transfers.iter().map(|of| of.handshake_us)),
            server_report,
            client_report,
            emulator_report,
            server_samples: server_shares.map(|of| of.classes),
            client_samples: client_shares.map(|of| of.classes),
            uncaught,
        })
    }

    fn server(&self, stack: &Stack, setting: &Setting, sampled: bool) -> Result<Process, Failure> {
        let mut command = stack.side("server", setting);
        command.arg("--certificate").arg(&self.certificates.certificate);
        command.arg("--key").arg(&self.certificates.key);
        self.own_samples(stack, &mut command, "server", sampled);
        Process::begin(&format!("the server of {}", stack.name), command)
    }

    fn client(
        &self,
        stack: &Stack,
        setting: &Setting,
        address: &str,
        sampled: bool,
    ) -> Result<Process, Failure> {
        let mut command = stack.side("client", setting);
        command.args(["--connect", address]);
        command.arg("--authority").arg(&self.certificates.authority);
        command.args(["--bytes", &setting.bytes.to_string()]);
        command.args(["--connections", &setting.connections.to_string()]);
        self.own_samples(stack, &mut command, "client", sampled);
        Process::begin(&format!("the client of {}", stack.name), command)
    }

    fn own_samples(&self, stack: &Stack, command: &mut Command, side: &str, sampled: bool) {
        if stack.is_python && sampled {
            command.arg("--samples").arg(self.own_path(side));
        }
    }

    fn own_path(&self, side: &str) -> PathBuf {
        self.folder.join(format!("{side}.python"))
    }

    fn sample(&self, stack: &Stack, id: u32, side: &str, on: bool) -> Result<Sampling, Failure> {
        if !on {
            return Ok(Sampling::None);
        }
        if stack.is_python {
            return Ok(Sampling::Own(self.own_path(side)));
        }
        Ok(match Perf::begin(id, self.folder, side)? {
            Some(perf) => Sampling::Perf(perf),
            None => Sampling::None,
        })
    }

    fn end(&self, process: Process, sampling: Sampling) -> Result<Option<Shares>, Failure> {
        let samples = match sampling {
            Sampling::None => {
                process.end()?;
                return Ok(None);
            }
            Sampling::Perf(perf) => {
                let samples = perf.end()?;
                process.end()?;
                samples
            }
            Sampling::Own(path) => {
                process.end()?;
                samples::read(&path)?
            }
        };
        Ok(Some(samples.classified(self.rules)))
    }
}

fn emulator(server: &str, setting: &Setting) -> Result<Process, Failure> {
    let program = std::env::current_exe().doing("finding the emulator")?;
    let mut command = Command::new(program);
    command.args(["emulator", "--to", server]);
    command.args(["--loss", &(setting.loss / 100.0).to_string()]);
    command.args(["--reordered", &(setting.reordered / 100.0).to_string()]);
    command.args(["--seed", &setting.seed.to_string()]);
    Process::begin("the emulator", command)
}

struct Transferred {
    bytes: u64,
    handshake_us: f64,
    transfer_us: f64,
}

impl Transferred {
    /// Megabits a second.
    fn rate(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.transfer_us.max(1.0)
    }
}

fn transfers(client: &Process, until: Instant) -> Result<Vec<Transferred>, Failure> {
    let mut transfers = Vec::new();
    loop {
        let line = client.line(until)?;
        if line == "done" {
            return Ok(transfers);
        }
        if let Some(line) = line.strip_prefix("connection ") {
            let fields = fields(line);
            let field = |name: &str| fields.get(name).copied().unwrap_or_default();
            transfers.push(Transferred {
                bytes: field("bytes"),
                handshake_us: field("handshake_us") as f64,
                transfer_us: field("transfer_us") as f64,
            });
        }
    }
}

/// All connections begin with the order.
fn rate_of_all(transfers: &[Transferred]) -> f64 {
    let bytes: u64 = transfers.iter().map(|of| of.bytes).sum();
    let times = transfers.iter().map(|of| of.handshake_us + of.transfer_us);
    bytes as f64 * 8.0 / times.fold(1.0, f64::max)
}

/// The mean, 0 of none.
pub(crate) fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1);
    values.sum::<f64>() / count as f64
}

/// A measurement that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(300);
const UNCAUGHT_MAX: usize = 20;

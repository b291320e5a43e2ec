// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-bench run`: measures everything that was asked for.
//!
//! Repetitions are interleaved: each case is measured for each peer in turn before it is measured
//! again, so that whatever changes on the machine meanwhile meets all of them alike. Each
//! measurement has a server and a client process of its own.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::certificates::Directory;
use crate::failure::{Doing, Failure};
use crate::job::{ClientJob, Findings, GO, LISTENING, READY, ServerJob, Setting, USED};
use crate::machine::Machine;
use crate::namespaces::{Pin, Place};
use crate::peers::{self, Peer};
use crate::performance;
use crate::process::Process;
use crate::report;
use crate::results::{Measured, Results, ServerUse};
use crate::scenario::{Case, Scenario};
use crate::size::Size;

/// Measure, and write a table, and JSON and plots if wanted
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Scenarios to measure; all by default
    #[arg(long, value_delimiter = ',', value_name = "SCENARIO")]
    only: Vec<Scenario>,
    /// Whom to measure; all by default
    #[arg(long, value_delimiter = ',', value_name = "PEER")]
    peers: Vec<String>,
    /// Where to measure: loopback, or the MTU of a veth pair between two network namespaces. Loss
    /// is always measured on a pair of its own
    #[arg(long, value_delimiter = ',', value_name = "PLACE", default_value = "loopback")]
    on: Vec<On>,
    /// Sizes of messages, unloaded
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "64,1K,8K,64K,1M")]
    pub(crate) sizes: Vec<Size>,
    /// Sizes of messages under load
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "64,1K,8K,64K")]
    pub(crate) load_sizes: Vec<Size>,
    /// Calls in progress at once under load
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,10,100,1000")]
    pub(crate) concurrency: Vec<usize>,
    /// Calls a second of the open loop
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "RATE",
        default_value = "5000,20000,50000,100000,200000,400000"
    )]
    pub(crate) rates: Vec<f64>,
    /// Sessions with one server
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) sessions: usize,
    /// Bytes of the parts of replies
    #[arg(long, value_delimiter = ',', value_name = "SIZE", default_value = "64,1K")]
    pub(crate) part_sizes: Vec<Size>,
    /// Calls in progress at once whose replies have 64 parts
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,64,8192")]
    pub(crate) calls_in_parts: Vec<usize>,
    /// Percent of packets that are lost
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    loss: f64,
    /// MTU of the way that loses packets
    #[arg(long, value_name = "MTU", default_value_t = 1500)]
    loss_mtu: u32,
    /// Calls a second of the open loop while packets are lost
    #[arg(long, value_name = "RATE", default_value_t = 2_000.0)]
    pub(crate) loss_rate: f64,
    /// Milliseconds of each measurement
    #[arg(long, value_name = "MS", default_value_t = 500)]
    duration: u64,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Seed of the random arrivals
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Whether both processes stay on cores of their own; `split,none` measures both
    #[arg(long, value_delimiter = ',', value_name = "PIN", default_value = "split")]
    pin: Vec<Pin>,
    /// The clients' core
    #[arg(long, value_name = "CORE", default_value_t = 0)]
    client_core: usize,
    /// The servers' core
    #[arg(long, value_name = "CORE", default_value_t = 1)]
    server_core: usize,
    /// Write all figures here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with plots here
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Measure what docs/PERFORMANCE.md shows, for `page`
    #[arg(long)]
    page: bool,
    /// See that everything works, in little time: the figures are worth nothing
    #[arg(long)]
    smoke: bool,
}

/// Where to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum On {
    Loopback,
    Veth(u32),
}

impl std::str::FromStr for On {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("loopback", _) => Ok(Self::Loopback),
            (_, Ok(mtu @ 1280..=65_535)) => Ok(Self::Veth(mtu)),
            _ => Err("give loopback, or an MTU of 1280 to 65535".to_owned()),
        }
    }
}

/// A case at a place, and what its processes are told.
#[derive(Clone, Copy)]
struct CaseAt<'a> {
    place: &'a Place,
    case: &'a Case,
    setting: &'a Setting,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let arguments = arguments.effective();
    let chosen = arguments.chosen_peers()?;
    let directory = Directory::make()?;
    let mut results =
        Results::new(Machine::here(), &chosen, Duration::from_millis(arguments.duration));
    for (place, scenarios) in arguments.places()? {
        results.add_place(&place);
        for scenario in scenarios {
            for case in scenario.cases(&arguments) {
                let setting = Setting::new(directory.0.clone(), place.mtu, &case.work);
                let at = CaseAt { place: &place, case: &case, setting: &setting };
                arguments.measure_case(&chosen, &at, &mut results);
                arguments.save(&results)?;
            }
        }
    }
    report::print(&results)?;
    if let Some(path) = &arguments.html {
        std::fs::write(path, report::html(&results)).doing("writing the page")?;
    }
    match results.failures() {
        0 => Ok(()),
        failures => Err(Failure::new(format!("{failures} measurements failed; see the table"))),
    }
}

type Places = Vec<(Place, Vec<Scenario>)>;

impl Arguments {
    /// With what `--smoke` and `--page` mean.
    fn effective(&self) -> Self {
        let mut arguments = self.clone();
        if self.smoke {
            arguments.sizes = vec![Size(64), Size(65_536)];
            arguments.load_sizes = vec![Size(1_024)];
            arguments.concurrency = vec![10];
            arguments.rates = vec![1_000.0];
            arguments.part_sizes = vec![Size(64)];
            arguments.calls_in_parts = vec![64];
            arguments.sessions = arguments.sessions.min(20);
            arguments.duration = arguments.duration.min(40);
            arguments.repeat = 1;
            // One core is enough to see that it works.
            arguments.server_core = self
                .server_core
                .min(std::thread::available_parallelism().map_or(0, |n| n.get() - 1));
        }
        if self.page {
            arguments.sizes = performance::SIZES.to_vec();
            arguments.load_sizes = performance::LOAD_SIZES.to_vec();
            arguments.concurrency = vec![performance::LOAD_CALLERS];
            if self.only.is_empty() {
                arguments.only = performance::SCENARIOS.to_vec();
            }
        }
        arguments
    }

    fn chosen_peers(&self) -> Result<Vec<Box<dyn Peer>>, Failure> {
        if self.peers.is_empty() {
            let mut all = peers::all();
            all.retain(|peer| !self.page || performance::is_peer(peer.name()));
            return Ok(all);
        }
        self.peers.iter().map(|name| peers::by_name(name)).collect()
    }

    /// Where, and what there. All places are made before anything is measured: a place that cannot
    /// be made is found out at once.
    fn places(&self) -> Result<Places, Failure> {
        let wanted = match self.only.as_slice() {
            [] => Scenario::value_variants().to_vec(),
            only => only.to_vec(),
        };
        let (lossy, others): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|one| *one == Scenario::Loss);
        let mut places: Places = Vec::new();
        if !others.is_empty() {
            let pins = || self.pin.iter().copied();
            for (on, pin) in self.on.iter().flat_map(|on| pins().map(move |pin| (on, pin))) {
                let place = match on {
                    On::Loopback => Place::loopback(pin)?,
                    On::Veth(mtu) => Place::veth(*mtu, None, pin)?,
                };
                places.push((place, others.clone()));
            }
        }
        // A user who names loss learns why it cannot be measured; all else can be measured without
        // root.
        let is_named = !self.only.is_empty();
        if lossy.is_empty() || !is_named && self.smoke {
            return Ok(places);
        }
        match Place::veth(self.loss_mtu, Some(self.loss), Pin::Split) {
            Ok(place) => places.push((place, lossy)),
            Err(failure) if is_named => return Err(failure),
            Err(failure) => eprintln!("loss is not measured: {failure}"),
        }
        Ok(places)
    }

    /// Writes what there is so far: a run takes hours.
    fn save(&self, results: &Results) -> Result<(), Failure> {
        let Some(path) = &self.json else {
            return Ok(());
        };
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).doing("making the directory of the JSON")?;
        }
        std::fs::write(path, report::json(results)?).doing("writing the JSON")
    }

    /// All repetitions of a case.
    fn measure_case(&self, chosen: &[Box<dyn Peer>], at: &CaseAt<'_>, results: &mut Results) {
        let CaseAt { place, case, .. } = *at;
        let repetitions = case.scenario.repetitions(self.repeat);
        for repetition in 1..=repetitions {
            for peer in chosen {
                if self.page && !performance::is_compared(case, peer.name()) {
                    continue;
                }
                let parts = (case.work.has_parts() && !peer.has_parts()).then_some(NO_PARTS);
                if let Some(reason) = parts.or_else(|| peer.refuses(&case.work)) {
                    results.refuse(place, case, peer.name(), reason);
                    continue;
                }
                let progress = format!(
                    "{}: {}, {} ({repetition}/{repetitions})",
                    place.name,
                    case.label,
                    peer.name()
                );
                show(&progress);
                match self.measure(peer.as_ref(), at) {
                    Ok(measured) => results.add(place, case, peer.name(), &measured),
                    Err(failure) => {
                        eprintln!("{progress}: {failure}");
                        results.fail(place, case, peer.name(), &failure);
                    }
                }
            }
        }
        show("");
    }

    /// Once.
    fn measure(&self, peer: &dyn Peer, at: &CaseAt<'_>) -> Result<Measured, Failure> {
        let CaseAt { place, case, setting } = *at;
        let job = ServerJob {
            peer: peer.name().to_owned(),
            setting: setting.clone(),
            address: place.server,
            core: place.core(self.server_core),
        };
        let job = serde_json::to_string(&job)?;
        let mut server = Process::start(&place.server_wrapper(), &["serve", &job])?;
        let line = server.hear(START).doing("the server")?;
        let address = line
            .strip_prefix(LISTENING)
            .ok_or_else(|| Failure::new(format!("the server said: {line}")))?;
        let unused = server_use(&mut server)?;
        let job = ClientJob {
            peer: peer.name().to_owned(),
            setting: setting.clone(),
            server: address.parse()?,
            core: place.core(self.client_core),
            work: case.work.clone(),
            duration_s: Duration::from_millis(self.duration).as_secs_f64(),
        };
        let job = serde_json::to_string(&job)?;
        let mut client = Process::start(&place.client_wrapper(), &["client", &job])?;
        let line = client.hear(CONNECT).doing("the client")?;
        if line != READY {
            return Err(Failure::new(format!("the client said: {line}")));
        }
        let before = server_use(&mut server)?;
        client.say(GO)?;
        let limit = Duration::from_millis(self.duration) * 2 + FINISH;
        let findings: Findings = serde_json::from_str(&client.hear(limit).doing("the client")?)?;
        let after = server_use(&mut server)?;
        Ok(Measured { findings, unused, before, after })
    }
}

/// The resources that the server has used so far.
pub(crate) fn server_use(server: &mut Process) -> Result<ServerUse, Failure> {
    server.say(USED)?;
    let line = server.hear(START).doing("the server")?;
    ServerUse::parse(&line).ok_or_else(|| Failure::new(format!("the server said: {line}")))
}

/// On a terminal alone.
fn show(progress: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K{progress}");
    }
}

const NO_PARTS: &str =
    "it has no replies in parts, or its handlers are tasks with them in any case";
const START: Duration = Duration::from_secs(20);
/// Ten thousand handshakes are made one after the other.
const CONNECT: Duration = Duration::from_secs(300);
const FINISH: Duration = Duration::from_secs(30);

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-bench churn`: new sessions at a steady rate beside calls on a standing one.
//!
//! 1. A server process, and a client of it whose only caller calls again as soon as it has its
//!    reply: 64 bytes, first without company.
//! 2. The same while some threads begin sessions at the wanted rate in all: connect, one call of 64
//!    bytes, end. A thread that is late begins its next one at once.
//! 3. The new sessions without the calls, for their CPU.
//!
//! Peers take turns.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use crate::certificates::Directory;
use crate::failure::{Doing, Failure};
use crate::job::{GroupFindings, LISTENING, ServerJob, Setting, Work};
use crate::load::Group;
use crate::peers::{self, Peer, Shape};
use crate::process::Process;
use crate::results::Figure;
use crate::server::say;
use crate::{cpu, run};

/// Begin sessions at a steady rate beside calls on a standing one, and tell what that does to them
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// New sessions a second
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Seconds of each measurement
    #[arg(long, value_name = "S", default_value_t = 3.0)]
    seconds: f64,
    /// Measurements of each peer
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Threads that begin sessions
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Peers
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "smt,tls-blocking,smt-tokio-mt,tls-tokio-mt,smt-polled"
    )]
    peers: Vec<String>,
}

/// The figures of a peer, a median of each.
#[derive(Debug, Default)]
struct Figures {
    alone: [Figure; 2],
    beside: [Figure; 2],
    sessions: Figure,
    cpu_us: [Figure; 2],
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    cpu::raise_descriptor_limit()?;
    let directory = Directory::make()?;
    let all: Vec<_> = arguments.peers.iter().map(|name| peers::by_name(name)).collect();
    let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut figures: Vec<_> = all.iter().map(|_| Figures::default()).collect();
    for _ in 0..arguments.repeat {
        for (peer, figures) in all.iter().zip(&mut figures) {
            arguments.measure(&directory, peer.as_ref(), figures).doing(peer.name())?;
        }
    }
    say(HEADING)?;
    for (peer, figures) in all.iter().zip(&figures) {
        let [p50, p99] = figures.alone.each_ref().map(|figure| figure.median);
        let [p50_beside, p99_beside] = figures.beside.each_ref().map(|figure| figure.median);
        let [client, server] = figures.cpu_us.each_ref().map(|figure| figure.median);
        say(&format!(
            "| {} | {p50:.1} | {p99:.1} | {p50_beside:.1} | {p99_beside:.1} | {:.0} | {client:.0} + {server:.0} |",
            peer.name(),
            figures.sessions.median,
        ))?;
    }
    Ok(())
}

impl Arguments {
    fn measure(
        &self,
        directory: &Directory,
        peer: &dyn Peer,
        figures: &mut Figures,
    ) -> Result<(), Failure> {
        let setting = Setting::new(directory.0.clone(), LOOPBACK_MTU, &Work::Fresh);
        let job = ServerJob {
            peer: peer.name().to_owned(),
            setting: setting.clone(),
            address: Ipv4Addr::LOCALHOST.into(),
            core: None,
        };
        let mut server = Process::start(&[], &["serve", &serde_json::to_string(&job)?])?;
        let line = server.hear(START).doing("the server")?;
        let address: SocketAddr =
            line.strip_prefix(LISTENING)
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| Failure::new(format!("the server said: {line}")))?;
        let shape = Shape { callers: 1, sessions: 0 };
        let mut callers = peer.connect(&setting, address, shape)?;
        let time = Duration::from_secs_f64(self.seconds);
        let mut standing = || -> Result<GroupFindings, Failure> {
            let tallies = callers.closed(&[ONE_CALLER], time)?;
            let tally = tallies.first().ok_or_else(|| Failure::new("no caller"))?;
            Ok(GroupFindings::of(tally))
        };
        standing()?;
        let alone = standing()?;
        let load = Load { arguments: self, peer: peer.name(), setting: &setting, server: address };
        let (beside, sessions) = load.during(standing)?;
        let beside = beside?;
        let before = (cpu::used(), run::server_use(&mut server)?);
        let ((), apart) = load.during(|| std::thread::sleep(time))?;
        let after = (cpu::used(), run::server_use(&mut server)?);
        figures.alone[0].add(alone.p50_us);
        figures.alone[1].add(alone.p99_us);
        figures.beside[0].add(beside.p50_us);
        figures.beside[1].add(beside.p99_us);
        figures.sessions.add(f64::from(sessions) / self.seconds);
        let each = |seconds: f64| seconds * 1e6 / f64::from(apart.max(1));
        figures.cpu_us[0].add(each((after.0 - before.0).as_secs_f64()));
        figures.cpu_us[1].add(each(after.1.cpu_s - before.1.cpu_s));
        Ok(())
    }
}

/// The new sessions.
struct Load<'a> {
    arguments: &'a Arguments,
    peer: &'static str,
    setting: &'a Setting,
    server: SocketAddr,
}

impl Load<'_> {
    /// Begins sessions while `work` lasts. Returns its result, and the number of sessions.
    fn during<T>(&self, work: impl FnOnce() -> T) -> Result<(T, u32), Failure> {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let is_over = &is_over;
            let threads: Vec<_> = (0..self.arguments.threads)
                .map(|number| scope.spawn(move || self.begin_sessions(number, is_over)))
                .collect();
            let result = work();
            is_over.store(true, Ordering::Relaxed);
            let failed = |_| Failure::new("a thread that begins sessions has failed");
            let counts = threads
                .into_iter()
                .map(|thread| thread.join().map_err(failed)?)
                .collect::<Result<Vec<u32>, Failure>>();
            Ok((result, counts?.iter().sum()))
        })
    }

    /// One thread's share of the sessions. Returns their number.
    fn begin_sessions(&self, number: u32, is_over: &AtomicBool) -> Result<u32, Failure> {
        let peer = peers::by_name(self.peer)?;
        let mut newcomer = peer.newcomer(self.setting, self.server)?;
        let (threads, rate) = (self.arguments.threads, self.arguments.rate);
        let interval = Duration::from_secs_f64(f64::from(threads) / f64::from(rate));
        let mut due = Instant::now() + interval * number / threads;
        let mut begun = 0;
        while !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            newcomer()?;
            begun += 1;
            due += interval;
        }
        Ok(begun)
    }
}

const ONE_CALLER: Group = Group { callers: 1, request: 64, reply: 64, parts: 0, work_us: 0 };
const HEADING: &str = "| peer | calls alone p50, us | p99, us | beside new sessions p50, us | p99, us | new sessions a second | CPU us of each, client + server |\n\
    |---|---|---|---|---|---|---|";
const START: Duration = Duration::from_secs(20);
const LOOPBACK_MTU: u32 = 65_536;

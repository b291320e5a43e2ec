// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The client process: connects, warms up, waits for the word, measures, tells.

use std::time::{Duration, Instant};

use crate::failure::{Doing, Failure};
use crate::job::{ClientJob, Findings, GO, GroupFindings, OPEN_CALLERS, READY, Work};
use crate::load::{Arrivals, Callers, Group, Tally};
use crate::peers::{Peer, Shape};
use crate::{cpu, peers, server, traffic};

/// Runs one measurement.
pub(crate) fn run(job: &str) -> Result<(), Failure> {
    let job: ClientJob = serde_json::from_str(job)?;
    let peer = peers::by_name(&job.peer)?;
    cpu::raise_descriptor_limit()?;
    job.core.map_or(Ok(()), cpu::pin)?;
    let duration = Duration::from_secs_f64(job.duration_s);
    let mut measure = prepare(peer.as_ref(), &job, duration)?;
    server::say(READY)?;
    wait_for_word()?;
    let (cpu, traffic) = (cpu::used(), traffic::sent()?);
    let tallies = measure()?;
    let client_cpu = cpu::used().saturating_sub(cpu);
    let packets = traffic::sent()?.since(&traffic);
    let findings = Findings {
        groups: tallies.iter().map(GroupFindings::of).collect(),
        client_cpu_s: client_cpu.as_secs_f64(),
        client_peak_bytes: cpu::peak_bytes()?,
        packets: packets.packets,
        bytes_per_packet: packets.bytes as f64 / packets.packets.max(1) as f64,
    };
    server::say(&serde_json::to_string(&findings)?)
}

type Measure<'a> = Box<dyn FnMut() -> Result<Vec<Tally>, Failure> + 'a>;

/// Connects and warms up; the function that is returned measures.
fn prepare<'a>(
    peer: &'a dyn Peer,
    job: &'a ClientJob,
    duration: Duration,
) -> Result<Measure<'a>, Failure> {
    let warm_up = (duration / 4).clamp(WARM_UP_MIN, WARM_UP_MAX);
    match &job.work {
        Work::Closed { groups, sessions } => {
            let mut callers = connect(peer, job, groups, *sessions)?;
            callers.closed(groups, warm_up).doing("warming up")?;
            Ok(Box::new(move || callers.closed(groups, duration)))
        }
        &Work::Open { size, per_second, seed } => {
            let warm =
                [Group { callers: OPEN_CALLERS, request: size, reply: size, parts: 0, work_us: 0 }];
            let mut callers = connect(peer, job, &warm, 0)?;
            callers.closed(&warm, warm_up).doing("warming up")?;
            Ok(Box::new(move || {
                let arrivals = Arrivals::new(per_second, duration, seed);
                Ok(vec![callers.open(size, arrivals)?])
            }))
        }
        Work::Fresh => {
            let mut newcomer = peer.newcomer(&job.setting, job.server)?;
            newcomer()?;
            Ok(Box::new(move || {
                let mut tally = Tally::new()?;
                let (began, mut last) = (Instant::now(), Instant::now());
                while began.elapsed() < duration {
                    newcomer()?;
                    let now = Instant::now();
                    tally.record(now - last);
                    last = now;
                }
                tally.end(began);
                Ok(vec![tally])
            }))
        }
    }
}

fn connect(
    peer: &dyn Peer,
    job: &ClientJob,
    groups: &[Group],
    sessions: usize,
) -> Result<Box<dyn Callers>, Failure> {
    let callers = groups.iter().map(|group| group.callers).sum();
    let shape = Shape { callers, sessions };
    peer.connect(&job.setting, job.server, shape).doing("connecting")
}

/// Waits for the run to say that it is to begin.
pub(crate) fn wait_for_word() -> Result<(), Failure> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    if line.trim_end() == GO {
        return Ok(());
    }
    Err(Failure::new("the run was ended"))
}

/// Enough to fill caches, to open windows and to find the size of datagrams.
const WARM_UP_MIN: Duration = Duration::from_millis(50);
const WARM_UP_MAX: Duration = Duration::from_millis(500);

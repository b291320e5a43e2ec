// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison of both systems: the same service, device, clients and requests, in turns.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use smt_attestation::{DeviceId, Epoch, Start};
use smt_bft::{Identity, Replica};
use smt_device_client::DeviceError;
use smt_loopback::Machine;
use smt_minbft::over_smt::{OverSmt, Times};
use smt_minbft::{
    Devices, GroupKeys, IN_ORDER, InProcess, Memory, MinReplica, Terms, Verification,
};
use smt_replica::{Counter, Options, OwnDevice};
use smt_report::{Table, number};

use crate::Failure;

const REPLICAS: u32 = 3;
/// The most requests of a batch; as many clients make one request at a time.
const BATCHES: [u32; 3] = [1, 8, 16];
const TIMES: Times = Times { tick: Duration::from_millis(50), deadline: Duration::from_secs(60) };
/// A request adds one to the counter.
const OPERATION: [u8; 8] = 1_u64.to_be_bytes();

/// The systems in the order of the columns.
#[derive(Clone, Copy)]
enum System {
    Ours,
    MinBft(Verification),
}

const SYSTEMS: [System; 3] =
    [System::Ours, System::MinBft(Verification::EachTime), System::MinBft(Verification::Once)];

/// A group in memory or over SMT, of either system.
#[derive(Clone, Copy)]
enum Way {
    Memory,
    Smt,
}

/// The cost of a request, as one measurement has shown it.
#[derive(Clone, Copy)]
struct Cost {
    /// Microseconds of a processor, of replicas and clients together.
    cpu: f64,
    /// Microseconds by the clock.
    time: f64,
}

impl Cost {
    fn least(self, other: Self) -> Self {
        Self { cpu: self.cpu.min(other.cpu), time: self.time.min(other.time) }
    }
}

type Ours = Replica<Counter>;
type Theirs = MinReplica<Counter, <InProcess as Devices>::Device>;

/// Measures all, and prints the tables.
pub(crate) fn run(requests: u64, repeat: u32) -> Result<(), Failure> {
    for (way, heading) in [(Way::Memory, "in memory"), (Way::Smt, "over SMT")] {
        let mut rows = Vec::new();
        for batch in BATCHES {
            rows.push(row(way, batch, requests, repeat)?);
        }
        let columns = ["smt-bft", "minbft", "ratio", "minbft, verified once", "ratio"];
        let mut columns: Vec<String> = columns.map(str::to_owned).into();
        if matches!(way, Way::Smt) {
            columns.extend(["smt-bft, requests/s", "minbft, requests/s"].map(str::to_owned));
        }
        println!("Microseconds of a processor for each request, {heading}:\n");
        println!("{}", Table { corner: "batch".to_owned(), columns, rows }.markdown());
    }
    Ok(())
}

fn row(way: Way, batch: u32, requests: u64, repeat: u32) -> Result<(String, Vec<String>), Failure> {
    let mut least: [Option<Cost>; 3] = [None; 3];
    // In turns: a busy neighbour disturbs all alike.
    for _ in 0..repeat.max(1) {
        for (system, least) in SYSTEMS.into_iter().zip(&mut least) {
            let cost = measure(way, system, batch, requests)?;
            *least = Some(least.map_or(cost, |it| it.least(cost)));
        }
    }
    let [Some(ours), Some(each_time), Some(once)] = least else {
        return Err("nothing was measured".into());
    };
    let ratio = |it: Cost| format!("{:.2}", ours.cpu / it.cpu);
    let mut values = vec![
        number(ours.cpu),
        number(each_time.cpu),
        ratio(each_time),
        number(once.cpu),
        ratio(once),
    ];
    if matches!(way, Way::Smt) {
        values.extend([ours, each_time].map(|it| number(1e6 / it.time)));
    }
    Ok((batch.to_string(), values))
}

fn measure(way: Way, system: System, batch: u32, requests: u64) -> Result<Cost, Failure> {
    let options = Options { batch: batch as usize, ..Options::default() };
    let keys = GroupKeys::new(REPLICAS, batch, options);
    match (way, system) {
        (Way::Memory, System::Ours) => in_memory(&keys, requests, |it| ours(&keys, it)),
        (Way::Memory, System::MinBft(verification)) => {
            in_memory(&keys, requests, |it| theirs(&keys, it, verification))
        }
        (Way::Smt, System::Ours) => {
            let of_thread = keys.clone();
            over_smt(&keys, requests, move |it| ours(&of_thread, it))
        }
        (Way::Smt, System::MinBft(verification)) => {
            let of_thread = keys.clone();
            over_smt(&keys, requests, move |it| theirs(&of_thread, it, verification))
        }
    }
}

fn ours(keys: &GroupKeys, own: u32) -> Result<Ours, Failure> {
    let start = Start { device: DeviceId(own), epoch: Epoch(1), nonce: [0; 16] };
    let device = OwnDevice::Library { secret: GroupKeys::secret(), start, signing_key: None };
    let identity = Identity { device, reply_key: keys.reply_key(own) };
    Ok(Replica::new(keys.group.clone(), identity, Counter::default())?)
}

fn theirs(keys: &GroupKeys, own: u32, verification: Verification) -> Result<Theirs, Failure> {
    let terms = Terms { own, reply_key: keys.reply_key(own), verification };
    let device = InProcess.open(own)?;
    Ok(MinReplica::new(keys.group.clone(), device, Counter::default(), terms)?)
}

fn in_memory<M: Machine<Error = DeviceError>>(
    keys: &GroupKeys,
    requests: u64,
    make: impl Fn(u32) -> Result<M, Failure>,
) -> Result<Cost, Failure> {
    let replicas = (0..REPLICAS).map(make).collect::<Result<_, _>>()?;
    let mut memory = Memory::new(keys, replicas);
    memory.tick()?;
    memory.settle(&mut { IN_ORDER })?;
    let clients = keys.group.clients.len() as u32;
    let rounds = requests.div_ceil(u64::from(clients));
    let begin = Moment::now();
    for _ in 0..rounds {
        for client in 0..clients {
            memory.submit(client, OPERATION.to_vec())?;
        }
        memory.settle(&mut { IN_ORDER })?;
        if memory.is_waiting() {
            return Err("a request in memory was not answered".into());
        }
    }
    Ok(begin.cost(rounds * u64::from(clients)))
}

fn over_smt<M: Machine<Error = DeviceError>>(
    keys: &GroupKeys,
    requests: u64,
    make: impl Fn(u32) -> Result<M, Failure> + Clone + Send + 'static,
) -> Result<Cost, Failure> {
    let mut group = OverSmt::start(keys, TIMES, make)?;
    // Sessions, and what is made at its first use.
    group.run(requests.div_ceil(10).max(20), &OPERATION)?;
    let begin = Moment::now();
    group.run(requests, &OPERATION)?;
    Ok(begin.cost(requests))
}

/// A moment by the clock, and in the processor time of this process.
struct Moment {
    clock: Instant,
    cpu: Duration,
}

impl Moment {
    fn now() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(cpu.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(cpu.tv_nsec).unwrap_or_default();
        Self { clock: Instant::now(), cpu: Duration::new(seconds, nanoseconds) }
    }

    fn cost(&self, requests: u64) -> Cost {
        let each = |it: Duration| it.as_secs_f64() * 1e6 / requests as f64;
        Cost { cpu: each(Self::now().cpu - self.cpu), time: each(self.clock.elapsed()) }
    }
}

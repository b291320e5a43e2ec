// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads records, and lets clients run a workload against the server.
//!
//! A record is a hash of one field, as YCSB's binding of Redis has them, and an entry of the sorted
//! set `_indices`, by which records are scanned.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::measured::Measured;
use crate::numbers::hash;
use crate::server::Server;
use crate::way::Way;
use crate::workload::{Operation, Operations, Workload};

/// How a workload is run.
pub(crate) struct Plan {
    pub(crate) clients: usize,
    pub(crate) time: Duration,
    /// Operations a second over all clients; none: each client waits for its reply.
    pub(crate) rate: Option<f64>,
    /// New sessions a second beside the load.
    pub(crate) new_sessions: Option<f64>,
    pub(crate) seed: u64,
}

/// A server with records.
pub(crate) struct Load<'a> {
    server: &'a Server,
    value: Arc<[u8]>,
    records: Arc<AtomicU64>,
}

impl<'a> Load<'a> {
    /// Stores so many records of this size.
    pub(crate) async fn prepare(server: &'a Server, size: usize, records: u64) -> io::Result<Self> {
        let value: Arc<[u8]> = (0..size).map(|place| b'a' + (place % 26) as u8).collect();
        let mut client = Client::new(Way::Tcp.connect(server.ports, &server.certificates).await?);
        for record in 0..records {
            run(&mut client, Operation::Insert(record), &value).await?;
        }
        Ok(Self { server, value, records: Arc::new(AtomicU64::new(records)) })
    }

    /// Runs a workload by a way.
    pub(crate) async fn run(
        &self,
        workload: Workload,
        way: Way,
        plan: &Plan,
    ) -> io::Result<Measured> {
        let mut clients = Vec::new();
        for _ in 0..plan.clients {
            let stream = way.connect(self.server.ports, &self.server.certificates).await?;
            clients.push(Client::new(stream));
        }
        let (cpu_before, begin) = (self.server.cpu_time(), Instant::now());
        let until = begin + plan.time;
        let mut tasks = JoinSet::new();
        for (number, client) in clients.into_iter().enumerate() {
            let pace = Pace { until, rate: plan.rate.map(|rate| rate / plan.clients as f64) };
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
            let (value, records) = (Arc::clone(&self.value), Arc::clone(&self.records));
            tasks.spawn(async move {
                let operations = Operations::new(workload, seed, &records);
                work(client, operations, &value, pace).await
            });
        }
        let sessions = self.new_sessions(way, plan.new_sessions, until).await?;
        let mut latency = new_histogram()?;
        while let Some(task) = tasks.join_next().await {
            latency.add(task??).map_err(io::Error::other)?;
        }
        let (elapsed, cpu) = (begin.elapsed(), self.server.cpu_time() - cpu_before);
        let count = latency.len().max(1);
        Ok(Measured {
            workload,
            size: self.value.len(),
            way,
            rate: latency.len() as f64 / elapsed.as_secs_f64(),
            cpu: cpu.div_f64(count as f64),
            latency,
            sessions,
        })
    }

    /// Connects again and again at this rate, whether or not those before are done, and has each
    /// connection ask once; returns the microseconds that it took.
    async fn new_sessions(
        &self,
        way: Way,
        rate: Option<f64>,
        until: Instant,
    ) -> io::Result<Histogram<u64>> {
        let mut latency = new_histogram()?;
        let Some(rate) = rate else {
            return Ok(latency);
        };
        let mut tasks = JoinSet::new();
        let mut due = Instant::now();
        while due < until {
            tokio::time::sleep_until(due.into()).await;
            let (ports, certificates) = (self.server.ports, Arc::clone(&self.server.certificates));
            tasks.spawn(async move {
                let stream = way.connect(ports, &certificates).await?;
                Client::new(stream).ask(&[&[b"PING"]]).await?;
                Ok::<_, io::Error>(due.elapsed())
            });
            while tasks.len() >= SESSIONS_UNDER_WAY
                && let Some(task) = tasks.join_next().await
            {
                latency.saturating_record(task??.as_micros() as u64);
            }
            due += Duration::from_secs_f64(1.0 / rate);
        }
        while let Some(task) = tasks.join_next().await {
            latency.saturating_record(task??.as_micros() as u64);
        }
        Ok(latency)
    }
}

/// New sessions that are under way at once; behind that the rate is not held.
const SESSIONS_UNDER_WAY: usize = 512;

/// When a client stops, and how often it asks.
struct Pace {
    until: Instant,
    rate: Option<f64>,
}

/// One client's work; returns the microseconds of its operations.
async fn work(
    mut client: Client,
    mut operations: Operations<'_>,
    value: &[u8],
    pace: Pace,
) -> io::Result<Histogram<u64>> {
    let mut latency = new_histogram()?;
    let mut due = Instant::now();
    loop {
        // In an open loop time counts from when the operation was due: one that waits for those
        // before it is late too.
        due = match pace.rate {
            None => Instant::now(),
            Some(rate) => due + Duration::from_secs_f64(operations.pause(rate)),
        };
        if due >= pace.until {
            return Ok(latency);
        }
        if pace.rate.is_some() {
            tokio::time::sleep_until(due.into()).await;
        }
        run(&mut client, operations.next(), value).await?;
        latency.saturating_record(due.elapsed().as_micros() as u64);
    }
}

async fn run(client: &mut Client, operation: Operation, value: &[u8]) -> io::Result<()> {
    match operation {
        Operation::Read(record) => {
            client.ask(&[&[b"HGETALL", &key(record)]]).await?;
        }
        Operation::Update(record) => {
            client.ask(&[&[b"HSET", &key(record), b"field0", value]]).await?;
        }
        Operation::ReadModifyWrite(record) => {
            client.ask(&[&[b"HGETALL", &key(record)]]).await?;
            client.ask(&[&[b"HSET", &key(record), b"field0", value]]).await?;
        }
        Operation::Insert(record) => {
            let (key, score) = (key(record), score(record).to_string());
            let set: &[&[u8]] = &[b"HSET", &key, b"field0", value];
            client.ask(&[set, &[b"ZADD", b"_indices", score.as_bytes(), &key]]).await?;
        }
        Operation::Scan { from, count } => scan(client, from, count).await?,
    }
    Ok(())
}

async fn scan(client: &mut Client, from: u64, count: u64) -> io::Result<()> {
    let (score, count) = (score(from).to_string(), count.to_string());
    let range: &[&[u8]] = &[
        b"ZRANGEBYSCORE",
        b"_indices",
        score.as_bytes(),
        b"+inf",
        b"LIMIT",
        b"0",
        count.as_bytes(),
    ];
    let reply = client.ask(&[range]).await?.to_vec();
    let keys: Vec<&[u8]> = reply
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(b"user"))
        .map(<[u8]>::trim_ascii_end)
        .collect();
    let commands: Vec<[&[u8]; 2]> = keys.iter().map(|key| [&b"HGETALL"[..], key]).collect();
    let commands: Vec<&[&[u8]]> = commands.iter().map(|command| &command[..]).collect();
    client.ask(&commands).await?;
    Ok(())
}

/// YCSB's key of a record: its number, hashed.
fn key(record: u64) -> Vec<u8> {
    format!("user{}", hash(record)).into_bytes()
}

/// The place of a record in `_indices`: a double has 53 bits.
fn score(record: u64) -> u64 {
    hash(record) >> 11
}

fn new_histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, 60_000_000, 3).map_err(io::Error::other)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two processes and a million RPCs, directly and through loss, between threads and between tasks
//! on two workers. Run by hand, in release:
//!
//! ```text
//! cargo test --release -p smt --test soak -- --ignored --nocapture --test-threads=1
//! ```
//!
//! `SMT_SOAK_CALLS` changes the number of calls, `SMT_SEED` the sizes and losses. Nine in ten
//! messages are smaller than 10 KB, a few hundred have 1 MB, ten have 64 MB. A request carries its
//! number and the size that it wants back; a reply carries a hash of the request's bytes, so that
//! both directions are checked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use smt::{
    Builder, Bytes, Error, KeyClient, KeyEnds, Padding, RegisteredKey, Request, Statistics, Suite,
};
use support::forwarder::Forwarder;
use support::lossy::lossy;
use support::payload::{is_payload, payload};
use support::random::{Random, seed};
use support::serve;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// The header of a request: its number (u64) and the size of the reply that it wants (u32).
const HEADER: usize = 12;
const THREADS: u64 = 16;
const TASKS: u64 = 64;

#[test]
#[ignore = "takes minutes: run by hand"]
fn threads_call_directly() {
    soak(Kind::Threads, false);
}

#[test]
#[ignore = "takes minutes: run by hand"]
fn threads_call_through_loss() {
    soak(Kind::Threads, true);
}

#[test]
#[ignore = "takes minutes: run by hand"]
fn tasks_call_directly() {
    soak(Kind::Tasks, false);
}

#[test]
#[ignore = "takes minutes: run by hand"]
fn tasks_call_through_loss() {
    soak(Kind::Tasks, true);
}

/// The callers and handlers of both processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Threads,
    /// On a runtime of two workers; the server's spawns a task for each request.
    Tasks,
}

/// How many calls there are, and what has become of them.
struct Calls {
    count: u64,
    seed: u64,
    began: Instant,
    done: AtomicU64,
    bytes: AtomicU64,
}

impl Calls {
    /// The numbers of one of so many callers.
    fn of(&self, caller: u64, callers: u64) -> impl Iterator<Item = u64> + use<> {
        (caller..self.count).step_by(callers as usize)
    }

    fn note(&self, exchanged: usize) {
        self.bytes.fetch_add(exchanged as u64, Ordering::Relaxed);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of((self.count / 10).max(1)) {
            println!("{done} calls after {:.1?}", self.began.elapsed());
        }
    }
}

/// Calls, through loss or not.
fn soak(kind: Kind, is_lossy: bool) {
    let seed = seed();
    let count = std::env::var("SMT_SOAK_CALLS").map_or(1_000_000, |text| text.parse().unwrap());
    let server = ServerProcess::start(kind);
    let forwarder = is_lossy.then(|| Forwarder::new(server.address, lossy(seed)));
    let address = forwarder.as_ref().map_or(server.address, Forwarder::address);
    let calls = Arc::new(Calls {
        count,
        seed,
        began: Instant::now(),
        done: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let builder = smt::client_by_key(key("client", "server")).padding(Padding::None);
    let statistics = match kind {
        Kind::Threads => call_by_threads(builder, address, &calls),
        Kind::Tasks => call_by_tasks(builder, address, &calls),
    };
    report(&calls, &statistics);
    assert_eq!(statistics.memory, 0);
    let executed = server.finish();
    assert_eq!(executed, count, "executions at the server");
}

fn call_by_threads(builder: Builder<KeyClient>, address: SocketAddr, calls: &Calls) -> Statistics {
    let client = builder.connect_blocking(address).unwrap();
    let session = client.connect().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &client;
            scope.spawn(move || {
                for number in calls.of(thread, THREADS) {
                    let exchange = Exchange::new(calls, number);
                    let reply = client.call(exchange.body.clone()).wait();
                    calls.note(exchange.check(reply));
                }
            });
        }
    });
    assert!(session.facts().is_some(), "the session has ended");
    client.statistics()
}

fn call_by_tasks(
    builder: Builder<KeyClient>,
    address: SocketAddr,
    calls: &Arc<Calls>,
) -> Statistics {
    two_workers().block_on(async {
        let client = builder.connect(address).await.unwrap();
        let session = client.connect().await.unwrap();
        let mut callers = JoinSet::new();
        for task in 0..TASKS {
            let (client, calls) = (client.clone(), Arc::clone(calls));
            callers.spawn(async move {
                for number in calls.of(task, TASKS) {
                    let exchange = Exchange::new(&calls, number);
                    let reply = client.call(exchange.body.clone()).await;
                    calls.note(exchange.check(reply));
                }
            });
        }
        while let Some(outcome) = callers.join_next().await {
            outcome.unwrap();
        }
        assert!(session.facts().is_some(), "the session has ended");
        client.statistics()
    })
}

fn two_workers() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// One call, and what its reply is to be.
struct Exchange {
    number: u64,
    body: Bytes,
    hash: u64,
    answer: usize,
}

impl Exchange {
    fn new(calls: &Calls, number: u64) -> Self {
        let mut random = Random::new(calls.seed ^ (number << 20));
        let (ask, answer) = (
            HEADER + size(&mut random, (number, calls.count)),
            HASH + size(&mut random, (number, calls.count)),
        );
        let mut body = payload(number, ask);
        body[8..HEADER].copy_from_slice(&(answer as u32).to_be_bytes());
        Self { number, hash: hash(&body), body: body.into(), answer }
    }

    /// How many bytes of messages it has moved.
    fn check(self, reply: Result<Bytes, Error>) -> usize {
        let Self { number, answer, .. } = self;
        let reply = reply.unwrap_or_else(|error| panic!("{number}: {error}"));
        assert_eq!(
            reply[..HASH],
            self.hash.to_be_bytes(),
            "{number}: the server got something else"
        );
        assert!(is_payload(&reply[HASH..], number, answer - HASH), "{number}: the reply is wrong");
        self.body.len() + answer
    }
}

/// Ten messages of each direction are the largest, a few hundred large, the rest small, whatever
/// the number of calls.
fn size(random: &mut Random, (number, calls): (u64, u64)) -> usize {
    // One step further each time, so that the threads share them.
    let is_one_of = |count: u64| {
        let stride = (calls / count).max(1);
        number % stride == (3 + number / stride) % stride
    };
    if is_one_of(10) {
        return (64 << 20) - HEADER;
    }
    if is_one_of(400) {
        return 1_000_000 + random.below(1_000);
    }
    match random.below(10) {
        0 => random.below(30_000),
        1..=4 => random.below(10_000),
        _ => random.below(1_000),
    }
}

fn report(calls: &Calls, statistics: &Statistics) {
    let seconds = calls.began.elapsed().as_secs_f64();
    let (count, bytes) = (calls.count, calls.bytes.load(Ordering::Relaxed) as f64);
    println!(
        "{count} calls, {:.2} GB in {seconds:.1} s: {:.0} calls/s, {:.2} Gb/s",
        bytes / 1e9,
        count as f64 / seconds,
        bytes * 8.0 / 1e9 / seconds
    );
    println!("client {:?}", statistics.protocol);
}

/// FNV-1a over words: fast enough to check gigabytes.
fn hash(bytes: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words
        .iter()
        .map(|word| u64::from_be_bytes(*word))
        .chain(rest.iter().map(|byte| u64::from(*byte)))
    {
        hash = (hash ^ word).wrapping_mul(0x0100_0000_01B3).rotate_left(5);
    }
    hash
}

/// Both processes know one key: certificates would have to be handed over.
fn key(own: &str, peer: &str) -> RegisteredKey {
    let ends = KeyEnds { own, peer };
    RegisteredKey::from_secret(b"soak", ends, Suite::Aes128Gcm, &[42; 32]).unwrap()
}

/// The server, in a process of its own: this program, started with a variable set.
struct ServerProcess {
    child: Child,
    address: SocketAddr,
    output: BufReader<std::process::ChildStdout>,
}

impl ServerProcess {
    fn start(kind: Kind) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_other_process", "--ignored", "--nocapture", "--test-threads=1"])
            .env(ROLE, format!("{kind:?}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = told(&mut output, "address ").parse().unwrap();
        Self { child, address, output }
    }

    /// Stops it; how many requests it has executed.
    fn finish(mut self) -> u64 {
        drop(self.child.stdin.take());
        let memory = told(&mut self.output, "resident ");
        let executed = told(&mut self.output, "executed ").parse().unwrap();
        println!("the server had {memory} at the end");
        assert!(self.child.wait().unwrap().success());
        executed
    }
}

/// The rest of the line of the server's output that begins so.
fn told(output: &mut impl BufRead, key: &str) -> String {
    for line in output.lines() {
        let line = line.unwrap();
        // The test harness writes its own text before, in the same line.
        if let Some(at) = line.find(key) {
            return line[at + key.len()..].trim().to_owned();
        }
    }
    panic!("the server has ended")
}

#[test]
#[ignore = "is the server of the other tests"]
fn the_other_process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let builder = smt::server_by_keys([key("server", "client")]).padding(Padding::None);
    if role == format!("{:?}", Kind::Threads) {
        let server = builder.bind_blocking("127.0.0.1:0").unwrap();
        serve(&server, 2, answer);
        return until_told(server.local_address(), || server.statistics());
    }
    let runtime = two_workers();
    let server = runtime.block_on(builder.bind("127.0.0.1:0")).unwrap();
    let serving = server.clone();
    // The accept loop is what `block_on` polls, as in `#[tokio::main]`.
    std::thread::spawn(move || {
        runtime.block_on(async {
            while let Some(request) = serving.accept_request().await {
                tokio::spawn(async move { answer(request) });
            }
        });
    });
    until_told(server.local_address(), || server.statistics());
}

static EXECUTED: AtomicU64 = AtomicU64::new(0);

fn answer(request: Request) {
    EXECUTED.fetch_add(1, Ordering::Relaxed);
    let body = request.body();
    let number = support::payload::number_of(body);
    let size = u32::from_be_bytes(body[8..HEADER].try_into().unwrap()) as usize;
    let mut reply = hash(body).to_be_bytes().to_vec();
    reply.extend(payload(number, size - HASH));
    request.reply(reply).unwrap();
}

/// Serves until its input ends, and tells what it has done.
fn until_told(address: SocketAddr, statistics: impl Fn() -> Statistics) {
    println!("\naddress {address}");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    println!("resident {resident}\nexecuted {}", EXECUTED.load(Ordering::Relaxed));
    println!("server {:?}", statistics().protocol);
}

const ROLE: &str = "SMT_SOAK_ROLE";
const HASH: usize = 8;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two processes and a million RPCs, directly and through loss. Run by hand, in release:
//!
//! ```text
//! cargo test --release -p smt --test soak -- --ignored --nocapture --test-threads=1
//! ```
//!
//! `SMT_SOAK_CALLS` changes the number of calls, `SMT_SEED` the sizes and losses. Nine in ten messages are smaller
//! than 10 KB, a few hundred have 1 MB, ten have 64 MB. A request carries its number and the size that it wants
//! back; a reply carries a hash of the request's bytes, so that both directions are checked.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use smt::{Builder, KeyEnds, Padding, RegisteredKey, Suite, blocking};
use support::forwarder::Forwarder;
use support::lossy::lossy;
use support::payload::{is_payload, payload};
use support::random::{Random, seed};
use support::serve;

/// What a request begins with: its number (u64) and the size of the reply that it wants (u32).
const HEADER: usize = 12;
const THREADS: u64 = 16;

#[test]
#[ignore = "takes minutes: run by hand"]
fn direct() {
    soak(false);
}

#[test]
#[ignore = "takes minutes: run by hand"]
fn through_loss() {
    soak(true);
}

/// Calls, through loss or not.
fn soak(is_lossy: bool) {
    let seed = seed();
    let calls = std::env::var("SMT_SOAK_CALLS").map_or(1_000_000, |text| text.parse().unwrap());
    let server = ServerProcess::start();
    let forwarder = is_lossy.then(|| Forwarder::new(server.address, lossy(seed)));
    let address = forwarder
        .as_ref()
        .map_or(server.address, Forwarder::address);
    let client = options(Builder::new(), "client", "server")
        .connect_blocking(address)
        .unwrap();
    let session = client.connect().unwrap();
    let (began, done, bytes) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (client, done, bytes) = (&client, &done, &bytes);
            scope.spawn(move || {
                for number in (thread..calls).step_by(THREADS as usize) {
                    let exchanged = exchange(client, seed, (number, calls));
                    bytes.fetch_add(exchanged, Ordering::Relaxed);
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done % (calls / 10).max(1) == 0 {
                        println!("{done} calls after {:.1?}", began.elapsed());
                    }
                }
            });
        }
    });
    report(began.elapsed(), calls, bytes.into_inner(), &client);
    assert!(session.facts().is_some(), "the session has ended");
    assert_eq!(client.statistics().memory, 0);
    let executed = server.finish();
    assert_eq!(executed, calls, "executions at the server");
}

/// One call, checked; how many bytes of messages it moved.
fn exchange(client: &blocking::Client, seed: u64, (number, calls): (u64, u64)) -> u64 {
    let mut random = Random::new(seed ^ (number << 20));
    let (ask, answer) = (
        HEADER + size(&mut random, (number, calls)),
        HASH + size(&mut random, (number, calls)),
    );
    let mut body = payload(number, ask);
    body[8..HEADER].copy_from_slice(&(answer as u32).to_be_bytes());
    let hash = hash(&body);
    let reply = client
        .call(body)
        .wait()
        .unwrap_or_else(|error| panic!("{number}: {error}"));
    assert_eq!(
        reply[..HASH],
        hash.to_be_bytes(),
        "{number}: the server got something else"
    );
    assert!(
        is_payload(&reply[HASH..], number, answer - HASH),
        "{number}: the reply is wrong"
    );
    (ask + answer) as u64
}

/// Ten messages of each direction are the largest, a few hundred large, the rest small, whatever the number of calls.
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

fn report(took: Duration, calls: u64, bytes: u64, client: &blocking::Client) {
    let seconds = took.as_secs_f64();
    println!(
        "{calls} calls, {:.2} GB in {seconds:.1} s: {:.0} calls/s, {:.2} Gb/s",
        bytes as f64 / 1e9,
        calls as f64 / seconds,
        bytes as f64 * 8.0 / 1e9 / seconds
    );
    println!("client {:?}", client.statistics().protocol);
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
fn options(builder: Builder, own: &str, peer: &str) -> Builder {
    let ends = KeyEnds { own, peer };
    let key = RegisteredKey::from_secret(b"soak", ends, Suite::Aes128Gcm, &[42; 32]);
    builder.registered_key(key.unwrap()).padding(Padding::None)
}

/// The server, in a process of its own: this program, started with a variable set.
struct ServerProcess {
    child: Child,
    address: SocketAddr,
    output: BufReader<std::process::ChildStdout>,
}

impl ServerProcess {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "the_other_process",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, "server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = told(&mut output, "address ").parse().unwrap();
        Self {
            child,
            address,
            output,
        }
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
    if std::env::var(ROLE).is_err() {
        return;
    }
    static EXECUTED: AtomicU64 = AtomicU64::new(0);
    let server = options(Builder::new(), "server", "client")
        .bind_blocking("127.0.0.1:0")
        .unwrap();
    serve(&server, 2, |request| {
        EXECUTED.fetch_add(1, Ordering::Relaxed);
        let body = request.body();
        let number = support::payload::number_of(body);
        let size = u32::from_be_bytes(body[8..HEADER].try_into().unwrap()) as usize;
        let mut reply = hash(body).to_be_bytes().to_vec();
        reply.extend(payload(number, size - HASH));
        request.reply(reply).unwrap();
    });
    println!("\naddress {}", server.local_address());
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    println!(
        "resident {resident}\nexecuted {}",
        EXECUTED.load(Ordering::Relaxed)
    );
    println!("server {:?}", server.statistics().protocol);
}

const ROLE: &str = "SMT_SOAK_ROLE";
const HASH: usize = 8;

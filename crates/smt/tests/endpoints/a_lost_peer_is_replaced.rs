// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server that restarts: its clients connect anew, and learn of the loss at once if it has a
//! state file.
//!
//! A server that is killed says nothing. Here its way is cut: the forwarder leads to the next run
//! from then on.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use smt::{CallFailure, ErrorKind, Execution, Request, SessionEnd, blocking};

use crate::support::{Credentials, echo, on_every_runtime, serve, take_over, within};

/// A server that dies without a word: its process is a socket here, and the next run takes the port
/// over.
struct Mortal {
    credentials: Credentials,
    state_file: Option<PathBuf>,
    /// Runs that were begun with the state file.
    runs: Cell<u32>,
    shards: u16,
}

impl Mortal {
    fn new(state_file: Option<&str>) -> Self {
        let path = state_file
            .map(|name| std::env::temp_dir().join(format!("smt-{name}-{}", std::process::id())));
        Self { credentials: Credentials::new(), state_file: path, runs: Cell::new(0), shards: 1 }
    }

    /// The next run, in which requests are answered so.
    fn run(&self, answer: impl Fn(Request) + Clone + Send + Sync + 'static) -> SocketAddr {
        let builder = match self.next_state_file() {
            Some(path) => self.credentials.server().state_file(path),
            None => self.credentials.server(),
        };
        let server = builder.bind_shards_blocking("127.0.0.1:0", self.shards).unwrap();
        for shard in server.iter() {
            serve(shard, 1, answer.clone());
        }
        server[0].local_address()
    }
}

impl Mortal {
    /// The next run has a copy of the file: the run before, which is in this process, has it
    /// locked.
    fn next_state_file(&self) -> Option<PathBuf> {
        let path = self.state_file.as_ref()?;
        let run = self.runs.get();
        self.runs.set(run + 1);
        let of_run = |run: u32| path.with_extension(run.to_string());
        if run > 0 {
            std::fs::copy(of_run(run - 1), of_run(run)).unwrap();
        }
        Some(of_run(run))
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        let Some(path) = &self.state_file else { return };
        for run in 0..self.runs.get() {
            for end in ["", ".lock"] {
                let _ = std::fs::remove_file(path.with_extension(format!("{run}{end}")));
            }
        }
    }
}

/// How a call ends that was in progress when the server was replaced by its next run, and after how
/// long.
fn end_of_call_over_restart(mortal: &Mortal) -> (SessionEnd, Duration) {
    let (hold, held) = mpsc::channel();
    let first = mortal.run(move |request| hold.send(request).unwrap());
    let (switch, forwarder, second_address) = switching_forwarder(first);
    let client = mortal.credentials.client().connect_blocking(forwarder).unwrap();
    let (done, end) = mpsc::channel();
    let calling = client.clone();
    std::thread::spawn(move || done.send(calling.call("work").wait()).unwrap());
    let request = held.recv().unwrap();
    let second = mortal.run(echo);
    second_address.send(second).unwrap();
    let began = Instant::now();
    switch.store(true, Ordering::Relaxed);
    let error = end.recv().unwrap().unwrap_err();
    let took = began.elapsed();
    assert_eq!(error.execution(), Execution::MayHaveRun);
    assert_eq!(client.call("again").wait().unwrap(), "again");
    drop(request);
    let ErrorKind::Call(call) = error.kind() else { panic!("{error}") };
    let CallFailure::SessionEnded(end) = call.reason.clone() else { panic!("{}", call.reason) };
    (end, took)
}

/// One client's way to the first server, and, once switched, to the second.
fn switching_forwarder(
    first: SocketAddr,
) -> (Arc<AtomicBool>, SocketAddr, mpsc::Sender<SocketAddr>) {
    let front = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let back = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (switch, (send_second, second)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let (is_switched, was_switched) = (Arc::clone(&switch), Arc::clone(&switch));
    let (front_twin, back_twin) = (front.try_clone().unwrap(), back.try_clone().unwrap());
    let (send_client, client) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        let mut server = first;
        while let Ok((length, from)) = front.recv_from(&mut buffer) {
            let _ = send_client.send(from);
            if is_switched.load(Ordering::Relaxed) && server == first {
                server = second.recv().unwrap();
            }
            let _ = back.send_to(&buffer[..length], server);
        }
    });
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        let client = client.recv().unwrap();
        while let Ok((length, from)) = back_twin.recv_from(&mut buffer) {
            // A server that has ended says nothing more.
            if from != first || !was_switched.load(Ordering::Relaxed) {
                let _ = front_twin.send_to(&buffer[..length], client);
            }
        }
    });
    (switch, address, send_second)
}

#[test]
fn a_loss_is_told_at_once_with_a_state_file() {
    let mortal = Mortal::new(Some("told"));
    let (end, took) = end_of_call_over_restart(&mortal);
    assert_eq!(end, SessionEnd::Reset);
    assert!(took < within(Duration::from_millis(1_500)), "{took:?}");
}

/// Whatever shard of the next run the old session's packets reach.
#[test]
fn a_loss_is_told_at_once_by_any_shard() {
    let mut mortal = Mortal::new(Some("sharded"));
    mortal.shards = 4;
    let (end, took) = end_of_call_over_restart(&mortal);
    assert_eq!(end, SessionEnd::Reset);
    assert!(took < within(Duration::from_millis(1_500)), "{took:?}");
}

#[test]
fn a_loss_is_found_by_silence_without_a_state_file() {
    let mortal = Mortal::new(None);
    let (end, took) = end_of_call_over_restart(&mortal);
    assert!(matches!(end, SessionEnd::Silent(_)), "{end}");
    assert!(took < within(Duration::from_secs(4)), "{took:?}");
}

#[test]
fn a_server_that_stops_and_starts_on_its_port_is_found_again() {
    let credentials = Credentials::new();
    let first = credentials.server().bind_blocking("127.0.0.1:0").unwrap();
    let address = first.local_address();
    serve(&first, 1, echo);
    let client = credentials.client().connect_blocking(address).unwrap();
    assert_eq!(client.call("one").wait().unwrap(), "one");
    first.close(Duration::from_secs(5));
    drop(first);
    drop(take_over(address));
    let second = credentials.server().bind_blocking(address).unwrap();
    serve(&second, 1, echo);
    assert_eq!(call_again(&client), "two");
}

/// The first call may still find the end of the old session.
fn call_again(client: &blocking::Client) -> smt::Bytes {
    match client.call("two").wait() {
        Ok(reply) => reply,
        Err(error) => {
            assert!(error.to_string().contains("closed the session"), "{error}");
            client.call("two").wait().unwrap()
        }
    }
}

#[test]
fn a_lost_peer_is_replaced_with_tokio() {
    on_every_runtime(async || {
        let credentials = Credentials::new();
        let server = credentials.server().bind("127.0.0.1:0").await.unwrap();
        let address = server.local_address();
        let client = credentials.client().connect(address).await.unwrap();
        server.close(Duration::from_secs(5)).await;
        drop(server);
        tokio::task::spawn_blocking(move || drop(take_over(address))).await.unwrap();
        let server = credentials.server().bind(address).await.unwrap();
        tokio::spawn(async move {
            while let Some(request) = server.accept_request().await {
                echo(request);
            }
        });
        let reply = match client.call("two").await {
            Err(_) => client.call("two").await,
            ok => ok,
        };
        assert_eq!(reply.unwrap(), "two");
    });
}

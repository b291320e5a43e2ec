// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt-bench rotate`: certificates of both sides that are replaced every second under load.
//!
//! 1. An authority signs certificates that are good for ten seconds. Server and clients are given
//!    new ones every second, while some standing clients call without a pause.
//! 2. After each rotation a new client connects: its server must show the newest certificate.
//! 3. A session ends before a certificate of its handshake does (SPEC §10), so each standing
//!    client proves itself anew by itself, again and again: the server notes which of the
//!    certificates each one has shown.
//!
//! No call may fail. All of it is one process: nothing here is a matter of time.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use smt::blocking::{Client, Server};
use smt::pki::{CertificatePlan, EphemeralCa, Validity};
use smt::{ClientAuth, Identity, Request, Trust};

use crate::failure::{Doing, Failure};
use crate::server::say;

/// Replace the certificates of both sides again and again under load, and see that no call fails
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Rotations, one a second
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    rotations: u32,
    /// Clients that call all the time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    clients: u8,
}

/// The authority, and what it has signed.
struct Fleet {
    authority: EphemeralCa,
    trust: Trust,
}

/// The certificates that each standing client has shown, as the server saw them.
type Shown = Mutex<Vec<BTreeSet<Vec<u8>>>>;

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let fleet = Fleet::new()?;
    let server = smt::server(fleet.server()?)
        .client_auth(ClientAuth::Required(fleet.trust.clone()))
        .bind_blocking("127.0.0.1:0")?;
    let address = server.local_address();
    let shown: Shown = Mutex::new(vec![BTreeSet::new(); arguments.clients.into()]);
    let (calls, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let standing = (0..arguments.clients).map(|number| fleet.client(address, number));
    let standing = standing.collect::<Result<Vec<_>, _>>()?;
    let seen = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| serve(&server, &shown));
        }
        let callers: Vec<_> = standing
            .iter()
            .zip(0_u8..)
            .map(|(client, number)| {
                let (calls, is_over) = (&calls, &is_over);
                scope.spawn(move || call(client, number, calls, is_over))
            })
            .collect();
        let seen = fleet.rotate(arguments.rotations, &server, &standing);
        is_over.store(true, Ordering::Relaxed);
        let failed = |_| Failure::new("a caller has failed");
        let ended = callers.into_iter().try_for_each(|caller| caller.join().map_err(failed)?);
        server.close(Duration::ZERO);
        ended?;
        seen
    })?;
    let shown = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(arguments, seen, calls.into_inner(), &shown, &server)
}

fn report(
    arguments: &Arguments,
    seen: u32,
    calls: u64,
    shown: &[BTreeSet<Vec<u8>>],
    server: &Server,
) -> Result<(), Failure> {
    let least = shown.iter().map(BTreeSet::len).min().unwrap_or_default();
    let all: usize = shown.iter().map(BTreeSet::len).sum();
    say(&format!(
        "{} rotations; {seen} new clients, each met the newest certificate; {calls} calls of {} standing clients, none failed;\n\
         these proved themselves by {all} certificates, each by {least} or more; {} sessions in all",
        arguments.rotations,
        arguments.clients,
        server.statistics().protocol.sessions_begun,
    ))?;
    // A session ends before its certificates' ten seconds are over.
    let wanted = (arguments.rotations as usize / 10).max(1);
    match seen == arguments.rotations && least >= wanted {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "each standing client should have proved itself by {wanted} certificates"
        ))),
    }
}

impl Fleet {
    fn new() -> Result<Self, Failure> {
        let authority = EphemeralCa::new()?;
        let trust = authority.trust()?;
        Ok(Self { authority, trust })
    }

    fn identity(&self, plan: CertificatePlan) -> Result<Identity, Failure> {
        let now = SystemTime::now();
        // Dates are whole seconds.
        let validity = Validity::between(now - LIFE, now + LIFE)?;
        Ok(self.authority.identity(&CertificatePlan { validity, ..plan })?)
    }

    fn server(&self) -> Result<Identity, Failure> {
        self.identity(CertificatePlan::server(&[NAME])?)
    }

    fn client_identity(&self, number: u8) -> Result<Identity, Failure> {
        self.identity(CertificatePlan::client(&format!("client {number}"))?)
    }

    fn client(&self, address: SocketAddr, number: u8) -> Result<Client, Failure> {
        let client = smt::client(self.trust.clone())
            .server_name(NAME)
            .identity(self.client_identity(number)?);
        Ok(client.connect_blocking(address)?)
    }

    /// Rotates once a second. Returns how many new clients have met the newest certificate.
    fn rotate(&self, rotations: u32, server: &Server, standing: &[Client]) -> Result<u32, Failure> {
        let (mut due, mut seen) = (Instant::now(), 0);
        for _ in 0..rotations {
            due += INTERVAL;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let identity = self.server()?;
            let newest = identity.certificates().next().unwrap_or_default().to_vec();
            server.set_identity(identity)?;
            for (client, number) in standing.iter().zip(0..) {
                client.set_client_identity(Some(self.client_identity(number)?))?;
            }
            let fresh = self.client(server.local_address(), NEW)?;
            let reply = fresh.call(vec![NEW]).wait().doing("a new client's call")?;
            let met = fresh.connect()?.peer().certificates.first() == Some(&newest);
            seen += u32::from(met && *reply == [NEW]);
        }
        Ok(seen)
    }
}

/// Calls until it is over; the first failure is told.
fn call(
    client: &Client,
    number: u8,
    calls: &AtomicU64,
    is_over: &AtomicBool,
) -> Result<(), Failure> {
    while !is_over.load(Ordering::Relaxed) {
        client.call(vec![number]).wait().doing("a standing client's call")?;
        calls.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn serve(server: &Server, shown: &Shown) {
    while let Some(request) = server.accept_request() {
        note(&request, shown);
        let body = request.body().clone();
        // The caller may have gone.
        let _ = request.reply(body);
    }
}

/// The request says which client's it is.
fn note(request: &Request, shown: &Shown) {
    let leaf = request.peer().certificates.first();
    let number = request.body().first().map(|number| usize::from(*number));
    let (Some(leaf), Some(number)) = (leaf, number) else {
        return;
    };
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(of_client) = shown.get_mut(number)
        && !of_client.contains(leaf)
    {
        of_client.insert(leaf.clone());
    }
}

const NAME: &str = "localhost";
const INTERVAL: Duration = Duration::from_secs(1);
const LIFE: Duration = Duration::from_secs(10);
/// The number of clients that come once.
const NEW: u8 = 255;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The server's tickets, published in DNS while it serves.
//!
//! 1. The options are read before the endpoint is opened, which gets the set of keys.
//! 2. Once the port is known, a thread issues, publishes and renews.
//! 3. When the server ends, the record is withdrawn.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use clap::{Args, ValueEnum};
use smt::{Group, PeerCertificate, TicketKeys, TicketPlan};
pub(super) use smt_dns::PublisherIdentity;
use smt_dns::{Destination, DynamicUpdate, TicketPublisher, TsigKey, ZoneFile};
use tokio::sync::oneshot;

use crate::credentials::ServerCredentials;
use crate::failure::{Doing, Failure};
use crate::resolver::{block_on, resolver};
use crate::time_span;

/// Where tickets are published, and for how long they are good.
#[derive(Args, Debug)]
pub(super) struct TicketArguments {
    /// Publish tickets in this zone of the name server at this address, by dynamic updates (RFC
    /// 2136)
    #[arg(long, value_name = "SERVER#ZONE", requires = "tsig_key")]
    tickets_dns_update: Option<String>,
    /// The key that signs the updates: a file of tsig-keygen, for hmac-sha256
    #[arg(long, value_name = "FILE", requires = "tickets_dns_update")]
    tsig_key: Option<PathBuf>,
    /// Publish tickets in this file, which a zone includes; the name server has to be told to load
    /// it anew when it changes
    #[arg(long, value_name = "PATH")]
    tickets_zone_file: Option<PathBuf>,
    /// Publish tickets for this name, and not for all DNS names of the certificate; may be given
    /// several times
    #[arg(long, value_name = "NAME")]
    tickets_name: Vec<String>,
    /// How long a ticket is good, an hour at most; it is renewed after half of that
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = life)]
    tickets_life: u64,
    /// The group of the tickets' key shares; p256 and x25519 make first flights shorter by 1.2 KB,
    /// and are not safe against quantum computers to come
    #[arg(long, value_name = "GROUP", value_enum, default_value = "x25519mlkem768")]
    tickets_group: ShareGroup,
    /// Let clients send requests with their first flight, those that they call idempotent: each is
    /// run once, and none has forward secrecy
    #[arg(long)]
    tickets_early_data: bool,
    /// The port that tickets are published for, if clients reach this server by another than its
    /// own
    #[arg(long, value_name = "PORT")]
    tickets_port: Option<u16>,
}

/// A group as the command line names it.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ShareGroup {
    #[value(name = "x25519mlkem768")]
    X25519MlKem768,
    X25519,
    P256,
}

/// A server's tickets before it is open.
pub(super) struct Publishing {
    keys: TicketKeys,
    plan: TicketPlan,
    destinations: Vec<Destination>,
    port: Option<u16>,
}

/// A thread that publishes.
pub(super) struct Publisher {
    thread: JoinHandle<()>,
    end: oneshot::Sender<()>,
}

impl TicketArguments {
    /// The tickets to be published, if any are.
    ///
    /// # Errors
    /// The key file has no key, the zone no name, or the certificate no DNS name.
    pub(super) fn publishing(
        &self,
        credentials: &ServerCredentials,
    ) -> Result<Option<Publishing>, Failure> {
        let mut destinations = Vec::new();
        if let Some(path) = &self.tickets_zone_file {
            destinations.push(Destination::ZoneFile(ZoneFile::new(path)));
        }
        if let (Some(place), Some(key)) = (&self.tickets_dns_update, &self.tsig_key) {
            let (server, zone) = server_and_zone(place).map_err(Failure::usage)?;
            let update = DynamicUpdate::new(server, zone, TsigKey::read(key)?)?;
            destinations.push(Destination::Update(update));
        }
        if destinations.is_empty() {
            return Ok(None);
        }
        let names = match self.tickets_name.as_slice() {
            [] => dns_names(credentials)?,
            names => names.to_vec(),
        };
        let mut plan = TicketPlan::new(names);
        plan.life = self.tickets_life;
        plan.group = self.tickets_group.into();
        plan.takes_early_data = self.tickets_early_data;
        plan.requires_client_certificate = credentials.chooses_clients();
        Ok(Some(Publishing {
            keys: TicketKeys::new(),
            plan,
            destinations,
            port: self.tickets_port,
        }))
    }
}

impl From<ShareGroup> for Group {
    fn from(group: ShareGroup) -> Self {
        match group {
            ShareGroup::X25519MlKem768 => Self::X25519MlKem768,
            ShareGroup::X25519 => Self::X25519,
            ShareGroup::P256 => Self::P256,
        }
    }
}

impl Publishing {
    /// For the server's builder.
    pub(super) fn keys(&self) -> TicketKeys {
        self.keys.clone()
    }

    /// Begins to publish for the server that listens there.
    ///
    /// # Errors
    /// No thread could be started, or the identity makes no tickets.
    pub(super) fn start(
        self,
        credentials: &ServerCredentials,
        listens: SocketAddr,
    ) -> Result<(Publisher, PublisherIdentity), Failure> {
        let publisher = TicketPublisher::new(
            &credentials.identity()?,
            self.plan,
            self.port.unwrap_or_else(|| listens.port()),
            self.keys,
            self.destinations,
        )?;
        let identity = publisher.identity();
        let (end, ended) = oneshot::channel::<()>();
        let work = move || {
            let done = block_on(publisher.run(async {
                // The sender is gone: an end too.
                let _ = ended.await;
            }));
            if let Err(failure) = done {
                tracing::error!("tickets are not published: {}", failure.text());
            }
        };
        let thread = std::thread::Builder::new()
            .name("smt-tickets".to_owned())
            .spawn(work)
            .doing("starting a thread that publishes tickets")?;
        Ok((Publisher { thread, end }, identity))
    }
}

impl Publisher {
    /// Withdraws what is published, and waits for that.
    pub(super) fn finish(self) {
        // The thread may have ended.
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

/// The DNS names of the certificate: tickets are for them.
fn dns_names(credentials: &ServerCredentials) -> Result<Vec<String>, Failure> {
    let identity = credentials.identity()?;
    let leaf = identity.certificates().next().unwrap_or_default();
    let names = PeerCertificate::from_der(leaf)?.dns_names;
    let names: Vec<String> = names.into_iter().filter(|name| !name.contains('*')).collect();
    match names.is_empty() {
        true => Err(Failure::usage(
            "the certificate has no DNS name (a wildcard is none), and tickets are published for those alone",
        )),
        false => Ok(names),
    }
}

fn server_and_zone(text: &str) -> Result<(SocketAddr, &str), String> {
    let wrong = || {
        format!(
            "--tickets-dns-update is {text:?}: give SERVER#ZONE, such as 192.0.2.53#example.org"
        )
    };
    let (server, zone) = text.split_once('#').ok_or_else(wrong)?;
    let server = resolver(server).map_err(|why| format!("{}: {why}", wrong()))?;
    match zone.is_empty() {
        true => Err(wrong()),
        false => Ok((server, zone)),
    }
}

/// Understands how long a ticket is good; a value parser for clap.
fn life(text: &str) -> Result<u64, String> {
    let life: Duration = time_span::parse_nonzero(text)?;
    match life.as_secs() {
        seconds @ 2..=3_600 => Ok(seconds),
        _ => Err("a ticket is good for 2 s to 1 h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_named_with_its_server() {
        let read = server_and_zone("192.0.2.53#example.org").unwrap();
        assert_eq!(read, ("192.0.2.53:53".parse().unwrap(), "example.org"));
        let read = server_and_zone("[::1]:5353#example.org.").unwrap();
        assert_eq!(read, ("[::1]:5353".parse().unwrap(), "example.org."));
        for text in ["192.0.2.53", "#example.org", "192.0.2.53#", "ns.example#example"] {
            let wrong = server_and_zone(text).unwrap_err();
            assert!(wrong.contains("SERVER#ZONE"), "{wrong}");
        }
    }

    #[test]
    fn a_life_is_an_hour_at_most() {
        assert_eq!(life("1h"), Ok(3_600));
        assert_eq!(life("5s"), Ok(5));
        for text in ["61m", "1s", "0s", "1ms"] {
            assert!(life(text).is_err(), "{text}");
        }
    }
}

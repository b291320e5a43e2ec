// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The measured transports: SMT and its peers, one file each.

mod grpc;
mod on_tokio;
mod one_thread;
mod quinn_streams;
mod s2n_streams;
mod smt_blocking;
mod smt_calls;
mod smt_core;
mod smt_polled;
mod smt_tokio;
mod stream_blocking;
mod tls_multiplexed;
mod tls_tokio;
mod udp;

use std::net::SocketAddr;

use on_tokio::Variant;
pub(crate) use smt_blocking::{client_builder, server_builder};
use tls_multiplexed::TlsMultiplexed;

use crate::failure::Failure;
use crate::job::{Setting, Work};
use crate::load::Callers;

/// A transport to be measured.
pub(crate) trait Peer {
    /// Its name on the command line and in tables.
    fn name(&self) -> &'static str;

    /// A description of the peer and its settings, in one sentence.
    fn settings(&self) -> &'static str;

    /// Why this cannot be measured, if it cannot.
    fn refuses(&self, _work: &Work) -> Option<&'static str> {
        None
    }

    /// Whether it has replies in parts.
    fn has_parts(&self) -> bool {
        false
    }

    /// Serves in this process for ever; calls [`crate::server::listening`] when it does.
    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure>;

    /// Connects.
    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure>;

    /// A function that connects, makes one call of 64 bytes and disconnects, each time that it is
    /// called.
    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure>;
}

/// See [`Peer::newcomer`].
pub(crate) type Newcomer = Box<dyn FnMut() -> Result<(), Failure>>;

/// How many callers and connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Calls in progress at once.
    pub(crate) callers: usize,
    /// Connections wanted; 0 for as many as the transport needs.
    pub(crate) sessions: usize,
}

impl Shape {
    /// Connections of a transport that has one call in progress on each.
    pub(crate) fn connections_exclusive(self) -> usize {
        self.callers.max(self.sessions)
    }

    /// Connections of a transport that has many calls in progress on one.
    pub(crate) fn connections_shared(self) -> usize {
        self.sessions.max(1)
    }
}

/// All of them, in the order of tables.
pub(crate) fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(smt_blocking::SmtBlocking::ADAPTIVE),
        Box::new(smt_blocking::SmtBlocking::BUSY),
        Box::new(smt_tokio::SmtTokio),
        Box::new(Variant::spawned("smt-tokio-spawn", smt_tokio::SmtTokio)),
        Box::new(Variant::multi_thread("smt-tokio-mt", smt_tokio::SmtTokio)),
        Box::new(Variant::multi_thread_spawned("smt-tokio-mt-spawn", smt_tokio::SmtTokio)),
        Box::new(smt_polled::SmtPolled),
        Box::new(smt_core::SmtCore::ENCRYPTED),
        Box::new(smt_core::SmtCore::NULL),
        Box::new(stream_blocking::StreamBlocking::TLS),
        Box::new(tls_tokio::TlsTokio),
        Box::new(Variant::multi_thread("tls-tokio-mt", tls_tokio::TlsTokio)),
        Box::new(TlsMultiplexed),
        Box::new(Variant::spawned("tls-multiplexed-spawn", TlsMultiplexed)),
        Box::new(Variant::multi_thread("tls-multiplexed-mt", TlsMultiplexed)),
        Box::new(Variant::multi_thread_spawned("tls-multiplexed-mt-spawn", TlsMultiplexed)),
        Box::new(one_thread::OneThread::TLS),
        Box::new(stream_blocking::StreamBlocking::PLAIN),
        Box::new(one_thread::OneThread::PLAIN),
        Box::new(quinn_streams::Quinn),
        Box::new(Variant::multi_thread("quinn-mt", quinn_streams::Quinn)),
        Box::new(s2n_streams::S2n),
        Box::new(Variant::multi_thread("s2n-quic-mt", s2n_streams::S2n)),
        Box::new(grpc::Grpc::ONE),
        Box::new(Variant::multi_thread("grpc-mt", grpc::Grpc::ONE)),
        Box::new(grpc::Grpc::FOUR),
        Box::new(Variant::multi_thread("grpc-4-mt", grpc::Grpc::FOUR)),
        Box::new(udp::Udp::BLOCKING),
        Box::new(udp::Udp::BUSY),
    ]
}

/// The one of this name.
pub(crate) fn by_name(name: &str) -> Result<Box<dyn Peer>, Failure> {
    let found = all().into_iter().find(|peer| peer.name() == name);
    found.ok_or_else(|| Failure::new(format!("there is no peer {name}; see `smt-bench peers`")))
}

/// Prints names and settings.
pub(crate) fn list() -> Result<(), Failure> {
    for peer in all() {
        crate::server::say(&format!("{:<16} {}", peer.name(), peer.settings()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn names_differ() {
        let names: BTreeSet<_> = super::all().iter().map(|peer| peer.name()).collect();
        assert_eq!(names.len(), super::all().len());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer on tokio as `#[tokio::main]` runs it, with several workers, or with a task for each
//! request at the server.

use std::net::SocketAddr;

use super::{Newcomer, Peer, Shape};
use crate::failure::Failure;
use crate::job::{Flavor, Handlers, OnTokio, Setting, Work};
use crate::load::Callers;

/// A peer under another name, with another runtime or other handlers on both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant<P> {
    peer: P,
    name: &'static str,
    on_tokio: OnTokio,
}

impl<P> Variant<P> {
    /// On the runtime with two workers.
    pub(super) const fn multi_thread(name: &'static str, peer: P) -> Self {
        Self::new(name, peer, Flavor::TwoWorkers, Handlers::Inline)
    }

    /// The server spawns a task for each request, which is what most users write.
    pub(super) const fn spawned(name: &'static str, peer: P) -> Self {
        Self::new(name, peer, Flavor::CurrentThread, Handlers::Spawned)
    }

    /// Both.
    pub(super) const fn multi_thread_spawned(name: &'static str, peer: P) -> Self {
        Self::new(name, peer, Flavor::TwoWorkers, Handlers::Spawned)
    }

    const fn new(name: &'static str, peer: P, flavor: Flavor, handlers: Handlers) -> Self {
        Self { peer, name, on_tokio: OnTokio { flavor, handlers } }
    }

    fn setting(&self, setting: &Setting) -> Setting {
        Setting { on_tokio: self.on_tokio, ..setting.clone() }
    }
}

impl<P: Peer> Peer for Variant<P> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self) -> &'static str {
        match (self.on_tokio.flavor, self.on_tokio.handlers) {
            (Flavor::CurrentThread, Handlers::Inline) => self.peer.settings(),
            (Flavor::CurrentThread, Handlers::Spawned) => {
                "as the peer of that name without -spawn, and the server spawns a task for each request"
            }
            (Flavor::TwoWorkers, Handlers::Inline) => {
                "as the peer of that name without -mt, on tokio's multi-thread runtime with two workers on both sides"
            }
            (Flavor::TwoWorkers, Handlers::Spawned) => {
                "as the peer of that name without -mt-spawn, on tokio's multi-thread runtime with two workers on both \
                 sides, and the server spawns a task for each request"
            }
        }
    }

    fn refuses(&self, work: &Work) -> Option<&'static str> {
        self.peer.refuses(work)
    }

    fn has_parts(&self) -> bool {
        self.on_tokio.handlers == Handlers::Inline && self.peer.has_parts()
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        self.peer.serve(&self.setting(setting), address)
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        self.peer.connect(&self.setting(setting), server, shape)
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        self.peer.newcomer(&self.setting(setting), server)
    }
}

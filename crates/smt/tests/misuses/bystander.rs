// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server and a client that no misuse concerns, and what misuses are made of.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

use smt::pki::EphemeralCa;
use smt::{Builder, Identity, TlsClient, TlsServer, TransportConfig, blocking};
use tokio::runtime::Runtime;

use crate::misuse::{Told, failed};

/// Endpoints that have to go on, credentials, a runtime and a directory.
pub(crate) struct Bystander {
    pub(crate) authority: EphemeralCa,
    pub(crate) identity: Identity,
    pub(crate) server: blocking::Server,
    pub(crate) client: blocking::Client,
    pub(crate) runtime: Runtime,
    pub(crate) directory: PathBuf,
}

impl Bystander {
    pub(crate) fn new() -> Self {
        let authority = EphemeralCa::new().unwrap();
        let identity = authority.server(&["localhost"]).unwrap();
        let server = smt::server(identity.clone()).bind_blocking(ANY).unwrap();
        let served = server.clone();
        std::thread::spawn(move || {
            while let Some(request) = served.accept_request() {
                let body = request.body().clone();
                let _ = request.reply(body);
            }
        });
        let client = smt::client(authority.trust().unwrap()).server_name("localhost");
        let client = client.connect_blocking(server.local_address()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let name = format!("smt-misuses-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Self { authority, identity, server, client, runtime, directory }
    }

    /// It still answers.
    #[track_caller]
    pub(crate) fn assert_alive(&self) {
        let call = self.client.call("alive").deadline(Duration::from_secs(60));
        assert_eq!(call.wait().unwrap(), "alive");
        assert_eq!(self.server.statistics().sessions, 1);
    }

    /// Begins a server with its identity.
    pub(crate) fn server_builder(&self) -> Builder<TlsServer> {
        smt::server(self.identity.clone())
    }

    /// Begins a client that trusts its authority. No attempt takes longer than the tests wait.
    pub(crate) fn client_builder(&self) -> Builder<TlsClient> {
        smt::client(self.authority.trust().unwrap()).server_name("localhost")
    }

    /// A server for threads that nobody serves yet, and a client of it.
    pub(crate) fn pair(&self) -> (blocking::Server, blocking::Client) {
        self.pair_of(self.server_builder(), self.client_builder())
    }

    pub(crate) fn pair_of(
        &self,
        server: Builder<TlsServer>,
        client: Builder<TlsClient>,
    ) -> (blocking::Server, blocking::Client) {
        let server = server.bind_blocking(ANY).unwrap();
        let client = client.connect_blocking(server.local_address()).unwrap();
        (server, client)
    }

    /// The outcome of a server with these choices.
    pub(crate) fn configured(&self, change: impl FnOnce(&mut TransportConfig)) -> Told {
        failed(self.server_builder().configure(change).bind_blocking(ANY))
    }

    /// The outcome of a client of the address with this builder.
    pub(crate) fn connecting(&self, client: Builder<TlsClient>, server: SocketAddr) -> Told {
        failed(client.connect_blocking(server))
    }

    /// The path of a file of this content.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.directory.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A port at which nobody listens.
pub(crate) fn closed() -> SocketAddr {
    let socket = UdpSocket::bind(ANY).unwrap();
    socket.local_addr().unwrap()
}

/// This host, and a port that the system chooses.
pub(crate) const ANY: &str = "127.0.0.1:0";

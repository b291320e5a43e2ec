// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS over TCP as a transport to be measured: a connection and a thread for each caller.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::caller::Caller;
use super::load::{Load, Threads, Transport};
use super::smt_load::cpu_of;
use super::tls::{Messages, client_config};
use crate::credentials::ClientCredentials;
use crate::failure::{Doing, Failure};

/// Where the server is, and how to connect to it.
pub(super) struct Tls {
    address: String,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Connects later: each caller has a connection of its own.
    pub(super) fn new(address: &str, name: &str, authority: &Path) -> Result<Self, Failure> {
        Ok(Self {
            address: address.to_owned(),
            name: ServerName::try_from(name.to_owned()).doing(name)?,
            config: client_config(authority)?,
        })
    }

    /// With the credentials of an SMT client: the same authority and name.
    pub(super) fn connect(credentials: &ClientCredentials, address: &str) -> Result<Self, Failure> {
        let authority = credentials
            .anchors
            .ca
            .as_deref()
            .ok_or_else(|| Failure::new("--against-tls needs --ca"))?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = credentials.name.as_deref().unwrap_or(host);
        Self::new(address, name.trim_matches(['[', ']']), authority)
    }

    fn caller(&self) -> Result<TlsCaller, Failure> {
        let socket = TcpStream::connect(&self.address)
            .doing(format!("connecting to {} by TCP", self.address))?;
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        let mut caller = TlsCaller {
            messages: Messages::new(connection, socket)?,
            reply: Vec::new(),
        };
        // The handshake is over before anything is measured.
        caller.call(&Bytes::new())?;
        Ok(caller)
    }
}

impl Transport for Tls {
    fn name(&self) -> &'static str {
        "tls"
    }

    fn api(&self, _concurrency: usize) -> &'static str {
        "blocking"
    }

    fn open(&self, concurrency: usize) -> Result<Box<dyn Load + '_>, Failure> {
        let callers = (0..concurrency).map(|_| self.caller());
        Ok(Box::new(Threads(callers.collect::<Result<Vec<_>, _>>()?)))
    }

    fn server_cpu(&self, _concurrency: usize) -> Result<Duration, Failure> {
        cpu_of(&mut self.caller()?)
    }
}

struct TlsCaller {
    messages: Messages<ClientConnection>,
    reply: Vec<u8>,
}

impl Caller for TlsCaller {
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        self.messages.write(request).doing("calling by TLS")?;
        self.messages
            .read(&mut self.reply)
            .doing("calling by TLS")?;
        Ok(self.reply.len())
    }

    fn ask(&mut self, request: &Bytes) -> Result<Bytes, Failure> {
        self.call(request)?;
        Ok(self.reply.clone().into())
    }
}

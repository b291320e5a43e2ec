// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS over TCP as a transport to be measured: a connection for each caller, and a thread or a
//! task, whichever SMT has in the same case.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::api::Api;
use super::caller::Caller;
use super::load::{Load, Threads, Transport};
use super::plan::Plan;
use super::smt_load::cpu_of;
use super::task_load::{TaskCaller, Tasks, runtime};
use super::tls::{Messages, client_config};
use super::tls_tasks::{self, BigReads, big_reads};
use crate::credentials::ClientCredentials;
use crate::failure::{Doing, Failure};

/// Where the server is, and how to connect to it.
pub(super) struct Tls {
    plan: Plan,
    /// The server that is called by one caller at a time, and that which is called by many.
    addresses: [String; 2],
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Connects later: each caller has a connection of its own.
    pub(super) fn new(
        plan: &Plan,
        addresses: [&str; 2],
        name: &str,
        authority: &Path,
    ) -> Result<Self, Failure> {
        Ok(Self {
            plan: plan.clone(),
            addresses: addresses.map(str::to_owned),
            name: ServerName::try_from(name.to_owned()).doing(name)?,
            config: client_config(authority)?,
        })
    }

    /// With the credentials of an SMT client: the same authority and name.
    pub(super) fn connect(
        plan: &Plan,
        credentials: &ClientCredentials,
        address: &str,
    ) -> Result<Self, Failure> {
        let authority = credentials
            .anchors
            .ca
            .as_deref()
            .ok_or_else(|| Failure::new("--against-tls needs --ca"))?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = credentials.name.as_deref().unwrap_or(host);
        let name = name.trim_matches(['[', ']']);
        Self::new(plan, [address; 2], name, authority)
    }

    fn address(&self, concurrency: usize) -> &str {
        &self.addresses[usize::from(concurrency > 1)]
    }

    fn caller(&self, concurrency: usize) -> Result<TlsCaller, Failure> {
        let address = self.address(concurrency);
        let socket =
            TcpStream::connect(address).doing(format!("connecting to {address} by TCP"))?;
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        let mut caller =
            TlsCaller { messages: Messages::new(connection, socket)?, reply: Vec::new() };
        // The handshake is over before anything is measured.
        caller.call(&Bytes::new())?;
        Ok(caller)
    }

    async fn task_caller(&self, concurrency: usize) -> Result<TlsTaskCaller, Failure> {
        let address = self.address(concurrency);
        let doing = || format!("connecting to {address} by TCP");
        let socket = tokio::net::TcpStream::connect(address).await.doing(doing())?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector
            .connect_with(self.name.clone(), big_reads(socket)?, |connection| {
                // As for blocking sockets: a message leaves by as few calls as the socket takes.
                connection.set_buffer_limit(None);
            })
            .await
            .doing(format!("connecting to {address} by TLS"))?;
        let mut caller =
            TlsTaskCaller { messages: tls_tasks::Messages::new(stream), reply: Vec::new() };
        TaskCaller::call(&mut caller, &Bytes::new()).await?;
        Ok(caller)
    }
}

impl Transport for Tls {
    fn name(&self) -> &'static str {
        "tls"
    }

    fn api(&self, concurrency: usize) -> Api {
        self.plan.api(concurrency)
    }

    fn open(&self, concurrency: usize) -> Result<Box<dyn Load + '_>, Failure> {
        if self.api(concurrency) == Api::Blocking {
            let callers = (0..concurrency).map(|_| self.caller(concurrency));
            return Ok(Box::new(Threads(callers.collect::<Result<Vec<_>, _>>()?)));
        }
        let runtime = runtime()?;
        let mut callers = Vec::new();
        for _ in 0..concurrency {
            callers.push(runtime.block_on(self.task_caller(concurrency))?);
        }
        Ok(Box::new(Tasks { runtime, callers }))
    }

    fn server_cpu(&self, concurrency: usize) -> Result<Duration, Failure> {
        cpu_of(&mut self.caller(concurrency)?)
    }
}

struct TlsTaskCaller {
    messages: tls_tasks::Messages<TlsStream<BigReads>>,
    reply: Vec<u8>,
}

impl TaskCaller for TlsTaskCaller {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        let written = self.messages.write(request).await;
        written.doing("calling by TLS")?;
        let read = self.messages.read(&mut self.reply).await;
        read.doing("calling by TLS")?;
        Ok(self.reply.len())
    }
}

struct TlsCaller {
    messages: Messages<ClientConnection>,
    reply: Vec<u8>,
}

impl Caller for TlsCaller {
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        self.messages.write(request).doing("calling by TLS")?;
        self.messages.read(&mut self.reply).doing("calling by TLS")?;
        Ok(self.reply.len())
    }

    fn ask(&mut self, request: &Bytes) -> Result<Bytes, Failure> {
        self.call(request)?;
        Ok(self.reply.clone().into())
    }
}

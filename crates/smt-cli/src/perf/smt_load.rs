// SPDX-License-Identifier: Apache-2.0 OR MIT
//! SMT as a transport to be measured: one client, whose session all callers share.

use std::time::Duration;

use bytes::Bytes;
use smt::blocking::Client;
use smt::{Builder, TlsClient};

use super::api::Api;
use super::caller::{CPU_QUESTION, Caller};
use super::load::{Load, Threads, Transport};
use super::plan::Plan;
use super::task_load::{Tasks, runtime};
use crate::failure::Failure;

/// A client of one or two `smt perf server`s, as far as the plan has cases for them: a carrier may
/// have room for one client alone.
pub(super) struct Smt {
    builder: Builder<TlsClient>,
    plan: Plan,
    /// The server that is called by one caller at a time.
    alone: Option<Server>,
    /// The server that is called by many.
    loaded: Option<Server>,
}

/// A server, and the client that asks it for its CPU time.
struct Server {
    address: String,
    client: Client,
}

impl Smt {
    /// Connects: to the server that is called by one caller at a time, and to that which is called
    /// by many.
    pub(super) fn connect(
        builder: Builder<TlsClient>,
        [alone, loaded]: [&str; 2],
        plan: &Plan,
    ) -> Result<Self, Failure> {
        let builder = builder.spin(plan.spin);
        let server = |address, is_needed: bool| {
            let server = is_needed.then(|| Server::connect(&builder, address));
            server.transpose()
        };
        Ok(Self {
            alone: server(alone, plan.concurrency.contains(&1))?,
            loaded: server(loaded, plan.concurrency.iter().any(|calls| *calls > 1))?,
            builder,
            plan: plan.clone(),
        })
    }

    fn server(&self, concurrency: usize) -> &Server {
        let server = match concurrency {
            1 => &self.alone,
            _ => &self.loaded,
        };
        server.as_ref().expect("a server for each case of the plan")
    }
}

impl Server {
    fn connect(builder: &Builder<TlsClient>, address: &str) -> Result<Self, Failure> {
        Ok(Self { address: address.to_owned(), client: builder.clone().connect_blocking(address)? })
    }
}

impl Transport for Smt {
    fn name(&self) -> &'static str {
        "smt"
    }

    fn api(&self, concurrency: usize) -> Api {
        self.plan.api(concurrency)
    }

    fn open(&self, concurrency: usize) -> Result<Box<dyn Load + '_>, Failure> {
        let Server { address, client } = self.server(concurrency);
        Ok(match self.plan.api(concurrency) {
            Api::Blocking => Box::new(Threads(vec![client.clone(); concurrency])),
            Api::Tokio => {
                let runtime = runtime()?;
                let client = runtime.block_on(self.builder.clone().connect(address))?;
                let callers = vec![client; concurrency];
                Box::new(Tasks { runtime, callers })
            }
        })
    }

    fn server_cpu(&self, concurrency: usize) -> Result<Duration, Failure> {
        cpu_of(&mut self.server(concurrency).client.clone())
    }
}

impl Caller for Client {
    fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        Ok(Self::call(self, request.clone()).wait()?.len())
    }

    fn ask(&mut self, request: &Bytes) -> Result<Bytes, Failure> {
        Ok(Self::call(self, request.clone()).wait()?)
    }
}

/// Asks the server for its CPU time.
pub(super) fn cpu_of(caller: &mut impl Caller) -> Result<Duration, Failure> {
    let reply = caller.ask(&Bytes::from_static(CPU_QUESTION))?;
    let text = String::from_utf8_lossy(&reply);
    let nanoseconds = text.parse().map_err(|_| {
        let text = "the server does not tell its CPU time; is it an `smt perf server`?";
        Failure::of(smt::Fault::Peer, text)
    })?;
    Ok(Duration::from_nanos(nanoseconds))
}

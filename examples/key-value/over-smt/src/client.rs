// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value client over SMT.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use common::{ClientArguments, Failure, Parser, Refusal, Store};
use kv_smt::{Reply, Request};
use smt::{CallFailure, Client, ErrorKind, Execution, Identity, Retry, Trust};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = ClientArguments::parse();
    let client = smt::client(Trust::roots_from_pem_files(&[&arguments.ca])?)
        .identity(Identity::from_pem_files(&arguments.cert, &arguments.key)?)
        .retry(Retry::within(arguments.deadline))
        .connect_lazy(arguments.server.as_str())?;
    let store = SmtStore { client, deadline: arguments.deadline };
    common::run(&store).await?;
    Ok(())
}

struct SmtStore {
    client: Client,
    deadline: Duration,
}

impl Store for SmtStore {
    async fn get(&self, key: String) -> Result<Option<Bytes>, Failure> {
        match self.call(Request::Get { key }).await? {
            Reply::Value(value) => Ok(value),
            _ => Err(unexpected()),
        }
    }

    async fn set(&self, key: String, value: Bytes) -> Result<(), Failure> {
        match self.call(Request::Set { key, value }).await? {
            Reply::Stored => Ok(()),
            _ => Err(unexpected()),
        }
    }

    async fn delete(&self, key: String) -> Result<bool, Failure> {
        match self.call(Request::Delete { key }).await? {
            Reply::Deleted(was_there) => Ok(was_there),
            _ => Err(unexpected()),
        }
    }

    async fn list(&self, prefix: String) -> Result<Vec<String>, Failure> {
        match self.call(Request::List { prefix }).await? {
            Reply::Keys(keys) => Ok(keys),
            _ => Err(unexpected()),
        }
    }
}

impl SmtStore {
    async fn call(&self, request: Request) -> Result<Reply, Failure> {
        let request = postcard::to_allocvec(&request).map_err(|_| unexpected())?;
        let call = self.client.call(request).deadline(self.deadline);
        let reply = call.await.map_err(|error| failure(&error))?;
        postcard::from_bytes(&reply).map_err(|_| unexpected())
    }
}

fn failure(error: &smt::Error) -> Failure {
    if let Some(refusal) = error.refusal() {
        return Failure::Refused(Refusal { code: refusal.code, text: refusal.text.clone() });
    }
    match (error.kind(), error.execution()) {
        (ErrorKind::Call(call), _) if call.reason == CallFailure::DeadlineExceeded => {
            Failure::DeadlineExceeded
        }
        (_, Execution::DidNotRun) => Failure::DidNotRun(error.to_string()),
        (_, Execution::MayHaveRun) => Failure::MayHaveRun(error.to_string()),
    }
}

fn unexpected() -> Failure {
    Failure::MayHaveRun("the server's reply is not understood".to_owned())
}

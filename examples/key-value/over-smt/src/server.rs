// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value server over SMT.

use std::error::Error;
use std::sync::Arc;

use common::{Parser, Refusal, SHUTDOWN_LIMIT, ServerArguments, Storage, terminated};
use kv_smt::{Reply, Request};
use smt::{ClientAuth, Identity, Server, Trust};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = ServerArguments::parse();
    let identity = Identity::from_pem_files(&arguments.cert, &arguments.key)?;
    let clients = Trust::roots_from_pem_files(&[&arguments.ca])?;
    let server = smt::server(identity)
        .client_auth(ClientAuth::Required(clients))
        .bind(arguments.listen.as_str())
        .await?;
    let terminated = terminated()?;
    println!("listening on {}", server.local_address());

    tokio::spawn(serve(server.clone(), Arc::new(Storage::new(&arguments))));
    terminated.await;
    server.close(SHUTDOWN_LIMIT).await;
    Ok(())
}

async fn serve(server: Server, storage: Arc<Storage>) {
    while let Some(request) = server.accept_request().await {
        tokio::spawn(answer(request, Arc::clone(&storage)));
    }
}

async fn answer(request: smt::Request, storage: Arc<Storage>) {
    let outcome = tokio::select! {
        outcome = perform(&request, &storage) => outcome,
        () = request.cancelled() => return,
    };
    match outcome {
        Ok(reply) => {
            if let Err(error) = request.reply(reply) {
                eprintln!("{error}");
            }
        }
        Err(Refusal { code, text }) => request.refuse(code, text),
    }
}

async fn perform(request: &smt::Request, storage: &Storage) -> Result<Vec<u8>, Refusal> {
    let malformed = |error: postcard::Error| Refusal {
        code: Refusal::INVALID_ARGUMENT,
        text: error.to_string(),
    };
    let caller = request.peer().certificate().and_then(|shown| shown.common_name.as_deref());
    let caller = caller.unwrap_or_default();
    let reply = match postcard::from_bytes(request.body()).map_err(malformed)? {
        Request::Get { key } => Reply::Value(storage.get(&key).await),
        Request::Set { key, value } => {
            storage.set(caller, key, value).await?;
            Reply::Stored
        }
        Request::Delete { key } => Reply::Deleted(storage.delete(caller, &key).await?),
        Request::List { prefix } => Reply::Keys(storage.list(&prefix).await),
    };
    postcard::to_allocvec(&reply).map_err(malformed)
}

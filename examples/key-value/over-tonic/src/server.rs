// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value server over gRPC.

use std::error::Error;

use common::{Parser, Refusal, SHUTDOWN_LIMIT, ServerArguments, Storage, common_name, terminated};
use kv_tonic::key_value_server::{KeyValue, KeyValueServer};
use kv_tonic::{
    DeleteReply, DeleteRequest, GetReply, GetRequest, ListReply, ListRequest, SetReply, SetRequest,
};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};
use tonic::{Code, Request, Response, Status};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = ServerArguments::parse();
    let listener = TcpListener::bind(&arguments.listen).await?;
    let terminated = terminated()?;
    println!("listening on {}", listener.local_addr()?);

    let service = KeyValueServer::new(Service { storage: Storage::new(&arguments) })
        .max_decoding_message_size(Storage::MESSAGE_MAX)
        .max_encoding_message_size(Storage::MESSAGE_MAX);
    let (end, ended) = oneshot::channel();
    let serving = Server::builder()
        .tls_config(tls(&arguments)?)?
        .add_service(service)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), async {
            let _ = ended.await;
        });
    let mut serving = tokio::spawn(serving);
    tokio::select! {
        served = &mut serving => return Ok(served??),
        () = terminated => {}
    }
    let _ = end.send(());
    if let Ok(served) = tokio::time::timeout(SHUTDOWN_LIMIT, serving).await {
        served??;
    }
    Ok(())
}

fn tls(arguments: &ServerArguments) -> Result<ServerTlsConfig, Box<dyn Error>> {
    let chain = std::fs::read(&arguments.cert)?;
    let key = std::fs::read(&arguments.key)?;
    let clients = std::fs::read(&arguments.ca)?;
    Ok(ServerTlsConfig::new()
        .identity(Identity::from_pem(chain, key))
        .client_ca_root(Certificate::from_pem(clients)))
}

struct Service {
    storage: Storage,
}

#[tonic::async_trait]
impl KeyValue for Service {
    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetReply>, Status> {
        let value = self.storage.get(&request.get_ref().key).await;
        Ok(Response::new(GetReply { value }))
    }

    async fn set(&self, request: Request<SetRequest>) -> Result<Response<SetReply>, Status> {
        let caller = caller(&request);
        let SetRequest { key, value } = request.into_inner();
        let stored = self.storage.set(&caller, key, value).await;
        stored.map_err(status)?;
        Ok(Response::new(SetReply {}))
    }

    async fn delete(
        &self,
        request: Request<DeleteRequest>,
    ) -> Result<Response<DeleteReply>, Status> {
        let caller = caller(&request);
        let deleted = self.storage.delete(&caller, &request.get_ref().key).await;
        let was_there = deleted.map_err(status)?;
        Ok(Response::new(DeleteReply { was_there }))
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListReply>, Status> {
        let keys = self.storage.list(&request.get_ref().prefix).await;
        Ok(Response::new(ListReply { keys }))
    }
}

fn caller<T>(request: &Request<T>) -> String {
    let chain = request.peer_certs().unwrap_or_default();
    let leaf = chain.first();
    leaf.map(|leaf| common_name(leaf)).unwrap_or_default()
}

fn status(Refusal { code, text }: Refusal) -> Status {
    Status::new(Code::from(code.cast_signed()), text)
}

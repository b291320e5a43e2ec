// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key-value server over QUIC.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use common::{Parser, Refusal, SHUTDOWN_LIMIT, ServerArguments, Storage, common_name, terminated};
use kv_quinn::{ALPN, Reply, Request, SHUTTING_DOWN, credentials, transport};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, Incoming, RecvStream, SendStream, ServerConfig};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = ServerArguments::parse();
    let listen: SocketAddr = arguments.listen.parse()?;
    let endpoint = Endpoint::server(config(&arguments)?, listen)?;
    let terminated = terminated()?;
    println!("listening on {}", endpoint.local_addr()?);

    let service = Service {
        storage: Arc::new(Storage::new(&arguments)),
        requests: TaskTracker::new(),
        shutdown: CancellationToken::new(),
    };
    tokio::spawn(serve(endpoint.clone(), service.clone()));
    terminated.await;
    endpoint.set_server_config(None);
    service.shutdown.cancel();
    service.requests.close();
    let _ = tokio::time::timeout(SHUTDOWN_LIMIT, service.requests.wait()).await;
    endpoint.close(SHUTTING_DOWN, b"shutting down");
    endpoint.wait_idle().await;
    Ok(())
}

fn config(arguments: &ServerArguments) -> Result<ServerConfig, Box<dyn Error>> {
    let (roots, chain, key) = credentials(&arguments.ca, &arguments.cert, &arguments.key)?;
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
    let mut tls = rustls::ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    Ok(config)
}

#[derive(Clone)]
struct Service {
    storage: Arc<Storage>,
    requests: TaskTracker,
    shutdown: CancellationToken,
}

async fn serve(endpoint: Endpoint, service: Service) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(serve_connection(incoming, service.clone()));
    }
}

async fn serve_connection(incoming: Incoming, service: Service) {
    let connection = match incoming.await {
        Ok(connection) => connection,
        Err(error) => return eprintln!("{error}"),
    };
    let caller: Arc<str> = caller(&connection).into();
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        if service.shutdown.is_cancelled() {
            let _ = recv.stop(SHUTTING_DOWN);
            let _ = send.reset(SHUTTING_DOWN);
            continue;
        }
        let (storage, caller) = (Arc::clone(&service.storage), Arc::clone(&caller));
        service.requests.spawn(async move {
            if let Err(error) = answer(send, recv, &storage, &caller).await {
                eprintln!("{error}");
            }
        });
    }
}

fn caller(connection: &Connection) -> String {
    let identity = connection.peer_identity();
    let chain = identity.and_then(|chain| chain.downcast::<Vec<CertificateDer<'static>>>().ok());
    let leaf = chain.as_ref().and_then(|chain| chain.first());
    leaf.map(|leaf| common_name(leaf)).unwrap_or_default()
}

async fn answer(
    mut send: SendStream,
    mut recv: RecvStream,
    storage: &Storage,
    caller: &str,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let request = recv.read_to_end(Storage::MESSAGE_MAX).await?;
    let reply = tokio::select! {
        reply = perform(&request, storage, caller) => reply,
        _ = send.stopped() => return Ok(()),
    };
    let reply = reply.unwrap_or_else(|Refusal { code, text }| Reply::Refused { code, text });
    send.write_all(&postcard::to_allocvec(&reply)?).await?;
    send.finish()?;
    // The connection may be closed once the reply has arrived.
    send.stopped().await?;
    Ok(())
}

async fn perform(request: &[u8], storage: &Storage, caller: &str) -> Result<Reply, Refusal> {
    let malformed = |error: postcard::Error| Refusal {
        code: Refusal::INVALID_ARGUMENT,
        text: error.to_string(),
    };
    Ok(match postcard::from_bytes(request).map_err(malformed)? {
        Request::Get { key } => Reply::Value(storage.get(&key).await),
        Request::Set { key, value } => {
            storage.set(caller, key, value).await?;
            Reply::Stored
        }
        Request::Delete { key } => Reply::Deleted(storage.delete(caller, &key).await?),
        Request::List { prefix } => Reply::Keys(storage.list(&prefix).await),
    })
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers the requests of all connections.

use std::sync::Arc;

use kit_process::request::{PIECE_MAX, RequestReader, content};
use kit_process::{Doing, Failure, ServerOptions, Usage, lines, tls};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, RecvStream, SendStream, ServerConfig};

use crate::counts::Total;
use crate::transport::{endpoint, transport};

/// Serves until the input ends.
pub(crate) fn run(options: &ServerOptions) -> Result<(), Failure> {
    let provider = tls::provider(options.stack.cipher);
    let config = tls::server_config(provider, &options.certificate, &options.key)?;
    let config = QuicServerConfig::try_from(config).doing("configuring QUIC")?;
    let mut config = ServerConfig::with_crypto(Arc::new(config));
    config.transport_config(transport(&options.stack)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("beginning the runtime")?;
    runtime.block_on(async {
        let endpoint = endpoint(options.listen, Some(config))?;
        let address = endpoint.local_addr().doing("asking for the address")?;
        let total = Total::default();
        lines::listening(address);
        let (since, counted) = (Usage::now(), total.clone());
        std::thread::spawn(move || lines::report_until_end(&since, || counted.get()));
        while let Some(incoming) = endpoint.accept().await {
            let total = total.clone();
            tokio::spawn(async move {
                match incoming.await {
                    Ok(connection) => {
                        answer_all(&connection).await;
                        total.add(&connection);
                    }
                    Err(error) => eprintln!("kit-quinn: a handshake failed: {error}"),
                }
            });
        }
        Ok(())
    })
}

async fn answer_all(connection: &Connection) {
    // A connection that ends is a client that has finished.
    while let Ok((sending, receiving)) = connection.accept_bi().await {
        tokio::spawn(async move {
            if let Err(failure) = answer(sending, receiving).await {
                eprintln!("kit-quinn: {failure}");
            }
        });
    }
}

async fn answer(mut sending: SendStream, mut receiving: RecvStream) -> Result<(), Failure> {
    let mut reader = RequestReader::default();
    while let Some(chunk) =
        receiving.read_chunk(PIECE_MAX, true).await.doing("reading a request")?
    {
        reader.take(&chunk.bytes);
    }
    let request = reader.finish();
    let request = request.ok_or_else(|| Failure::new("a stream holds no request"))?;
    let mut offset = 0;
    while offset < request.download {
        let piece = content(offset, request.download);
        sending.write_all(piece).await.doing("answering")?;
        offset += piece.len() as u64;
    }
    sending.finish().doing("ending an answer")
}

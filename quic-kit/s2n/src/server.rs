// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers the requests of all connections.

use std::sync::Arc;

use bytes::Bytes;
use kit_process::request::{RequestReader, content};
use kit_process::{Doing, Failure, ServerOptions, Usage, lines, tls};
use s2n_quic::provider::tls::rustls as s2n_tls;
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic::{Connection, Server};

use crate::events::Total;
use crate::settings::{io, limits};

/// Serves until the input ends.
pub(crate) fn run(options: &ServerOptions) -> Result<(), Failure> {
    let provider = tls::provider(options.stack.cipher);
    let config = tls::server_config(provider, &options.certificate, &options.key)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("beginning the runtime")?;
    runtime.block_on(async {
        let total = Total::default();
        let mut server = Server::builder()
            .with_tls(s2n_tls::Server::from(Arc::new(config)))
            .doing("setting TLS")?
            .with_io(io(&options.stack, options.listen)?)
            .doing("setting the socket")?
            .with_limits(limits()?)
            .doing("setting limits")?
            .with_event(total.clone())
            .doing("setting events")?
            .start()
            .doing("beginning the server")?;
        let address = server.local_addr().doing("asking for the address")?;
        lines::listening(address);
        let since = Usage::now();
        std::thread::spawn(move || lines::report_until_end(&since, || total.get()));
        while let Some(connection) = server.accept().await {
            tokio::spawn(answer_all(connection));
        }
        Ok(())
    })
}

async fn answer_all(mut connection: Connection) {
    // A connection that ends is a client that has finished.
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(async move {
            let (receiving, sending) = stream.split();
            if let Err(failure) = answer(receiving, sending).await {
                eprintln!("kit-s2n: {failure}");
            }
        });
    }
}

async fn answer(mut receiving: ReceiveStream, mut sending: SendStream) -> Result<(), Failure> {
    let mut reader = RequestReader::default();
    while let Some(piece) = receiving.receive().await.doing("reading a request")? {
        reader.take(&piece);
    }
    let request = reader.finish();
    let request = request.ok_or_else(|| Failure::new("a stream holds no request"))?;
    let mut offset = 0;
    while offset < request.download {
        let piece = content(offset, request.download);
        offset += piece.len() as u64;
        // Bytes that live as long as the process are not copied.
        let piece = Bytes::from_static(piece);
        sending.send(piece).await.doing("answering")?;
    }
    sending.finish().doing("ending an answer")
}

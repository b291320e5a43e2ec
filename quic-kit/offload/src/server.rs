// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server of the kit: quinn's endpoint over a socket with the device below it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use kit_process::request::{PIECE_MAX, RequestReader, content};
use kit_process::{Counts, Doing, Failure, ServerOptions, Usage, lines, socket, tls};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, Endpoint, EndpointConfig, RecvStream, Runtime, SendStream, ServerConfig,
    TokioRuntime,
};

use crate::capture::capturing;
use crate::device::{Device, DeviceConfig};
use crate::session::LinkedServerConfig;
use crate::socket::{OffloadedSocket, SharedDevice};

/// An endpoint that accepts connections by a TLS configuration whose provider is a captured one.
///
/// # Errors
/// The configuration, or the system's.
pub fn endpoint(
    listen: SocketAddr,
    of_tls: rustls::ServerConfig,
    transport: Arc<quinn::TransportConfig>,
    config: EndpointConfig,
    device: &SharedDevice,
) -> Result<Endpoint, Failure> {
    let library = QuicServerConfig::try_from(of_tls).doing("configuring QUIC")?;
    let mut server = ServerConfig::with_crypto(Arc::new(LinkedServerConfig {
        library: Arc::new(library),
        links: device.links().clone(),
    }));
    server.transport_config(transport);
    let bound = UdpSocket::bind(listen).doing("binding the socket")?;
    socket::enlarge(&bound);
    let runtime = Arc::new(TokioRuntime);
    let inner = runtime.wrap_udp_socket(bound).doing("making the socket")?;
    let inner = OffloadedSocket::new(inner, device.clone());
    Endpoint::new_with_abstract_socket(config, Some(server), Arc::new(inner), runtime)
        .doing("making the endpoint")
}

/// Serves until the input ends.
///
/// # Errors
/// A file, the socket or a setting.
pub fn run(options: &ServerOptions, device: DeviceConfig) -> Result<(), Failure> {
    let provider = capturing(tls::provider(options.stack.cipher));
    let of_tls = tls::server_config(provider, &options.certificate, &options.key)?;
    let device = SharedDevice::new(Device::new(device)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("beginning the runtime")?;
    runtime.block_on(async {
        let transport = Arc::new(crate::client::transport(&options.stack)?);
        let endpoint =
            endpoint(options.listen, of_tls, transport, EndpointConfig::default(), &device)?;
        lines::listening(endpoint.local_addr().doing("asking for the address")?);
        let since = Usage::now();
        std::thread::spawn(move || lines::report_until_end(&since, || counts(&device)));
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                match incoming.await {
                    Ok(connection) => answer_all(&connection).await,
                    Err(error) => eprintln!("kit-offload: a handshake failed: {error}"),
                }
            });
        }
        Ok(())
    })
}

/// The fields of a report.
#[must_use]
pub fn counts(device: &SharedDevice) -> Counts {
    let counts = device.counts();
    Counts {
        eligible: Some(counts.eligible),
        opened: Some(counts.opened),
        sealed: Some(counts.sealed),
        ..Counts::default()
    }
}

/// Answers the requests of a connection until it ends.
pub async fn answer_all(connection: &Connection) {
    // A connection that ends is a client that has finished.
    while let Ok((sending, receiving)) = connection.accept_bi().await {
        tokio::spawn(async move {
            if let Err(failure) = answer(sending, receiving).await {
                eprintln!("kit-offload: {failure}");
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

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! QUIC by quinn: a stream for each call, one connection for all.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig,
    TokioRuntime, TransportConfig, VarInt,
};

use super::{Newcomer, Peer, Shape};
use crate::certificates::SERVER_NAME;
use crate::failure::Failure;
use crate::frame::ZEROS_BYTES;
use crate::job::Setting;
use crate::load::{Callers, TaskCaller, Tasks, deal, runtime};
use crate::{frame, server, tls};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quinn;

impl Peer for Quinn {
    fn name(&self) -> &'static str {
        "quinn"
    }

    fn settings(&self) -> &'static str {
        "QUIC by quinn; current-thread runtimes; one connection, a stream per call; 4 MB socket buffers; windows of 16 MB; \
         as many streams as calls, at least 100; MTU discovery up to the path's, at most 6,500 (ten segments of one send must fit 64 KB); GSO and GRO"
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let config = tls::server_config(&setting.directory, ALPN)?;
        let config = QuicServerConfig::try_from(config)?;
        let mut config = ServerConfig::with_crypto(Arc::new(config));
        config.transport_config(transport(setting));
        runtime(setting.on_tokio.flavor)?.block_on(async {
            let endpoint = endpoint(setting, address, Some(config))?;
            server::listening(endpoint.local_addr()?)?;
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        answer_all(connection).await;
                    }
                });
            }
            Ok(())
        })
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let (runtime, config) = (runtime(setting.on_tokio.flavor)?, client_config(setting)?);
        let connections = runtime.block_on(async {
            let endpoint = endpoint(setting, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), None)?;
            let mut connections = Vec::new();
            for _ in 0..shape.connections_shared() {
                let connecting = endpoint.connect_with(config.clone(), server, SERVER_NAME)?;
                let mut caller =
                    Caller { connection: connecting.await?, _endpoint: endpoint.clone() };
                caller.call(&frame::request(64, 64)).await?;
                connections.push(caller);
            }
            Ok::<_, Failure>(connections)
        })?;
        Ok(Box::new(Tasks::new(runtime, deal(connections, shape.callers))))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let (runtime, config) = (runtime(setting.on_tokio.flavor)?, client_config(setting)?);
        let endpoint = runtime.block_on(async {
            endpoint(setting, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), None)
        })?;
        let request = frame::request(64, 64);
        Ok(Box::new(move || {
            runtime.block_on(async {
                let connecting = endpoint.connect_with(config.clone(), server, SERVER_NAME)?;
                let mut caller =
                    Caller { connection: connecting.await?, _endpoint: endpoint.clone() };
                caller.call(&request).await?;
                caller.connection.close(VarInt::from_u32(0), b"");
                Ok(())
            })
        }))
    }
}

async fn answer_all(connection: Connection) {
    // A connection that ends is a client that has finished.
    while let Ok((mut sending, mut receiving)) = connection.accept_bi().await {
        tokio::spawn(async move {
            let Ok(request) = receiving.read_to_end(ZEROS_BYTES).await else {
                return;
            };
            if sending.write_chunk(frame::answer(request.into())).await.is_ok() {
                let _ = sending.finish();
            }
        });
    }
}

#[derive(Clone)]
struct Caller {
    connection: Connection,
    /// A connection needs its endpoint.
    _endpoint: Endpoint,
}

impl TaskCaller for Caller {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        let (mut sending, mut receiving) = self.connection.open_bi().await?;
        sending.write_chunk(request.clone()).await?;
        sending.finish()?;
        Ok(receiving.read_to_end(ZEROS_BYTES).await?.len())
    }
}

fn client_config(setting: &Setting) -> Result<ClientConfig, Failure> {
    let config = tls::client_config(&setting.directory, ALPN)?;
    let config = QuicClientConfig::try_from(config)?;
    let mut config = ClientConfig::new(Arc::new(config));
    config.transport_config(transport(setting));
    Ok(config)
}

fn endpoint(
    setting: &Setting,
    address: SocketAddr,
    server: Option<ServerConfig>,
) -> Result<Endpoint, Failure> {
    let socket = UdpSocket::bind(address)?;
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BYTES)?;
    rustix::net::sockopt::set_socket_send_buffer_size(&socket, SOCKET_BYTES)?;
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(datagram_max(setting))?;
    Ok(Endpoint::new(config, server, socket, Arc::new(TokioRuntime))?)
}

fn transport(setting: &Setting) -> Arc<TransportConfig> {
    // Room for streams is made at once: more of it than needed costs memory and time.
    let streams = setting.callers.max(STREAMS_DEFAULT);
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(datagram_max(setting));
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
        .receive_window(VarInt::from_u32(WINDOW_BYTES))
        .send_window(u64::from(WINDOW_BYTES))
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
        .keep_alive_interval(None::<Duration>)
        .mtu_discovery_config(Some(discovery));
    Arc::new(transport)
}

/// The path's, but quinn sends up to ten at once, and the kernel takes 65,507 bytes at once.
fn datagram_max(setting: &Setting) -> u16 {
    setting.mtu.saturating_sub(28).min(6_500) as u16
}

const ALPN: &[u8] = b"smt-bench";
/// quinn's own choice.
const STREAMS_DEFAULT: u32 = 100;
const WINDOW_BYTES: u32 = 16 << 20;
const SOCKET_BYTES: usize = 4 << 20;
/// Connections that wait for their turn are to live.
const IDLE_MS: u32 = 600_000;

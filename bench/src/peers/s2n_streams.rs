// SPDX-License-Identifier: Apache-2.0 OR MIT
//! QUIC by s2n-quic: a stream for each call, one connection for all.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::io::tokio::Provider as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls as s2n_tls;
use s2n_quic::stream::ReceiveStream;
use s2n_quic::{Client, Connection, Server};

use super::{Newcomer, Peer, Shape};
use crate::certificates::SERVER_NAME;
use crate::failure::{Doing, Failure};
use crate::job::Setting;
use crate::load::{Callers, TaskCaller, Tasks, deal, runtime};
use crate::{frame, server, tls};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct S2n;

impl Peer for S2n {
    fn name(&self) -> &'static str {
        "s2n-quic"
    }

    fn settings(&self) -> &'static str {
        "QUIC by s2n-quic with its rustls provider; current-thread runtimes; one connection, a stream per call; 4 MB socket \
         buffers; windows of 16 MB; 4,096 streams; max_mtu the path's, at most 9,001; GSO and GRO"
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        let config = tls::server_config(&setting.directory, ALPN)?;
        runtime(setting.on_tokio.flavor)?.block_on(async {
            let mut server = Server::builder()
                .with_tls(s2n_tls::Server::from(Arc::new(config)))
                .map_err(never)?
                .with_io(io(setting, address)?)
                .map_err(never)?
                .with_limits(limits()?)
                .map_err(never)?
                .start()?;
            server::listening(server.local_addr()?)?;
            while let Some(connection) = server.accept().await {
                tokio::spawn(answer_all(connection));
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
        let runtime = runtime(setting.on_tokio.flavor)?;
        let connections = runtime.block_on(async {
            let client = client(setting)?;
            let mut connections = Vec::new();
            for _ in 0..shape.connections_shared() {
                connections.push(Caller::connect(&client, server).await?);
            }
            Ok::<_, Failure>(connections)
        })?;
        Ok(Box::new(Tasks::new(runtime, deal(connections, shape.callers))))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let runtime = runtime(setting.on_tokio.flavor)?;
        let client = runtime.block_on(async { client(setting) })?;
        Ok(Box::new(move || {
            runtime.block_on(async {
                let caller = Caller::connect(&client, server).await?;
                caller.handle.close(0_u32.into());
                Ok(())
            })
        }))
    }
}

async fn answer_all(mut connection: Connection) {
    // A connection that ends is a client that has finished.
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(async move {
            let (receiving, mut sending) = stream.split();
            if let Ok(request) = receive_all(receiving).await
                && sending.send(frame::answer(request)).await.is_ok()
            {
                let _ = sending.finish();
            }
        });
    }
}

#[derive(Clone)]
struct Caller {
    handle: Handle,
    _client: Client,
}

impl Caller {
    /// Has made one call when it returns.
    async fn connect(client: &Client, server: SocketAddr) -> Result<Self, Failure> {
        let connect = Connect::new(server).with_server_name(SERVER_NAME);
        let (handle, _) = client.connect(connect).await?.split();
        let mut caller = Self { handle, _client: client.clone() };
        caller.call(&frame::request(64, 64)).await?;
        Ok(caller)
    }
}

impl TaskCaller for Caller {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        let stream = self.handle.open_bidirectional_stream().await?;
        let (receiving, mut sending) = stream.split();
        sending.send(request.clone()).await?;
        sending.finish()?;
        Ok(receive_all(receiving).await?.len())
    }
}

/// One piece is not copied, several are.
async fn receive_all(mut receiving: ReceiveStream) -> Result<Bytes, Failure> {
    let mut whole = receiving.receive().await?.unwrap_or_default();
    let mut gathered = Vec::new();
    while let Some(piece) = receiving.receive().await? {
        if gathered.is_empty() {
            gathered.extend_from_slice(&whole);
        }
        gathered.extend_from_slice(&piece);
    }
    if !gathered.is_empty() {
        whole = gathered.into();
    }
    Ok(whole)
}

fn client(setting: &Setting) -> Result<Client, Failure> {
    let config = tls::client_config(&setting.directory, ALPN)?;
    let client = Client::builder()
        .with_tls(s2n_tls::Client::from(Arc::new(config)))
        .map_err(never)?
        .with_io(io(setting, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?)
        .map_err(never)?
        .with_limits(limits()?)
        .map_err(never)?
        .start()?;
    Ok(client)
}

fn io(setting: &Setting, address: SocketAddr) -> Result<Io, Failure> {
    Io::builder()
        .with_receive_address(address)?
        .with_recv_buffer_size(SOCKET_BYTES)?
        .with_send_buffer_size(SOCKET_BYTES)?
        .with_max_mtu(setting.mtu.min(MTU_MAX) as u16)?
        .build()
        .doing("opening s2n-quic's socket")
}

fn limits() -> Result<Limits, Failure> {
    Ok(Limits::new()
        .with_data_window(WINDOW_BYTES)?
        .with_bidirectional_local_data_window(WINDOW_BYTES)?
        .with_bidirectional_remote_data_window(WINDOW_BYTES)?
        .with_max_send_buffer_size(WINDOW_BYTES as u32)?
        .with_max_open_local_bidirectional_streams(STREAMS)?
        .with_max_open_remote_bidirectional_streams(STREAMS)?
        .with_max_idle_timeout(IDLE)?)
}

fn never(error: impl Display) -> Failure {
    Failure::new(error.to_string())
}

const ALPN: &[u8] = b"smt-bench";
/// With no more than calls, one waits for a delayed acknowledgement until it may open the next.
const STREAMS: u64 = 4_096;
const WINDOW_BYTES: u64 = 16 << 20;
const SOCKET_BYTES: usize = 4 << 20;
const MTU_MAX: u32 = 9_001;
/// Connections that wait for their turn are to live.
const IDLE: Duration = Duration::from_secs(600);

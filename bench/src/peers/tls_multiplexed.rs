// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One TLS connection for all outstanding calls, on tokio: at the client a task for each call; on
//! both sides one that reads (the server's also answers), and one that writes all frames that are
//! ready at once.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use foldhash::HashMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::server::TlsStream;

use super::tls_tokio::{Accept, Dial, serve};
use super::{Newcomer, Peer, Shape};
use crate::failure::Failure;
use crate::frame;
use crate::job::{Handlers, Setting};
use crate::load::{Callers, TaskCaller, Tasks, deal, runtime};

/// The peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlsMultiplexed;

impl Peer for TlsMultiplexed {
    fn name(&self) -> &'static str {
        "tls-multiplexed"
    }

    fn settings(&self) -> &'static str {
        "TLS/TCP by tokio-rustls; current-thread runtimes; one connection; a task per call at the client, on both sides one that reads (the server's answers) and \
         one that writes all frames that are ready; NODELAY; reads of 64 KB"
    }

    fn serve(&self, setting: &Setting, address: SocketAddr) -> Result<(), Failure> {
        runtime(setting.on_tokio.flavor)?.block_on(serve(
            Accept::new(setting)?,
            address,
            match setting.on_tokio.handlers {
                Handlers::Inline => {
                    |stream, read_bytes| answer_all(stream, read_bytes, Handlers::Inline)
                }
                Handlers::Spawned => {
                    |stream, read_bytes| answer_all(stream, read_bytes, Handlers::Spawned)
                }
            },
        ))
    }

    fn connect(
        &self,
        setting: &Setting,
        server: SocketAddr,
        shape: Shape,
    ) -> Result<Box<dyn Callers>, Failure> {
        let (runtime, dial) = (runtime(setting.on_tokio.flavor)?, Dial::new(setting, server)?);
        let connections = runtime.block_on(async {
            let mut connections = Vec::new();
            for _ in 0..shape.connections_shared() {
                connections.push(Handle::connect(&dial).await?);
            }
            Ok::<_, Failure>(connections)
        })?;
        Ok(Box::new(Tasks::new(runtime, deal(connections, shape.callers))))
    }

    fn newcomer(&self, setting: &Setting, server: SocketAddr) -> Result<Newcomer, Failure> {
        let (runtime, dial) = (runtime(setting.on_tokio.flavor)?, Dial::new(setting, server)?);
        Ok(Box::new(move || runtime.block_on(Handle::connect(&dial)).map(drop)))
    }
}

/// The queue of a writing task: number and body of each message.
type Outgoing = mpsc::UnboundedSender<(u32, Bytes)>;
type Waiting = Mutex<HashMap<u32, oneshot::Sender<Bytes>>>;

/// A connection as callers see it.
#[derive(Clone)]
struct Handle {
    outgoing: Outgoing,
    waiting: Arc<Waiting>,
    next: Arc<AtomicU32>,
}

impl Handle {
    /// Has made one call when it returns.
    async fn connect(dial: &Dial) -> Result<Self, Failure> {
        let (reader, writer) = tokio::io::split(dial.connect().await?);
        let (outgoing, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        tokio::spawn(write_all_ready(writer, queue));
        tokio::spawn(take_replies(reader, Arc::clone(&waiting), dial.read_bytes));
        let mut handle = Self { outgoing, waiting, next: Arc::default() };
        handle.call(&frame::request(64, 64)).await?;
        Ok(handle)
    }
}

impl TaskCaller for Handle {
    async fn call(&mut self, request: &Bytes) -> Result<usize, Failure> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, reply) = oneshot::channel();
        lock(&self.waiting).insert(number, sender);
        self.outgoing.send((number, request.clone()))?;
        Ok(reply.await?.len())
    }
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, HashMap<u32, oneshot::Sender<Bytes>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn take_replies(
    reader: impl AsyncRead + Unpin,
    waiting: Arc<Waiting>,
    read_bytes: usize,
) -> io::Result<()> {
    read_frames(reader, read_bytes, |number, body| {
        let caller = lock(&waiting).remove(&number);
        if let Some(caller) = caller {
            // A caller that has gone wants no reply.
            let _ = caller.send(body);
        }
    })
    .await
}

async fn answer_all(
    stream: TlsStream<BufReader<TcpStream>>,
    read_bytes: usize,
    handlers: Handlers,
) -> io::Result<()> {
    let (reader, writer) = tokio::io::split(stream);
    let (outgoing, queue): (Outgoing, _) = mpsc::unbounded_channel();
    tokio::spawn(write_all_ready(writer, queue));
    read_frames(reader, read_bytes, |number, body| {
        let outgoing = outgoing.clone();
        let answer = move || {
            // The connection may have ended.
            let _ = outgoing.send((number, frame::answer(body)));
        };
        match handlers {
            Handlers::Inline => answer(),
            Handlers::Spawned => drop(tokio::spawn(async move { answer() })),
        }
    })
    .await
}

/// Reads until the connection ends.
async fn read_frames(
    mut reader: impl AsyncRead + Unpin,
    read_bytes: usize,
    mut take: impl FnMut(u32, Bytes),
) -> io::Result<()> {
    let mut come = BytesMut::new();
    loop {
        come.reserve(frame::missing(&come).max(read_bytes));
        if reader.read_buf(&mut come).await? == 0 {
            return Ok(());
        }
        while let Some((number, body)) = frame::first_numbered(&come) {
            let frame = come.split_to(body.end).freeze();
            take(number, frame.slice(body));
        }
    }
}

/// Ends with the last handle of its queue.
async fn write_all_ready(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<(u32, Bytes)>,
) -> io::Result<()> {
    let (mut ready, mut out) = (Vec::new(), Vec::new());
    while queue.recv_many(&mut ready, FRAMES_AT_ONCE).await > 0 {
        for (number, body) in ready.drain(..) {
            out.extend_from_slice(&frame::numbered(body.len(), number));
            out.extend_from_slice(&body);
            if out.len() >= WRITE_BYTES {
                writer.write_all(&out).await?;
                out.clear();
            }
        }
        writer.write_all(&out).await?;
        out.clear();
        writer.flush().await?;
    }
    Ok(())
}

/// More frames wait for the next write.
const FRAMES_AT_ONCE: usize = 1_024;
/// Sealed and given to the socket at once; more would only need more memory.
const WRITE_BYTES: usize = 256 * 1024;

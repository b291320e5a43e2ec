// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of one client and of its session, both ways.

use std::io;

use smt_valkey::Stream;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use crate::listener::Local;

/// Why bytes go no further.
#[derive(Debug)]
pub(crate) enum Cut {
    /// The client's connection has failed.
    Local(io::Error),
    /// The session has failed.
    Remote(io::Error),
}

/// Carries bytes until the server ends the connection. A client that writes no more still reads.
pub(crate) async fn relay(local: &mut Box<dyn Local>, remote: Stream) -> Result<(), Cut> {
    let (mut local_in, mut local_out) = split(local);
    let (mut remote_in, mut remote_out) = split(remote);
    let up = carry(&mut local_in, &mut remote_out, Cut::Local, Cut::Remote);
    let down = carry(&mut remote_in, &mut local_out, Cut::Remote, Cut::Local);
    tokio::pin!(up, down);
    tokio::select! {
        outcome = &mut up => outcome?,
        outcome = &mut down => return outcome,
    }
    down.await
}

/// Carries bytes one way until their end, and tells it. Bytes that were read at once leave at once.
async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    read_failed: fn(io::Error) -> Cut,
    write_failed: fn(io::Error) -> Cut,
) -> Result<(), Cut> {
    let mut bytes = vec![0; AT_ONCE];
    loop {
        let length = from.read(&mut bytes).await.map_err(read_failed)?;
        if length == 0 {
            return to.shutdown().await.map_err(write_failed);
        }
        to.write_all(&bytes[..length]).await.map_err(write_failed)?;
        to.flush().await.map_err(write_failed)?;
    }
}

/// Most bytes of a read.
const AT_ONCE: usize = 128 << 10;

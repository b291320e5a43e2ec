// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of a server.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

/// How long a server that ends waits for what is in progress.
pub const SHUTDOWN_LIMIT: Duration = Duration::from_secs(30);

/// From now on SIGTERM does not end the process: it makes the future ready.
///
/// # Errors
/// The system does not let this process handle the signal.
pub fn terminated() -> io::Result<impl Future<Output = ()>> {
    let mut signals = signal(SignalKind::terminate())?;
    Ok(async move {
        signals.recv().await;
        println!("shutting down");
    })
}

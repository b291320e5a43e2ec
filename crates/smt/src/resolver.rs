// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resolves names of servers, in threads of their own: the system's resolver blocks, and no runtime
//! is needed for it.

use std::sync::Weak;
#[cfg(feature = "async")]
use std::{
    future::poll_fn,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

#[cfg(feature = "async")]
use crate::builder::Address;
use crate::driver::Driver;
use crate::error::ErrorKind;
#[cfg(feature = "async")]
use crate::error::OpenError;
use crate::servers::ToResolve;

/// Resolves a name, and tells the endpoint of it, if that is still there.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn resolve(driver: Weak<Driver>, of: ToResolve) -> std::io::Result<()> {
    let thread = std::thread::Builder::new().name("smt-resolver".to_owned());
    let resolving = move || {
        let found = of.address.resolve();
        let found = found.map_err(|reason| ErrorKind::Unresolved(reason.to_string()));
        if let Some(driver) = driver.upgrade() {
            driver.change(|state, now| state.resolved(now, &of, found));
        }
    };
    thread.spawn(resolving).map(drop)
}

/// Resolves the address of an endpoint's own.
///
/// # Errors
/// The system gives no thread, or the address does not resolve.
#[cfg(feature = "async")]
pub(crate) async fn resolve_to_bind(address: Address) -> Result<SocketAddr, OpenError> {
    let resolution = Arc::new(Mutex::new(Resolution::default()));
    let resolving = {
        let resolution = Arc::clone(&resolution);
        move || {
            let found = address.to_bind();
            let mut resolution = resolution.lock().unwrap_or_else(PoisonError::into_inner);
            resolution.found = Some(found);
            let waiting = resolution.waiting.take();
            drop(resolution);
            waiting.into_iter().for_each(Waker::wake);
        }
    };
    let thread = std::thread::Builder::new().name("smt-resolver".to_owned());
    thread
        .spawn(resolving)
        .map_err(|reason| OpenError::System { what: "resolving the address", reason })?;
    poll_fn(|context| {
        let mut resolution = resolution.lock().unwrap_or_else(PoisonError::into_inner);
        match resolution.found.take() {
            Some(found) => Poll::Ready(found),
            None => {
                resolution.waiting = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

/// The address that a resolving thread has found, and the task that waits for it.
#[cfg(feature = "async")]
#[derive(Default)]
struct Resolution {
    found: Option<Result<SocketAddr, OpenError>>,
    waiting: Option<Waker>,
}

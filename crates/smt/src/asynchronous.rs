// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints, clients and servers for tasks.
//!
//! A future that `block_on` polls drives its endpoint (`leading`), else one task does
//! (`driver::background`); handles are cheap to clone. Every future here may be dropped at any
//! time: a call that is dropped is cancelled, an accept that is dropped loses nothing.

mod accept;
mod call;
mod client;
mod close;
mod endpoint;
mod leading;
mod server;
mod spinners;
mod task_driver;
mod time_limit;
#[cfg(feature = "tower")]
mod tower_service;

use std::task::{Poll, Waker};

use smt_proto::Time;

pub use call::{CallBuilder, CallFuture, ReplyFuture, SendBuilder, SendFuture};
pub use client::Client;
pub use endpoint::Endpoint;
pub use server::Server;

use leading::Leading;
pub(crate) use task_driver::spawn_driver;

use crate::driver::Driver;
use crate::endpoint_state::EndpointState;

/// A future of anything that waits in the endpoint's state.
pub(crate) async fn polled<T>(
    driver: &Driver,
    mut poll: impl FnMut(&mut EndpointState, Time, &Waker) -> Poll<T>,
) -> T {
    let mut led = Led { driver, leading: Leading::default() };
    std::future::poll_fn(|context| {
        led.leading
            .poll(driver, context, |waker| driver.change(|state, now| poll(state, now, waker)))
    })
    .await
}

/// A lead that ends with the future that has it.
struct Led<'a> {
    driver: &'a Driver,
    leading: Leading,
}

impl Drop for Led<'_> {
    fn drop(&mut self) {
        self.leading.end(self.driver);
    }
}

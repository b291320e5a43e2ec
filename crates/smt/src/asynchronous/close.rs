// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of endpoints for tasks.

use std::sync::Arc;
use std::time::Duration;

use smt_proto::CloseCode;

use super::polled;
use super::time_limit::{wait, within};
use crate::driver::Guard;
use crate::endpoint_state::SEND_AGAIN;
use crate::server_handle::ServerHandle;

/// Closes endpoints together, when what is in progress has ended, or the limit has passed.
pub(super) async fn close(guards: &[&Arc<Guard>], limit: Duration, code: CloseCode) {
    for guard in guards {
        let driver = guard.driver();
        driver.change(|state, now| state.drain(now));
    }
    let are_finished = async {
        for guard in guards {
            polled(guard.driver(), |state, _, waker| state.poll_finished(waker)).await;
        }
    };
    // Past the limit what is left is cut off.
    if let Some(guard) = guards.first() {
        within(guard.driver(), limit, are_finished).await;
    }
    for guard in guards {
        close_now(guard, code).await;
    }
}

/// Closes the session with one server of an endpoint, when what is in progress has ended, or the
/// limit has passed.
pub(super) async fn close_server(server: &ServerHandle, limit: Duration) {
    let guard = server.guard();
    let id = server.id();
    let driver = guard.driver();
    driver.change(|state, _| state.servers.retire_server(id));
    let is_finished =
        polled(guard.driver(), |state, _, waker| state.poll_server_finished(id, waker));
    // Past the limit what is left is cut off.
    within(driver, limit, is_finished).await;
    driver.change(|state, _| state.close_server(id));
}

/// Ends an endpoint, and waits until its driver has let go of the socket.
async fn close_now(guard: &Guard, code: CloseCode) {
    let driver = guard.driver();
    driver.begin_shutdown(code);
    // The driver sends, too; but its runtime may run no tasks at the moment.
    while !driver.has_sent_the_rest() {
        wait(driver, SEND_AGAIN).await;
    }
    driver.release();
    let is_released = polled(guard.driver(), |state, _, waker| state.poll_released(waker));
    // A runtime that runs no tasks at the moment holds nobody up: it lets go when it runs again.
    within(driver, RELEASED_WITHIN, is_released).await;
}

/// A driver lets go of the socket when its task runs next; this is long for it.
const RELEASED_WITHIN: Duration = Duration::from_secs(1);

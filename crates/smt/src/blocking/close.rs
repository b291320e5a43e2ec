// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The end of endpoints for threads.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use smt_proto::CloseCode;

use crate::driver::{Driver, Guard};
use crate::endpoint_state::EndpointState;
use crate::server_handle::ServerHandle;

/// Closes endpoints together, when what is in progress has ended, or the limit has passed.
pub(super) fn close(guards: &[&Arc<Guard>], limit: Duration, code: CloseCode) {
    let began = Instant::now();
    let drivers = || guards.iter().map(|guard| guard.driver());
    drivers().for_each(|driver| driver.change(|state, now| state.drain(now)));
    for driver in drivers() {
        // Those that nobody waits for yet are looked after nevertheless
        // (`driver::background_thread`).
        wait_until_finished(driver, limit.saturating_sub(began.elapsed()));
    }
    drivers().for_each(|driver| driver.shut_down(code));
}

/// Closes the session with one server of an endpoint, when what is in progress has ended, or the
/// limit has passed.
pub(super) fn close_server(server: &ServerHandle, limit: Duration) {
    let (driver, id) = (server.guard().driver(), server.id());
    driver.change(|state, _| state.servers.retire_server(id));
    wait_at_most(driver, limit, |state, waker| state.poll_server_finished(id, waker));
    driver.change(|state, _| state.close_server(id));
}

/// Waits until nothing is in progress, at most for this time.
fn wait_until_finished(driver: &Driver, limit: Duration) {
    wait_at_most(driver, limit, EndpointState::poll_finished);
}

fn wait_at_most(
    driver: &Driver,
    limit: Duration,
    mut poll: impl FnMut(&mut EndpointState, &Waker) -> Poll<()>,
) {
    let end = driver.now() + limit;
    let mut alarm = None;
    driver.block_on(|state, now, waker| {
        let polled = poll(state, waker);
        if polled.is_ready() || now >= end {
            state.clear_alarm(end, &mut alarm);
            return Poll::Ready(());
        }
        state.set_alarm(end, &mut alarm, waker);
        polled
    });
}

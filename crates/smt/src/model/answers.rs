// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Handlers of a server that reply from tasks and threads of their own, while the driver and others
//! use the endpoint.

use std::sync::Arc;

use shuttle::future::{block_on, spawn};
use shuttle::thread;

use super::endpoint::{Tested, body};
use super::runtime::Spins;
use super::schedules::try_orders;
use crate::driver::{DriveBy, Driver};
use crate::message::Request;

/// A server that serves all calls, each in a task of its own.
fn every_reply_arrives(spins: Spins) {
    const CALLS: u8 = 3;
    let (mut tested, peer) = Tested::server(DriveBy::Workers);
    tested.drive(spins, false);
    let peer = thread::spawn(move || peer.call_all((0..CALLS).map(body)));
    let server = crate::Server::new(Arc::clone(&tested.guard));
    let acceptor = spawn(async move {
        for _ in 0..CALLS {
            let request = server.accept_request().await.expect("a request");
            spawn(async move { reply(request) });
        }
    });
    let replies = peer.join().unwrap();
    assert!(replies.into_iter().eq((0..CALLS).map(body)));
    block_on(acceptor).unwrap();
    tested.close();
}

fn reply(request: Request) {
    let body = request.body().clone();
    request.reply(body).expect("a caller that waits");
}

#[test]
fn every_reply_arrives_although_the_lock_was_taken() {
    try_orders(1_000, || every_reply_arrives(Spins::Never));
    try_orders(600, || every_reply_arrives(Spins::InPlace));
}

/// A handler replies while another thread has the endpoint's lock for something else, and then
/// nobody does anything.
fn reply_leaves_beside(other: fn(&Driver)) {
    let (tested, mut peer) = Tested::server(DriveBy::Workers);
    peer.call([body(1)].into_iter());
    while tested.guard.driver().receive_now() {}
    let server = crate::Server::new(Arc::clone(&tested.guard));
    let request = block_on(server.accept_request()).expect("a request");
    let driver = Arc::clone(tested.guard.driver());
    let other = thread::spawn(move || other(&driver));
    reply(request);
    other.join().unwrap();
    assert_eq!(peer.replies(), [body(1)]);
    drop(server);
    tested.close();
}

#[test]
fn a_reply_does_not_wait_for_whoever_only_looks_at_the_endpoint() {
    try_orders(3_000, || {
        reply_leaves_beside(|driver| {
            let _ = driver.statistics();
        });
    });
}

#[test]
fn a_reply_does_not_wait_for_whoever_changes_something_else() {
    try_orders(3_000, || reply_leaves_beside(|driver| driver.change(|_, _| ())));
}

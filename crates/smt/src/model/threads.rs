// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Threads that lead and follow, and the background thread.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use smt_proto::CloseCode;

use super::carrier::catch_break;
use super::endpoint::{Tested, body};
use super::schedules::try_orders;
use crate::driver::DriveBy;

/// Threads call over one endpoint, and each call ends. The background thread looks in `looks`
/// times.
fn every_call_ends(looks: usize) {
    let (tested, peer) = Tested::client(DriveBy::Threads);
    thread::spawn(move || peer.serve());
    let callers = [1, 2, 3].map(|number| {
        let client = tested.threads();
        thread::spawn(move || {
            for round in 0..2 {
                let body = body(number + 10 * round);
                assert_eq!(client.call(body.clone()).wait().unwrap(), body);
            }
        })
    });
    for _ in 0..looks {
        tested.guard.driver().look_after_idle();
    }
    for caller in callers {
        caller.join().unwrap();
    }
    tested.close();
}

#[test]
fn every_call_ends_whoever_leads() {
    try_orders(600, || every_call_ends(0));
}

#[test]
fn every_call_ends_although_the_background_thread_looks_in() {
    try_orders(600, || every_call_ends(2));
}

#[test]
fn every_call_ends_when_the_endpoint_is_shut_down() {
    try_orders(600, || {
        let (tested, peer) = Tested::client(DriveBy::Threads);
        thread::spawn(move || peer.serve());
        let callers = [1, 2, 3].map(|number| {
            let client = tested.threads();
            thread::spawn(move || {
                client.call(body(number)).wait().is_ok_and(|reply| reply == body(number))
            })
        });
        // A leader in a carrier that is no socket looks up now and then.
        tested.inbox.stop();
        tested.guard.driver().shut_down(CloseCode::Done);
        for caller in callers {
            let _ = caller.join().unwrap();
        }
        assert!(tested.threads().call(body(4)).wait().is_err());
        tested.close();
    });
}

/// The carrier panics once in a call to send or receive, in whichever thread.
fn every_other_call_ends(receives: Option<usize>, sends: Option<usize>) {
    let (tested, peer) = Tested::client(DriveBy::Threads);
    thread::spawn(move || peer.serve());
    tested.inbox.break_once(receives, sends);
    let callers = [1, 2, 3].map(|number| {
        let client = tested.threads();
        thread::spawn(move || {
            let call = client.call(body(number));
            let end = catch_break(|| call.wait());
            end.map(|end| assert_eq!(end.unwrap(), body(number))).is_err()
        })
    });
    let broken = callers.map(|caller| usize::from(caller.join().unwrap()));
    assert!(broken.iter().sum::<usize>() <= 1);
    Arc::clone(&tested.inbox).break_once(None, None);
    tested.close();
}

#[test]
fn a_leader_whose_carrier_panics_in_receive_stops_nobody_else() {
    try_orders(600, || {
        every_other_call_ends(Some(thread_rng().gen_range(0..6)), None);
    });
}

#[test]
fn a_thread_whose_carrier_panics_in_send_stops_nobody_else() {
    try_orders(600, || {
        every_other_call_ends(None, Some(thread_rng().gen_range(0..4)));
    });
}

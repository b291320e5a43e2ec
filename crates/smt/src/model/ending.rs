// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Callers that are dropped, a runtime that shuts down, and tasks and carriers that panic.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use shuttle::future::{JoinHandle, block_on, spawn};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::carrier::catch_break;
use super::endpoint::{Tested, body};
use super::runtime::Spins;
use super::schedules::try_orders;
use crate::driver::DriveBy;
use crate::error::{Error, ErrorKind};
use crate::{CallFuture, ConnectError};

/// A call that is dropped at its poll `left` from now, or comes to its end before that. It `panics`
/// when it is.
async fn cut_off(call: CallFuture, mut left: usize, panics: bool) {
    let mut call = Some(call);
    poll_fn(|context| {
        if left == 0 {
            let drop_it = AssertUnwindSafe(|| {
                let _call = call.take();
                if panics {
                    resume_unwind(Box::new("a task that panics"));
                }
            });
            assert_eq!(catch_unwind(drop_it).is_err(), panics);
            return Poll::Ready(());
        }
        left -= 1;
        let call = call.as_mut().expect("it is polled while it is there");
        Pin::new(call).poll(context).map(|_| ())
    })
    .await;
}

/// Two calls go on while a third one is cut off.
fn one_of_three_is_cut_off(panics: bool) {
    let (mut tested, peer) = Tested::client(DriveBy::Workers);
    tested.drive(Spins::Never, false);
    thread::spawn(move || peer.serve());
    let client = tested.tasks();
    let cut = client.call(body(0)).into_future();
    let cut = spawn(cut_off(cut, thread_rng().gen_range(0..3), panics));
    let others = [1, 2].map(|number| {
        let call = client.call(body(number));
        spawn(async move { assert_eq!(call.await.unwrap(), body(number)) })
    });
    drop(client);
    if thread_rng().gen_bool(0.5) {
        // Whether it was told of something or not.
        cut.abort();
    }
    for other in others {
        block_on(other).unwrap();
    }
    let _ = block_on(cut);
    tested.close();
}

#[test]
fn a_caller_that_is_dropped_when_it_is_told_loses_nobody_elses_reply() {
    try_orders(600, || one_of_three_is_cut_off(false));
}

#[test]
fn a_task_that_panics_when_it_is_told_stops_nobody_else() {
    try_orders(600, || one_of_three_is_cut_off(true));
}

#[test]
fn an_acceptor_that_is_dropped_passes_on_what_it_was_woken_for() {
    try_orders(600, || {
        let (mut tested, peer) = Tested::client(DriveBy::Workers);
        tested.drive(Spins::Never, false);
        thread::spawn(move || peer.tell_all([body(1)].into_iter()));
        let accept = || {
            let client = tested.tasks();
            spawn(async move { client.accept().await.is_some() })
        };
        let (first, second) = (accept(), accept());
        (0..thread_rng().gen_range(0..100)).for_each(|_| thread::yield_now());
        first.abort();
        if block_on(first).is_err() {
            assert!(block_on(second).unwrap(), "it came to nobody");
        } else {
            second.abort();
            let _ = block_on(second);
        }
        tested.close();
    });
}

/// Whether this is how a call ends whose endpoint nobody drives any more.
fn is_undriven(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Connect(ConnectError::Undriven) | ErrorKind::Call(_))
}

#[test]
fn waiting_calls_and_accepts_learn_that_the_runtime_shuts_down() {
    try_orders(600, || {
        let (mut tested, peer) = Tested::client(DriveBy::Workers);
        tested.drive(Spins::InPlace, false);
        thread::spawn(move || peer.serve());
        let client = tested.tasks();
        let calls = [1, 2].map(|number| {
            let call = client.call(body(number));
            spawn(async move {
                match call.await {
                    Ok(reply) => assert_eq!(reply, body(number)),
                    Err(error) => assert!(is_undriven(&error), "{error}"),
                }
            })
        });
        let acceptor = client.clone();
        let acceptor = spawn(async move { assert!(acceptor.accept_request().await.is_none()) });
        tested.background().abort();
        for call in calls.into_iter().chain([acceptor]) {
            block_on(call).unwrap();
        }
        let error = block_on(client.call(body(3)).into_future()).unwrap_err();
        assert!(is_undriven(&error), "{error}");
        drop(client);
        tested.close();
    });
}

/// A task that calls; the end of its call, or `None` if the carrier broke in it.
fn call_over_what_breaks(tested: &Tested, number: u8) -> JoinHandle<Option<Result<(), Error>>> {
    let mut call = Some(tested.tasks().call(body(number)).into_future());
    spawn(poll_fn(move |context| {
        let poll = || {
            let mut call = call.take()?;
            let polled = Pin::new(&mut call).poll(context);
            Some((call, polled))
        };
        match catch_break(poll) {
            Ok(Some((kept, Poll::Pending))) => {
                call = Some(kept);
                Poll::Pending
            }
            Ok(Some((_, Poll::Ready(end)))) => {
                Poll::Ready(Some(end.map(|reply| assert_eq!(reply, body(number)))))
            }
            Ok(None) | Err(()) => Poll::Ready(None),
        }
    }))
}

/// The carrier panics once in a call to send or receive, whoever makes it. A driver that it stops
/// tells all.
fn every_call_ends_over_a_carrier_that_breaks(receives: Option<usize>, sends: Option<usize>) {
    let (mut tested, peer) = Tested::client(DriveBy::Workers);
    tested.inbox.break_once(receives, sends);
    let background = tested.drive_until_panic(Spins::Never);
    thread::spawn(move || peer.serve());
    let calls = [0, 1, 2].map(|number| call_over_what_breaks(&tested, number));
    let ends: Vec<_> = calls.into_iter().map(|call| block_on(call).unwrap()).collect();
    let inbox = Arc::clone(&tested.inbox);
    inbox.break_once(None, None);
    let failed = ends.iter().flatten().filter(|end| end.is_err()).count();
    tested.close();
    let has_stopped = block_on(background).unwrap();
    assert!(failed == 0 || has_stopped, "{ends:?}");
}

#[test]
fn a_carrier_that_panics_in_send_stops_nobody_else() {
    try_orders(600, || {
        let call = thread_rng().gen_range(0..4);
        every_call_ends_over_a_carrier_that_breaks(None, Some(call));
    });
}

#[test]
fn a_carrier_that_panics_in_receive_stops_nobody_else() {
    try_orders(600, || {
        let call = thread_rng().gen_range(0..6);
        every_call_ends_over_a_carrier_that_breaks(Some(call), None);
    });
}

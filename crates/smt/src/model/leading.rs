// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A future that `block_on` polls leads, while tasks call and the driver looks after it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use shuttle::future::{JoinHandle, block_on, spawn};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::endpoint::{Tested, body};
use super::runtime::Spins;
use super::schedules::{end_poll, try_orders, try_orders_of_polls};
use crate::driver::DriveBy;
use crate::sync::{pass, set_in_block_on};

/// Polls a future as `block_on` does, at most this often. `None`: it was dropped before its end.
fn poll_some<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    set_in_block_on(true);
    let mut left = polls;
    let outcome = {
        let mut future = pin!(future);
        block_on(poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            let polled = future.as_mut().poll(context).map(Some);
            end_poll();
            if left == 0 {
                // The drop comes at any time after this poll.
                context.waker().wake_by_ref();
            }
            polled
        }))
    };
    set_in_block_on(false);
    outcome
}

fn some() -> usize {
    thread_rng().gen_range(0..5)
}

/// Tasks that call, each to its end.
fn calls_of(tested: &Tested, bodies: impl Iterator<Item = u8>) -> Vec<JoinHandle<()>> {
    let call = |number| {
        let call = tested.tasks().call(body(number));
        spawn(async move { assert_eq!(call.await.unwrap(), body(number)) })
    };
    bodies.map(call).collect()
}

/// A future leads for this many polls, and others call meanwhile. Without timers only as long as it
/// comes back or is dropped.
fn led_for(polls: fn() -> usize, spins: Spins, has_timers: bool) {
    let (mut tested, peer) = Tested::client(DriveBy::Workers);
    tested.drive(spins, has_timers);
    thread::spawn(move || peer.serve());
    let calls = calls_of(&tested, 1..3);
    let own = poll_some(tested.tasks().call(body(0)).into_future(), polls());
    if let Some(own) = own {
        assert_eq!(own.unwrap(), body(0));
        tested.permit_timers();
    }
    for call in calls {
        block_on(call).unwrap();
    }
    tested.close();
}

#[test]
fn every_call_ends_although_the_future_that_led_never_comes_back() {
    try_orders(400, || led_for(|| usize::MAX, Spins::InPlace, true));
    try_orders(400, || led_for(|| usize::MAX, Spins::Never, true));
}

#[test]
fn every_call_ends_although_the_future_that_leads_is_dropped() {
    try_orders(600, || led_for(some, Spins::Never, true));
    try_orders(400, || led_for(some, Spins::InPlace, true));
    try_orders_of_polls(800, || led_for(some, Spins::Never, false));
}

/// The peer tells of something while a future that leads comes and goes: no other task would send
/// or look.
fn told_while_led(polls: fn() -> usize, has_timers: bool) {
    const MESSAGES: u8 = 2;
    let (mut tested, peer) = Tested::client(DriveBy::Workers);
    tested.drive(Spins::Never, has_timers);
    thread::spawn(move || peer.tell_all((10..10 + MESSAGES).map(body)));
    let client = tested.tasks();
    let acceptor = spawn(async move {
        for _ in 0..MESSAGES {
            assert!(client.accept().await.unwrap().into_message().is_some());
        }
    });
    for number in 0..2 {
        let own = poll_some(tested.tasks().call(body(number)).into_future(), polls());
        if let Some(own) = own {
            assert_eq!(own.unwrap(), body(number));
            tested.permit_timers();
        }
    }
    block_on(acceptor).unwrap();
    tested.close();
}

#[test]
fn the_watch_is_on_or_somebody_looks_or_a_timer_is_set() {
    try_orders(600, || told_while_led(some, true));
    try_orders(400, || told_while_led(|| usize::MAX, true));
    try_orders_of_polls(800, || told_while_led(|| usize::MAX, true));
}

#[test]
fn message_that_comes_after_a_future_was_dropped_waits_for_no_timer() {
    try_orders_of_polls(800, || told_while_led(some, false));
}

#[test]
fn corked_messages_leave_when_a_future_ceases_to_lead() {
    try_orders_of_polls(400, || {
        let (mut tested, peer) = Tested::client(DriveBy::Workers);
        tested.drive(Spins::Never, false);
        thread::spawn(move || peer.serve());
        let calls = calls_of(&tested, 1..3);
        let client = tested.tasks();
        assert!(poll_some(client.accept(), 1).is_none());
        for call in calls {
            block_on(call).unwrap();
        }
        drop(client);
        tested.close();
    });
}

/// One future calls again and again, and leads or not as that pays; without any timer.
#[test]
fn a_future_that_calls_again_and_again_waits_for_no_timer() {
    try_orders_of_polls(400, || {
        let (mut tested, peer) = Tested::client(DriveBy::Workers);
        tested.drive(Spins::Never, false);
        thread::spawn(move || peer.serve());
        for number in 0..8 {
            // Perhaps after a pause that is too long to be spun for.
            pass(Duration::from_micros(thread_rng().gen_range(0..200)));
            let own = poll_some(tested.tasks().call(body(number)).into_future(), usize::MAX);
            assert_eq!(own.unwrap().unwrap(), body(number));
        }
        tested.close();
    });
}

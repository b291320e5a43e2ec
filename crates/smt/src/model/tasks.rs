// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tasks that call, and the driver that drives for them.

use shuttle::future::{block_on, spawn};

use super::endpoint::{Tested, body};
use super::runtime::Spins;
use super::schedules::try_orders;
use crate::driver::DriveBy;

/// Several tasks call at once, and all learn of their replies.
fn every_call_ends(by: DriveBy, spins: Spins) {
    let (mut tested, peer) = Tested::client(by);
    tested.drive(spins, true);
    shuttle::thread::spawn(move || peer.serve());
    let client = tested.tasks();
    let calls = [1, 2, 3].map(|number| {
        let call = client.call(body(number));
        spawn(async move { assert_eq!(call.await.unwrap(), body(number)) })
    });
    drop(client);
    for call in calls {
        block_on(call).unwrap();
    }
    tested.close();
}

#[test]
fn every_call_ends_when_a_worker_spins() {
    try_orders(400, || every_call_ends(DriveBy::Workers, Spins::InPlace));
}

#[test]
fn every_call_ends_when_no_worker_spins() {
    try_orders(400, || every_call_ends(DriveBy::Workers, Spins::Never));
}

#[test]
fn every_call_ends_when_the_driver_yields() {
    try_orders(400, || every_call_ends(DriveBy::OneWorker, Spins::ByYields));
}

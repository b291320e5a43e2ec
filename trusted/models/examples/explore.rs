// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Explores a system to the end: `explore bft [requests [views [lies]]]`.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use smt_trusted_models::bft::{Bft, Bounds};
use smt_trusted_models::{Cluster, explore};

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(2).map(|it| it.parse().unwrap()).collect();
    let bounds = Bounds {
        requests: numbers[0] as usize,
        views: numbers[1],
        lies: numbers[2] as usize,
        restarts: numbers[3] > 0,
        orders: numbers[4] > 0,
    };
    for liar in [numbers[5] as u32] {
        let report = explore(Cluster::new(Bft::new(bounds, None), &[liar]), 2);
        println!("liar {liar}: {report}, {:?} {:?}", report.unreached, report.violations);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A crash-tolerant counter on three nodes, over a network in memory. One node stops.

use smt_transform::counter::Counter;
use smt_transform::local::Local;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut group = Local::new(3, |own| Counter::new(own, 3))?;
    for added in [5, 10, 20_u64] {
        let answer = group.call(added.to_be_bytes().to_vec())?;
        println!("{added} added: {answer:?}");
    }
    group.stop(0);
    let answer = group.call(7_u64.to_be_bytes().to_vec())?;
    println!("the leader has stopped, 7 added: {answer:?}");
    Ok(())
}

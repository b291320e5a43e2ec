// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Misuses of the interface, as a user makes them: each is told by whose fault it is and by a text
//! that says what to do, an endpoint that is not concerned goes on, and nothing is left behind.
//!
//! Each file has a table. All of them are one test, alone in its process, since it counts the
//! threads and the descriptors of the process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]
#![expect(clippy::too_many_lines, reason = "a table is as long as its rows")]

mod addresses;
mod bystander;
mod calls;
mod certificates;
mod credentials;
mod ends;
mod leftovers;
mod misuse;
mod options;
mod peers;
mod polled;
mod registered_keys;
mod replies;

use bystander::Bystander;
use leftovers::Leftovers;
use misuse::Misuse;

#[test]
fn each_misuse_is_told_and_leaves_nothing_behind() {
    let bystander = Bystander::new();
    let tables: [fn() -> Vec<Misuse>; 10] = [
        addresses::table,
        calls::table,
        certificates::table,
        credentials::table,
        ends::table,
        options::table,
        peers::table,
        polled::table,
        registered_keys::table,
        replies::table,
    ];
    // Whatever is begun once in a process is there: resolver, cipher tables.
    bystander.assert_alive();
    let mut wrong = Vec::new();
    let mut count = 0;
    for misuse in tables.iter().flat_map(|table| table()) {
        let before = Leftovers::now();
        let told = misuse.told(&bystander);
        wrong.extend(misuse.defect(&told));
        wrong.extend(before.defect(misuse.done));
        bystander.assert_alive();
        count += 1;
        println!("{}", misuse.done);
    }
    println!("{count} misuses");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The search by simulations.

use crate::processes::command;

#[test]
fn a_search_of_reviewed_trees_prints_its_table_and_gives_it_again() {
    let search =
        || command(&["peer-review", "sim", "--seed", "5", "--count", "4"]).output().unwrap();
    let output = search();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("LiarExposed") && text.ends_with("0 violations\n"), "{text}");
    assert_eq!(String::from_utf8(search().stdout).unwrap(), text);
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chains that need no etcd.

use crate::processes::Chain;

#[test]
fn a_chain_serves_without_etcd_and_also_without_its_last_node() {
    let mut chain = Chain::new("key-value");
    assert_eq!(chain.call(&["put", "city", "Bonn"]), "(none)");
    assert_eq!(chain.call(&["get", "city"]), "Bonn");
    assert_eq!(chain.end(2)["etcd_answers"], false);
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "Bonn");
    assert_eq!(chain.call(&["delete", "city"]), "Ulm");
    chain.start(2);
    assert_eq!(chain.call(&["get", "city"]), "(none)");
    assert_eq!(chain.end(0)["configuration"], 0);
}

#[test]
fn all_nodes_that_are_killed_at_once_have_what_was_acknowledged_without_etcd() {
    let mut chain = Chain::new("key-value");
    assert_eq!(chain.call(&["put", "city", "Ulm"]), "(none)");
    chain.kill(&[0, 1, 2]);
    (0..3).for_each(|it| chain.start(it));
    assert_eq!(chain.call(&["put", "city", "Bonn"]), "Ulm");
    chain.kill(&[0, 1, 2]);
    (0..3).for_each(|it| chain.start(it));
    assert_eq!(chain.call(&["get", "city"]), "Bonn");
}

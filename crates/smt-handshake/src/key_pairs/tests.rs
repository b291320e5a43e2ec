// SPDX-License-Identifier: Apache-2.0 OR MIT
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::crypto::aws_lc_rs::kx_group;
use rustls::crypto::{ActiveKeyExchange, SupportedKxGroup};
use rustls::{Error, NamedGroup};

use super::*;

/// X25519, with the number of its key pairs.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Counting {
    fn made(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl SupportedKxGroup for Counting {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        self.0.fetch_add(1, Ordering::SeqCst);
        kx_group::X25519.start()
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// A group of its own for each test, since a pool is the whole process's.
fn group(is_diffie_hellman: bool) -> (&'static Counting, &'static PooledGroup) {
    let counting: &Counting = Box::leak(Box::default());
    let pooled = PooledGroup::new(counting, is_diffie_hellman);
    (counting, Box::leak(Box::new(pooled)))
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn a_handshake_takes_key_pairs_that_were_made_before_and_they_are_replaced() {
    let (counting, group) = group(true);
    let pool = KeyPairPool::of(vec![group], 3).unwrap();
    until(|| group.ready() == 3);
    assert_eq!(counting.made(), 3);
    group.start().unwrap();
    until(|| group.ready() == 3);
    assert_eq!(counting.made(), 4);
    drop(pool);
}

#[test]
fn no_key_pair_is_given_twice_whether_the_pool_is_full_or_empty() {
    let (_, group) = group(true);
    let _pool = KeyPairPool::of(vec![group], 4).unwrap();
    until(|| group.ready() == 4);
    let shares: BTreeSet<_> = (0..20).map(|_| group.start().unwrap().pub_key().to_vec()).collect();
    assert_eq!(shares.len(), 20);
}

#[test]
fn each_handshake_makes_its_own_key_pair_where_no_pool_is_kept() {
    let (counting, group) = group(true);
    let pools = [1, 2].map(|size| KeyPairPool::of(vec![group], size).unwrap());
    until(|| group.ready() == 2);
    let [first, second] = pools;
    drop(second);
    assert!(group.ready() > 0, "the first still keeps them");
    drop(first);
    assert_eq!(group.ready(), 0);
    let before = counting.made();
    group.start().unwrap();
    assert_eq!((group.ready(), counting.made()), (0, before + 1));
}

#[test]
fn an_answer_by_a_key_pair_of_the_pool_has_the_secret_of_both_sides() {
    let (_, group) = group(true);
    let _pool = KeyPairPool::of(vec![group], 2).unwrap();
    until(|| group.ready() == 2);
    let client = kx_group::X25519.start().unwrap();
    let answer = group.start_and_complete(client.pub_key()).unwrap();
    let secret = client.complete(&answer.pub_key).unwrap();
    assert_eq!(secret.secret_bytes(), answer.secret.secret_bytes());
}

#[test]
fn an_answer_by_encapsulation_takes_no_key_pair() {
    for (is_diffie_hellman, left) in [(true, 1), (false, 2)] {
        let (_, group) = group(is_diffie_hellman);
        // No thread fills it again.
        group.fill(2, || false).unwrap();
        let client = kx_group::X25519.start().unwrap();
        group.start_and_complete(client.pub_key()).unwrap();
        assert_eq!(group.ready(), left);
    }
}

#[test]
fn a_pool_has_an_upper_bound() {
    let (_, group) = group(true);
    let pool = KeyPairPool::of(vec![group], usize::MAX).unwrap();
    until(|| group.ready() == KEY_PAIRS_MAX);
    drop(pool);
}

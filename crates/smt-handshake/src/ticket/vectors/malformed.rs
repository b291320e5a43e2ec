// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tickets that a client must refuse whoever has signed them (SPEC [6.7-1], [6.7-4]).

use serde_json::{Value, json};

use super::handshake::Case;
use super::inputs::hex;
use crate::ticket::format::Ticket;

pub(super) fn all() -> Vec<Value> {
    let good = Case::ticket(&super::CASES[0]).0.as_bytes().to_vec();
    let suites = usize::from(good[2]);
    let end = 3 + suites + 16 + 8;
    let flags = end + 8;
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let later = |seconds: u64| {
        let begins = u64::from_be_bytes(good[end - 8..end].try_into().unwrap());
        let mut bytes = good.clone();
        bytes[end..flags].copy_from_slice(&(begins.wrapping_add(seconds)).to_be_bytes());
        bytes
    };
    let without_suites = [&good[..2], &[0], &good[3 + suites..]].concat();
    let cases = [
        ("nothing", Vec::new()),
        ("cut", good[..good.len() - 1].to_vec()),
        ("bytes behind its end", [&good[..], &[0]].concat()),
        ("another format", changed(0, 2)),
        ("group 0", changed(1, 0)),
        ("an unknown group", changed(1, 4)),
        ("an unknown suite", changed(4, 9)),
        ("half a suite", changed(2, good[2] - 1)),
        ("no suite", without_suites),
        ("longer than an hour", later(3_601)),
        ("an end before the beginning", later(u64::MAX)),
        ("an unknown flag", changed(flags, 8)),
    ];
    let cases = cases.into_iter().map(|(name, bytes)| {
        let error = Ticket::from_bytes(&bytes).expect_err(name).to_string();
        json!({ "name": name, "hex": hex(&bytes), "error": error })
    });
    cases.collect()
}

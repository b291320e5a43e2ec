// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `padding.json`: policies and the padded lengths they give.

use std::num::NonZeroU32;

use serde_json::{Value, json};
use smt_record::Padding;

pub(crate) fn all() -> Value {
    let max = 40 + (64 << 20);
    let mut vectors = Vec::new();
    let lengths = [40, 41, 48, 63, 64, 65, 100, 127, 128, 129, 1_000, 1_024, 1_025, 1_142, 4_096];
    let long = [9_999, 16_384, 65_535, 65_536, 65_537, 1_000_000, 16_777_217, max - 1, max];
    for length in lengths.into_iter().chain(long) {
        for policy in [Padding::None, block(1), block(64), block(1_000), Padding::Padme] {
            vectors.push(vector(policy, length, max));
        }
    }
    // The limit wins over the policy.
    for (policy, length, max) in [
        (block(4_096), 5_000, 6_000),
        (Padding::Padme, 1_025, 1_030),
        (Padding::Padme, 1_025, 1_088),
        (block(u32::MAX), 40, u32::MAX),
        (block(1 << 31), u32::MAX, u32::MAX),
        (Padding::Padme, u32::MAX, u32::MAX),
    ] {
        vectors.push(vector(policy, length, max));
    }
    json!({ "padding": vectors })
}

fn block(bytes: u32) -> Padding {
    Padding::Block(NonZeroU32::new(bytes).expect("blocks above are not 0"))
}

fn vector(policy: Padding, true_inner: u32, max: u32) -> Value {
    let (name, block) = match policy {
        Padding::None => ("none", None),
        Padding::Block(block) => ("block", Some(block.get())),
        Padding::Padme => ("padme", None),
    };
    json!({
        "policy": name,
        "block": block,
        "true_inner": true_inner,
        "max": max,
        "padded": policy.padded(true_inner, max),
    })
}

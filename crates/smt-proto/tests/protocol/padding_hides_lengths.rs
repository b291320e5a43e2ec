// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rule 8: the clear length is the padded one.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use smt_proto::Config;
use smt_record::Padding;

use super::support::{World, body};

/// The lengths that an observer sees for requests and replies of these sizes.
fn seen(padding: Padding, sizes: impl Iterator<Item = usize>) -> BTreeSet<u32> {
    let mut config = Config::default();
    config.padding = padding;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    for size in sizes {
        let rpc = world.call(0, session, body(1, size));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, size)), "{size} bytes");
    }
    world
        .sent
        .iter()
        .filter_map(|sent| sent.data())
        .map(|data| data.header.message_length)
        .collect()
}

#[test]
fn every_length_is_seen_without_padding() {
    assert_eq!(seen(Padding::None, 0..300).len(), 300);
}

#[test]
fn block_padding_hides_lengths() {
    let padding = Padding::Block(NonZeroU32::new(1_024).unwrap());
    let lengths = seen(padding, (0..20_000).step_by(97));
    assert!(lengths.iter().all(|length| length % 1_024 == 0), "{lengths:?}");
    assert_eq!(lengths.len(), 20);
}

#[test]
fn padme_hides_lengths() {
    let sizes = (0..40_000).step_by(13);
    assert!(seen(Padding::Padme, sizes).len() < 150);
}

/// A block larger than several records: some of them lie wholly in the padding.
#[test]
fn padding_covers_whole_records() {
    let padding = Padding::Block(NonZeroU32::new(200_000).unwrap());
    let lengths = seen(padding, [0, 1, 1_102, 1_103, 17_486, 17_487, 199_960].into_iter());
    assert_eq!(lengths, BTreeSet::from([200_000]));
}

// SMT [5.6-2]
#[test]
fn padding_reaches_the_message_limit() {
    let mut config = Config::default();
    config.padding = Padding::Block(NonZeroU32::new(1 << 20).unwrap());
    config.message_limit = 100_000;
    let (mut world, session, _) = World::connected_with(config.clone(), config);
    world.is_recording = true;
    for length in [10, 100_000] {
        let rpc = world.call(0, session, body(1, length));
        assert_eq!(world.outcome(0, rpc), Ok(body(1, length)));
    }
    // The inner header's 40 bytes come on top of the limit.
    let data = world.sent.iter().filter_map(|sent| sent.data());
    let lengths: BTreeSet<u32> = data.map(|data| data.header.message_length).collect();
    assert_eq!(lengths, BTreeSet::from([100_040]));
    let now = world.now;
    let refused = world.nodes[0].endpoint.call(now, session, body(1, 100_001), None);
    let expected = smt_proto::Refused::TooLarge { length: 100_001, limit: 100_000 };
    assert_eq!(refused, Err(expected));
}

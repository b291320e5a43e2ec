// SPDX-License-Identifier: Apache-2.0 OR MIT
use smt_proto::Config;

use super::support::load::assert_nothing_is_left;
use super::support::rule::trouble;
use super::support::{Load, Random, World};

fn run(percent: usize, messages: usize, size_max: usize) {
    let mut random = Random::from_env();
    let (mut world, client, server) = World::connected();
    world.rule = Box::new(trouble(Random::new(random.any()), percent));
    let load = Load { messages, at_once: 50, size_max, random };
    load.run(&mut world, [client, server]);
    assert_nothing_is_left(&world, [client, server]);
}

#[test]
fn messages_arrive_exactly_once_without_trouble() {
    run(0, 5_000, 300_000);
}

#[test]
fn messages_arrive_exactly_once_with_one_percent_lost_repeated_and_reordered() {
    run(1, 5_000, 300_000);
}

#[test]
fn messages_arrive_exactly_once_with_twenty_percent_lost_repeated_and_reordered() {
    run(20, 2_000, 100_000);
}

#[test]
fn messages_arrive_exactly_once_with_trouble_from_the_first_packet_on() {
    let mut random = Random::from_env();
    for _ in 0..30 {
        let mut world = World::pair(Config::default(), Config::default());
        world.rule = Box::new(trouble(Random::new(random.any()), 20));
        let (client, server) = world.connect(0, 1).unwrap();
        let load =
            Load { messages: 20, at_once: 20, size_max: 50_000, random: Random::new(random.any()) };
        load.run(&mut world, [client, server]);
        assert_nothing_is_left(&world, [client, server]);
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Stripes, small records, index bits that differ, sides that offer different things.

use smt_proto::Config;
use smt_wire::{AbortCode, Body, MessageId, Packet};

use super::support::configs::short_lived_keys;
use super::support::load::assert_nothing_is_left;
use super::support::rogue::striped;
use super::support::rule::trouble;
use super::support::{Answer, Load, Random, World, body};

fn works(client: Config, server: Config, size_max: usize) {
    let mut random = Random::from_env();
    let (mut world, at_client, at_server) = World::connected_with(client, server);
    world.rule = Box::new(trouble(Random::new(random.any()), 3));
    let load = Load { messages: 500, at_once: 30, size_max, random: Random::new(random.any()) };
    load.run(&mut world, [at_client, at_server]);
    assert_nothing_is_left(&world, [at_client, at_server]);
}

fn with(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    change(&mut config);
    config
}

#[test]
fn four_stripes_work() {
    let config = with(|config| config.stripes_log2 = 2);
    works(config.clone(), config, 100_000);
}

/// The ids that a control packet is about, with this many stripes as a power of two.
fn ids(body: Body<'_>, stripes_log2: u8) -> Vec<MessageId> {
    match body {
        Body::Grant(list) => list.iter().map(|grant| grant.id).collect(),
        Body::Resend(list) => list.iter().map(|resend| resend.id).collect(),
        Body::Ack(list) => {
            let ids = |ack: smt_wire::Ack| ack.ids(stripes_log2).collect::<Vec<_>>();
            list.iter().flat_map(ids).collect()
        }
        Body::Abort(abort) => vec![abort.id],
        Body::Busy(list)
        | Body::NeedAck(list)
        | Body::Cancel(list)
        | Body::Voided(list)
        | Body::Seen(list)
        | Body::NeverSeen(list)
        | Body::SeenAndGone(list) => list.iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether the body is about the session, and neither about ids nor about a stripe.
fn is_of_session(body: Body<'_>) -> bool {
    matches!(
        body,
        Body::Ping(_)
            | Body::Pong(_)
            | Body::KeyUpdateRequest { .. }
            | Body::EpochDone { .. }
            | Body::EpochAck { .. }
    )
}

/// Also of those that wait together (SPEC §4.3). Those about the session are of stripe 0.
// SMT [4.3-3]
#[test]
fn all_ids_of_a_control_packet_are_of_its_stripe() {
    let mut random = Random::from_env();
    let mut config = short_lived_keys();
    config.stripes_log2 = 2;
    let (mut world, at_client, at_server) = World::connected_with(config.clone(), config);
    let mut trouble = trouble(Random::new(random.any()), 10);
    world.rule = Box::new(move |datagram, injected| {
        for packet in datagram.packets() {
            let Packet::Control(control) = packet else {
                continue;
            };
            let of_session = is_of_session(control.body).then_some(0);
            let own = control.header.number.stripe;
            assert_eq!(of_session.unwrap_or(own), own, "{}", datagram.line());
            for id in ids(control.body, 2) {
                let stripe = striped(2).split(id).unwrap().stripe;
                assert_eq!(stripe, control.header.number.stripe, "{}", datagram.line());
            }
        }
        trouble(datagram, injected)
    });
    let load = Load { messages: 500, at_once: 30, size_max: 100_000, random };
    load.run(&mut world, [at_client, at_server]);
    world.nodes[1].application = Box::new(|_| Answer::Abort(AbortCode::ShuttingDown));
    for number in 0..4 {
        let rpc = world.call(0, at_client, body(number, 10));
        assert!(world.outcome(0, rpc).is_err());
    }
}

// SMT [6.3-19]
#[test]
fn the_fewer_stripes_of_both_sides_and_small_windows_work() {
    let client = with(|config| {
        config.stripes_log2 = 8;
        config.window = 64;
    });
    let server = with(|config| config.stripes_log2 = 3);
    works(client, server, 100_000);
}

#[test]
fn the_smallest_records_work() {
    let config = with(|config| {
        config.record_size = 64;
        config.first_record_size = 64;
    });
    works(config.clone(), config, 100_000);
}

// SMT [6.3-19]
#[test]
fn records_of_odd_sizes_work() {
    let client = with(|config| {
        config.record_size = 1_001;
        config.first_record_size = 777;
    });
    let server = with(|config| {
        config.record_size = 5_003;
        config.first_record_size = 99;
    });
    works(client, server, 100_000);
}

// SMT [6.3-13]
#[test]
fn few_index_bits_on_one_side_and_many_on_the_other_work() {
    let few = with(|config| config.index_bits = 8);
    let many = with(|config| config.index_bits = 17);
    works(few.clone(), many.clone(), 300_000);
    works(many.clone(), few.clone(), 300_000);
    let (mut world, session, at_server) = World::connected_with(few, many);
    let most = world.nodes[0].endpoint.session(session).unwrap().message_max;
    assert_eq!(most, 1_142 + 255 * 16_384 - 40, "256 records");
    let now = world.now;
    let refused = world.nodes[0].endpoint.call(now, session, body(1, most as usize + 1), None);
    assert!(refused.is_err());
    let rpc = world.call(0, session, body(1, most as usize));
    assert!(world.outcome(0, rpc) == Ok(body(1, most as usize)));
    let rpc = world.call(1, at_server, body(1, 1_000));
    world.outcome(1, rpc).unwrap();
}

#[test]
fn a_small_unscheduled_part_works() {
    let config = with(|config| config.unscheduled = 1_164);
    works(config.clone(), config, 300_000);
}

#[test]
#[should_panic(expected = "out of its range")]
fn a_value_out_of_range_is_the_callers_mistake() {
    World::pair(with(|config| config.index_bits = 18), Config::default());
}

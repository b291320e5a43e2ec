// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The draws for each host: its link, configuration, suites and carrier.

use std::num::NonZeroU32;
use std::time::Duration;

use smt_carrier::Capabilities;
use smt_proto::Config;
use smt_record::{KeyLimits, Padding, Suite};

use super::Case;
use crate::net::link::Link;
use crate::random::Random;

impl Case {
    /// Draws carriers that take less than a UDP socket, for one host in ten.
    pub(super) fn draw_carriers(&mut self, random: &mut Random) {
        for capabilities in &mut self.capabilities {
            *capabilities = random.chance(100_000).then(|| carrier(random));
        }
    }
}

/// Links of a case.
pub(super) fn link(random: &mut Random) -> Link {
    Link {
        rate: *random.pick(&[1_000_000_000, 10_000_000_000, 100_000_000_000]),
        delay: Duration::from_nanos(*random.pick(&[500, 5_000, 20_000, 200_000])),
        payload_max: *random.pick(&[1_472, 1_472, 1_472, 8_972, 65_507]),
    }
}

/// The configuration of a host.
pub(super) fn config(random: &mut Random) -> Config {
    let mut config = Config::default();
    config.accept = true;
    config.index_bits = *random.pick(&[8, 12, 16, 16, 17]);
    config.record_size = *random.pick(&[16_384, 16_384, 8_192, 4_096, 1_400]);
    config.first_record_size = *random.pick(&[1_142, 1_142, 256, 64]);
    config.window = *random.pick(&[64, 256, 4_096]);
    config.stripes_log2 = *random.pick(&[0, 0, 0, 1, 3]);
    config.message_limit = *random.pick(&[64 << 20, 1 << 20]);
    config.unscheduled = *random.pick(&[60_000, 60_000, 10_000, 1_200]);
    config.incoming_max = *random.pick(&[512 * 1_024, 64 * 1_024]);
    config.incast_calls = *random.pick(&[512, 512, 4]);
    config.datagram_limit = *random.pick(&[65_507, 65_507, 8_972, 1_472, 1_200]);
    let block = NonZeroU32::new(random.between(1, 4_096) as u32).unwrap_or(NonZeroU32::MIN);
    config.padding = *random.pick(&[Padding::None, Padding::Block(block), Padding::Padme]);
    let update_at = match random.chance(500_000) {
        true => random.between(20, 400),
        false => 3_072,
    };
    let failed_opens = *random.pick(&[16, 64, 1 << 20]);
    config.key_limits = KeyLimits::new(4_096, update_at, failed_opens)
        .expect("these are within the limits of limits");
    if random.chance(200_000) {
        config.accepts_without_cookie = 0;
    }
    config
}

/// A carrier that takes less than a UDP socket.
fn carrier(random: &mut Random) -> Capabilities {
    Capabilities::new(*random.pick(&[1_200, 1_300, 1_472, 4_000, 65_507]))
        .with_segments_max(*random.pick(&[1, 2, 5, 64]))
        .with_batch_max(*random.pick(&[1, 10_000, 65_507]))
        .with_priorities(random.chance(500_000))
}

/// All suites, beginning with any.
pub(super) fn suites(random: &mut Random) -> Vec<Suite> {
    let mut suites = Suite::ALL.to_vec();
    suites.rotate_left(random.below(3) as usize);
    suites
}

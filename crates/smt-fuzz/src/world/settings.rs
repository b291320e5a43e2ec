// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configurations with small windows, records and limits, so that a short script reaches their
//! ends.

use std::num::NonZeroU32;
use std::time::Duration;

use arbitrary::Arbitrary;
use smt_proto::{Config, Pull, PullOrder};
use smt_record::{KeyLimits, Padding};

/// An input's choice of one node's configuration. Every value is brought into its range.
#[derive(Arbitrary, Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    record_size: u8,
    first_record_size: u16,
    index_bits: u8,
    window: u8,
    stripes: u8,
    message_limit: u8,
    unscheduled: u16,
    memory: u8,
    incoming: u8,
    incast: u8,
    datagram_limit: u8,
    padding: u8,
    update_at: u8,
    failed_opens: u8,
    cookies: u8,
    bundles: u8,
    pulling: u8,
    pull_window: u8,
    part_window: u8,
}

impl Settings {
    /// The configuration.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::default();
        config.record_size =
            [64, 100, 256, 700, 1_142, 1_400, 4_096, 16_384][usize::from(self.record_size % 8)];
        let first_max = config.record_size.min(1_142);
        config.first_record_size = 64 + self.first_record_size % (first_max - 63);
        config.index_bits = 8 + self.index_bits % 10;
        config.window = 64 << (self.window % 2);
        config.stripes_log2 = self.stripes % 3;
        config.message_limit = 1_000 << (self.message_limit % 7);
        let least = u32::from(config.first_record_size) + 22;
        config.unscheduled = least + u32::from(self.unscheduled) % 9_000;
        config.memory_max = 4_096 << (self.memory % 12);
        config.incoming_max = 1_000 << (self.incoming % 10);
        config.incast_calls = usize::from(self.incast % 8);
        config.datagram_limit =
            [1_200, 1_201, 1_472, 4_000, 9_000, 65_507][usize::from(self.datagram_limit % 6)];
        config.padding = match self.padding % 4 {
            0 | 1 => Padding::None,
            2 => Padding::Padme,
            _ => Padding::Block(NonZeroU32::new(u32::from(self.padding) + 1).expect("not 0")),
        };
        let update_at = [4, 16, 64, 1_000][usize::from(self.update_at % 4)];
        let failed_opens = [16, 64, 1 << 30][usize::from(self.failed_opens % 3)];
        config.key_limits =
            KeyLimits::new(RECORDS_PER_KEY, update_at, failed_opens).expect("in range");
        config.silence_max = SILENCE_MAX;
        config.accepts_without_cookie = [64, 0, 1][usize::from(self.cookies % 3)];
        config.bundles = self.bundles % 4 != 3;
        config.part_window = [4_096, 5_000, 20_000, 1 << 20, 0][usize::from(self.part_window % 5)];
        config
    }

    /// The grant policy, if it is not the one that endpoints come with.
    pub(crate) fn pull(&self) -> Option<Pull> {
        let order = match self.pulling % 4 {
            2 => PullOrder::RoundRobin,
            3 => PullOrder::ShortestFirst,
            _ => return None,
        };
        let rate = [10_000_000, 1_000_000_000, 100_000_000_000];
        let rate = rate[usize::from(self.pulling / 4 % 3)];
        let window = [1, 1_436, 10_000, 60_000][usize::from(self.pull_window % 4)];
        Some(Pull::new(rate, window).in_order(order))
    }
}

/// Silence after which a session dies; the default.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(2);

/// Records, and control packets, under one key: repetitions must not use it up, or the session dies
/// (see `TransportConfig::key_limits`).
const RECORDS_PER_KEY: u64 = 1 << 20;

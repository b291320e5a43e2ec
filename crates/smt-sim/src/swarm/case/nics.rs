// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which hosts have a NIC that seals records, and how small the NIC is.

use std::time::Duration;

use smt_carrier::{Capabilities, HeaderCopy, Sealing};
use smt_nic::NicConfig;
use smt_nic::context_memory::ContextLimits;
use smt_nic::receive::ReceiveConfig;
use smt_nic::receive::rss::{Rss, RssFields};
use smt_nic_driver::DriverConfig;

use super::Case;
use crate::net::nic_port::NicChoices;
use crate::random::Random;

impl Case {
    /// Draws NICs in a quarter of the cases, for three hosts in four.
    pub(super) fn draw_nics(&mut self, random: &mut Random) {
        if !random.chance(250_000) {
            return;
        }
        // Apart, so that what the hosts send by is drawn as ever.
        let mut receiving = Random::new(self.seed ^ RECEIVING);
        for host in 0..self.nics.len() {
            if random.chance(750_000) {
                self.nics[host] = Some(choices(random).receiving(&mut receiving));
                let carrier = self.capabilities[host].unwrap_or(UDP);
                self.capabilities[host] = Some(
                    carrier.with_headers(HeaderCopy::Replicated).with_seals(Sealing::WholeRecords),
                );
            }
        }
    }
}

fn choices(random: &mut Random) -> NicChoices {
    let driver = DriverConfig {
        queues: random.between(1, 3) as u16,
        receive_queues: 0,
        ring_entries: *random.pick(&[8, 16, 256]),
        contexts_per_flow: random.between(1, 2) as usize,
        contexts_per_queue: *random.pick(&[1, 2, 4, 64]),
        offload_bytes_min: *random.pick(&[0, 500, 1_024]),
        waiting_max: 1_024,
        ..DriverConfig::default()
    };
    let device = NicConfig {
        contexts: ContextLimits {
            contexts_max: *random.pick(&[0, 1, 3, 100]),
            cached_max: *random.pick(&[1, 8]),
        },
        counts_smt_sequence: random.chance(500_000),
        ..NicConfig::default()
    };
    NicChoices {
        driver,
        device,
        reset_chance: *random.pick(&[0, 2_000, 20_000]),
        batches_max: 1,
        interrupt_delay: Duration::ZERO,
    }
}

impl NicChoices {
    /// The same with a receive side, classes of priorities and batches that compete.
    fn receiving(mut self, random: &mut Random) -> Self {
        self.driver.priority_classes = *random.pick(&[1, 2, 8]);
        self.driver.receive_queues = random.between(1, 3) as u16;
        self.driver.receive_buffers = *random.pick(&[1, 4, 32]);
        self.driver.receive_contexts = *random.pick(&[0, 1, 4, 64]);
        self.device.receive = ReceiveConfig {
            rss: Rss {
                fields: *random.pick(&[RssFields::Ports, RssFields::PortsAndMessage]),
                ..Rss::default()
            },
            merges_max: *random.pick(&[0, 1, 16]),
            contexts_max: *random.pick(&[1, 3, 64]),
        };
        self.interrupt_delay = Duration::from_nanos(*random.pick(&[0, 2_000, 20_000, 100_000]));
        self.batches_max = *random.pick(&[1, 4]);
        self
    }
}

/// Keeps how NICs receive apart from the rest.
const RECEIVING: u64 = 0x21C5_2EC0;

/// The abilities that an endpoint counts on until it is told.
const UDP: Capabilities =
    Capabilities::new(65_507).with_segments_max(64).with_priorities(true).with_trims(true);

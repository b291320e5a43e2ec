// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Events that hosts met in a run, apart from packets and faults.

use smt_nic::Counters;
use smt_nic_driver::DriverStatistics;
use smt_proto::Statistics;

use super::player::Player;
use crate::net::smt_host::SmtHost;

/// Which of them were met, by name.
pub(super) struct Events([(&'static str, bool); 21]);

impl Events {
    /// Those that may be met.
    pub(super) const NAMES: [&str; 21] = [
        KEY_UPDATE,
        RESTART,
        WINDOW_EDGE,
        TOO_LARGE,
        REPLY_TOO_LARGE,
        MEMORY_REFUSAL,
        TRIMMED,
        TRIMMED_ASKED,
        BUNDLE,
        PARTS,
        PART_WINDOW_FULL,
        NIC_SEALED,
        NIC_PASSED_OVER,
        NIC_RESET,
        NIC_OPENED,
        NIC_MERGED,
        NIC_FORGERY,
        PSP_OPENED,
        PSP_IN_SOFTWARE,
        PSP_OUTDATED,
        PSP_FORGERY,
    ];

    /// The events that these hosts have met.
    pub(super) fn of(hosts: &[SmtHost<Player>]) -> Self {
        let sum = |of: fn(&Player) -> u64| -> u64 {
            hosts.iter().map(|host| of(&host.application)).sum()
        };
        let statistic = |of: fn(&Statistics) -> u64| -> u64 {
            let statistics = hosts.iter().map(|host| host.endpoint.statistics());
            statistics.map(|statistics| of(&statistics)).sum()
        };
        let nics = |of: fn(&DriverStatistics) -> u64| -> u64 {
            let nics = hosts.iter().filter_map(|host| host.nic.as_ref());
            nics.map(|nic| of(nic.statistics())).sum()
        };
        let devices = |of: fn(&Counters) -> u64| -> u64 {
            let nics = hosts.iter().filter_map(|host| host.nic.as_ref());
            nics.map(|nic| of(nic.counters())).sum()
        };
        Self([
            (KEY_UPDATE, statistic(|s| s.key_updates) > 0),
            (RESTART, sum(|player| player.sessions_renewed) > 0),
            (WINDOW_EDGE, sum(|player| player.blocked) > 0),
            (TOO_LARGE, sum(|player| player.too_large) > 0),
            (REPLY_TOO_LARGE, sum(|player| player.replies_too_large) > 0),
            (MEMORY_REFUSAL, statistic(|s| s.memory_refusals) > 0),
            (TRIMMED, statistic(|s| s.packets_trimmed) > 0),
            (TRIMMED_ASKED, statistic(|s| s.trimmed_asked) > 0),
            (BUNDLE, statistic(|s| s.bundles_sent) > 0),
            (PARTS, statistic(|s| s.parts_delivered) > 0),
            (PART_WINDOW_FULL, sum(Player::part_windows_full) > 0),
            (NIC_SEALED, nics(|s| s.segments_offloaded) > 0),
            (NIC_PASSED_OVER, nics(|s| s.records_in_software) > 0),
            (NIC_RESET, nics(|s| s.lost) > 0),
            (NIC_OPENED, devices(|c| c.records_opened) > 0),
            (NIC_MERGED, devices(|c| c.packets_merged) > 0),
            (NIC_FORGERY, devices(|c| c.openings - c.records_opened) > 0),
            (PSP_OPENED, devices(|c| c.psp_opened) > 0),
            (PSP_IN_SOFTWARE, nics(|s| s.packets_in_software) > 0),
            (PSP_OUTDATED, statistic(|s| s.data_unsealed) > 0),
            (PSP_FORGERY, devices(|c| c.psp_not_authentic) > 0),
        ])
    }

    /// Names of those that were met.
    pub(super) fn met(&self) -> impl Iterator<Item = &'static str> {
        let met = self.0.iter().filter(|(_, is_met)| *is_met);
        met.map(|(name, _)| *name)
    }
}

const KEY_UPDATE: &str = "key update";
const RESTART: &str = "session begun anew";
const WINDOW_EDGE: &str = "window edge";
const TOO_LARGE: &str = "message too long for its receiver";
const REPLY_TOO_LARGE: &str = "reply too long for its caller";
const MEMORY_REFUSAL: &str = "memory refusal";
const TRIMMED: &str = "packet trimmed";
const TRIMMED_ASKED: &str = "trimmed packet asked for";
const BUNDLE: &str = "bundle";
const PARTS: &str = "part of a call";
const PART_WINDOW_FULL: &str = "part window full";
const NIC_SEALED: &str = "records sealed by a NIC";
const NIC_PASSED_OVER: &str = "records sealed in software before a NIC";
const NIC_RESET: &str = "segments lost by a NIC's reset";
const NIC_OPENED: &str = "records opened by a NIC";
const NIC_MERGED: &str = "packets merged by a NIC";
const NIC_FORGERY: &str = "records that a NIC could not open";
const PSP_OPENED: &str = "packets opened by a NIC";
const PSP_IN_SOFTWARE: &str = "packets sealed in software before a NIC";
const PSP_OUTDATED: &str = "record outside the packets of its session";
const PSP_FORGERY: &str = "packets that a NIC could not open";

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effects that are no failure in a case: an attacker's, those of lost CONFIRMs and of messages
//! that wait for long.

use std::time::Duration;

use smt_record::KeyLimits;
use smt_wire::PacketType;

use super::Case;
use crate::net::fault::FaultKind;

impl Case {
    /// The same case with an attacker on the path.
    #[must_use]
    pub fn attacked(mut self) -> Self {
        self.has_adversary = true;
        self.allow_for_long_waits();
        self.allow_for_lost_confirms();
        self.allow_for_adversary();
        self
    }

    /// A client whose CONFIRMs are lost gives up a session that its server may have already (SPEC
    /// §6.5). An attacker takes what such a fault leaves.
    pub(super) fn allow_for_lost_confirms(&mut self) {
        let least = match self.has_adversary {
            true => LONG_IF_ATTACKED,
            false => FOUR_CONFIRMS,
        };
        let hosts = self.hosts();
        for fault in &self.link_faults {
            let is_of_confirms = match fault.kind {
                FaultKind::OneTypeLoss => fault.extent == PacketType::Confirm as u64,
                kind => kind == FaultKind::HalfPartition,
            };
            if is_of_confirms && fault.until >= fault.from + least {
                self.may_end.add_either(fault.pair, hosts);
            }
        }
    }

    /// Permits the effects that an attacker may have beside other faults, and that are no failure.
    pub(super) fn allow_for_adversary(&mut self) {
        if !self.has_adversary {
            return;
        }
        let hosts = self.hosts();
        for fault in &self.link_faults {
            let is_partition =
                matches!(fault.kind, FaultKind::HalfPartition | FaultKind::Partition);
            if is_partition && fault.until >= fault.from + LONG_IF_ATTACKED {
                self.may_end.add_either(fault.pair, hosts);
            }
        }
        for (host, time) in self.pauses() {
            if time >= LONG_IF_ATTACKED {
                self.may_end.add_all_of(host, hosts);
            }
        }
    }

    /// Messages that hold an epoch wait for seconds where there is little memory or their ends are
    /// lost, and for as long as an attacker stays. Hosts ask thousands of times meanwhile: more
    /// than a key of few control packets has, and without any a session falls silent and dies (SPEC
    /// §7.3). A real key lasts two thousand times as long.
    pub(super) fn allow_for_long_waits(&mut self) {
        let mut faults = self.link_faults.iter();
        let ends_are_lost = faults.any(|fault| fault.kind == FaultKind::EndLoss);
        if !(self.has_small_memory || self.has_adversary || ends_are_lost) {
            return;
        }
        for config in &mut self.configs {
            let limits = &config.key_limits;
            config.key_limits = KeyLimits::new(65_536, limits.update_at(), limits.failed_opens())
                .expect("these are within the limits of limits");
        }
    }
}

/// A CONFIRM is sent at once and after 50, 150, 350 and 750 ms (or up to a quarter later), and then
/// the attempt is given up (SPEC §6.5). The loss of CONFIRMs for this long can take four of them,
/// and other faults the fifth.
const FOUR_CONFIRMS: Duration = Duration::from_millis(350);
/// A partition or a pause of this length, or the loss of CONFIRMs, can take three of them, and an
/// attacker the others.
const LONG_IF_ATTACKED: Duration = Duration::from_millis(100);

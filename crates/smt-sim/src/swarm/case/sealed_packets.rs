// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which NICs seal whole packets (SPEC §15.4), and what happens to their associations.

use smt_nic::psp::GROWTH_BYTES;
use smt_wire::PacketType;

use super::{Case, GRAVE, HostFaultKind};
use crate::net::fault::FaultKind;
use crate::net::packet::HostId;
use crate::random::Random;

impl Case {
    /// Lets the NICs of half of the cases that have any seal packets, replace their keys, and lose
    /// words about associations.
    pub(super) fn draw_sealed_packets(&mut self, random: &mut Random) {
        if !random.chance(500_000) {
            return;
        }
        let mut seals = false;
        let both = self.nics.iter_mut().zip(&mut self.capabilities);
        for (nic, capabilities) in both {
            let (Some(nic), Some(capabilities)) = (nic, capabilities) else {
                continue;
            };
            nic.driver.psp = true;
            nic.driver.psp_associations = *random.pick(&[2, 64]);
            nic.driver.psp_contexts = *random.pick(&[0, 1, 64]);
            *capabilities = capabilities.with_seals_packets(true);
            capabilities.datagram_max -= GROWTH_BYTES;
            seals = true;
        }
        if !seals {
            return;
        }
        self.keep_room_for_sealed_packets();
        for _ in 0..random.below(6) {
            self.draw_fault(FaultKind::DeviceKey, GRAVE, random);
        }
        // An attacker may take one packet of a long flight each time, until the client gives up a
        // session that the server has (SPEC §6.5).
        if random.chance(250_000) && self.certificates_longer_by == 0 {
            self.draw_fault(FaultKind::Adversary, GRAVE, random);
        }
        if random.chance(500_000) {
            let lost = *random.pick(&ASSOCIATION_TYPES) as u64;
            self.link_fault(FaultKind::OneTypeLoss, 900_000, lost, random);
        }
    }

    /// Whether a host's NIC seals packets.
    pub(in crate::swarm) fn seals_packets(&self) -> bool {
        let mut nics = self.nics.iter().flatten();
        nics.any(|nic| nic.driver.psp)
    }

    /// Hosts whose NICs give no SPI twice: it takes two rotations until the first ones come again.
    pub(in crate::swarm) fn hosts_of_lasting_spis(&self) -> impl Iterator<Item = HostId> + '_ {
        let rotations = |host: &HostId| {
            let faults = self.host_faults.iter();
            let own = faults.filter(|fault| fault.host == *host);
            own.filter(|fault| fault.kind == HostFaultKind::RotateDeviceKey).count()
        };
        let hosts = (0..self.hosts()).map(HostId);
        hosts.filter(move |host| rotations(host) < 2)
    }

    /// Every path takes a packet with a datagram of 1,200 bytes, sealed (SPEC §9.7).
    fn keep_room_for_sealed_packets(&mut self) {
        let faults = self.link_faults.iter_mut();
        let shrink = faults.filter(|fault| fault.kind == FaultKind::Shrink);
        shrink.for_each(|fault| fault.extent = fault.extent.max(SEALED_FLOOR));
    }
}

const ASSOCIATION_TYPES: [PacketType; 3] =
    [PacketType::Association, PacketType::AssociationAck, PacketType::AssociationRequest];
/// Bytes behind UDP of the shortest packet that every path takes.
const SEALED_FLOOR: u64 = 1_200 + GROWTH_BYTES as u64;

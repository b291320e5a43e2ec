// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policies and associations of a host (RFC 4301 §4.4).

use std::collections::HashMap;
use std::time::Duration;

use crate::buffer::PacketBuffer;
use crate::error::{OpenError, SealError};
use crate::inbound::{InboundAssociation, Opened};
use crate::ip::Headers;
use crate::limits::ESP_UDP_PORT;
use crate::locate::{Carried, EspPlace};
use crate::outbound::{OutboundAssociation, Sealed};
use crate::parameters::ParametersError;
use crate::selector::{Flow, Selectors};
use crate::statistics::Statistics;

/// An association for packets out, in its [`Database`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct OutboundId(usize);

/// The action of a policy on its packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// They are dropped.
    Discard,
    /// They pass without ESP, in both directions.
    Bypass,
    /// They leave by this association, and come in by ESP alone.
    Protect(OutboundId),
}

/// Which packets are protected, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Policy {
    /// The packets.
    pub selectors: Selectors,
    /// The action on them.
    pub action: Action,
}

/// How a packet leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Departure {
    /// As it is.
    Bypass,
    /// Sealed.
    Sealed(Sealed),
}

/// The kind of a packet that came in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arrival {
    /// A packet that was opened. A dummy is to be dropped.
    Opened(Opened),
    /// A packet without ESP, which its policy lets in.
    Bypass,
    /// A message for IKE in UDP, behind its marker; the buffer is unchanged.
    Ike,
    /// A keepalive in UDP, to be dropped.
    Keepalive,
}

/// Policies and associations of a host.
///
/// Packets out are for the first policy that matches, packets in for the association that their
/// SPI names. A packet that no policy names is dropped in both directions (RFC 4301 §5).
#[derive(Default)]
pub struct Database {
    policies: Vec<Policy>,
    outbound: Vec<Option<OutboundAssociation>>,
    inbound: HashMap<u32, Vec<InboundAssociation>>,
    statistics: Statistics,
    udp_port: Option<u16>,
}

impl Database {
    /// A database without policies, which takes ESP in UDP at port 4500.
    #[must_use]
    pub fn new() -> Self {
        Self { udp_port: Some(ESP_UDP_PORT), ..Self::default() }
    }

    /// The UDP port where ESP in UDP comes to; with nothing, no datagram is taken for ESP.
    pub const fn set_udp_port(&mut self, port: Option<u16>) {
        self.udp_port = port;
    }

    /// Adds a policy behind the others.
    pub fn add_policy(&mut self, policy: Policy) {
        self.policies.push(policy);
    }

    /// The policies, in their order.
    pub const fn policies_mut(&mut self) -> &mut Vec<Policy> {
        &mut self.policies
    }

    /// Adds an association for packets out.
    pub fn add_outbound(&mut self, association: OutboundAssociation) -> OutboundId {
        self.outbound.push(Some(association));
        OutboundId(self.outbound.len() - 1)
    }

    /// A place for an association that comes later: until then its policies drop their packets.
    pub fn reserve_outbound(&mut self) -> OutboundId {
        self.outbound.push(None);
        OutboundId(self.outbound.len() - 1)
    }

    /// Replaces an association for packets out by its successor, whose keys the peer has already.
    /// Policies go on with the new one. Gives back the old one, if there was one.
    pub fn replace_outbound(
        &mut self,
        id: OutboundId,
        successor: OutboundAssociation,
    ) -> Option<OutboundAssociation> {
        self.outbound.get_mut(id.0)?.replace(successor)
    }

    /// Takes an association for packets out away: its policies then drop their packets.
    pub fn remove_outbound(&mut self, id: OutboundId) -> Option<OutboundAssociation> {
        self.outbound.get_mut(id.0)?.take()
    }

    /// An association for packets out.
    #[must_use]
    pub fn outbound(&self, id: OutboundId) -> Option<&OutboundAssociation> {
        self.outbound.get(id.0)?.as_ref()
    }

    /// An association for packets out, to seal dummies by it.
    pub fn outbound_mut(&mut self, id: OutboundId) -> Option<&mut OutboundAssociation> {
        self.outbound.get_mut(id.0)?.as_mut()
    }

    /// Adds an association for packets in.
    ///
    /// # Errors
    /// If another has the same SPI and addresses.
    pub fn add_inbound(&mut self, association: InboundAssociation) -> Result<(), ParametersError> {
        let spi = association.spi();
        let same_spi = self.inbound.entry(spi).or_default();
        let addresses = association.addresses();
        if same_spi.iter().any(|other| other.addresses() == addresses) {
            return Err(ParametersError::InUse(spi));
        }
        same_spi.push(association);
        Ok(())
    }

    /// Takes all associations of an SPI for packets in away.
    pub fn remove_inbound(&mut self, spi: u32) -> Vec<InboundAssociation> {
        self.inbound.remove(&spi).unwrap_or_default()
    }

    /// The associations of an SPI for packets in.
    #[must_use]
    pub fn inbound(&self, spi: u32) -> &[InboundAssociation] {
        self.inbound.get(&spi).map_or(&[], Vec::as_slice)
    }

    /// Counts since the database was made.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Handles the IP packet in `buffer` that is to leave: RFC 4301 §5.1.
    ///
    /// # Errors
    /// [`SealError`]; the packet must not be sent then.
    pub fn seal(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        now: Duration,
    ) -> Result<Departure, SealError> {
        let result = self.seal_uncounted(buffer, now);
        match result {
            Ok(Departure::Bypass) => self.statistics.bypassed += 1,
            Ok(Departure::Sealed(_)) => self.statistics.sealed += 1,
            Err(error) => self.statistics.count_seal_error(error),
        }
        result
    }

    fn seal_uncounted(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        now: Duration,
    ) -> Result<Departure, SealError> {
        let Some(id) = self.protecting(buffer.packet())? else {
            return Ok(Departure::Bypass);
        };
        let association = self.outbound.get_mut(id.0).and_then(Option::as_mut);
        let association = association.ok_or(SealError::NoAssociation)?;
        association.seal(buffer, now).map(Departure::Sealed)
    }

    /// The association by which a packet leaves; nothing if it bypasses ESP.
    fn protecting(&self, packet: &[u8]) -> Result<Option<OutboundId>, SealError> {
        let flow = Flow::of_packet(packet)?;
        let policy = self.policies.iter().find(|policy| policy.selectors.match_outbound(&flow));
        match policy.map_or(Action::Discard, |policy| policy.action) {
            Action::Discard => Err(SealError::Policy),
            Action::Bypass => Ok(None),
            Action::Protect(id) => {
                let association = self.outbound(id).ok_or(SealError::NoAssociation)?;
                if association.is_for(&flow) { Ok(Some(id)) } else { Err(SealError::Selectors) }
            }
        }
    }

    /// The longest packet of this one's flow, in bytes with its IP header, that is at most `mtu`
    /// bytes once it is sealed.
    ///
    /// # Errors
    /// [`SealError`], counted, if no packet of the flow may leave.
    pub fn longest_packet(&mut self, packet: &[u8], mtu: usize) -> Result<usize, SealError> {
        let id = self.protecting(packet).inspect_err(|error| {
            self.statistics.count_seal_error(*error);
        })?;
        let association = id.and_then(|id| self.outbound(id));
        Ok(association.map_or(mtu, |association| association.longest_packet(mtu)))
    }

    pub(crate) const fn count_seal_error(&mut self, error: SealError) {
        self.statistics.count_seal_error(error);
    }

    /// Handles the IP packet in `buffer` that came in: RFC 4301 §5.2.
    ///
    /// # Errors
    /// [`OpenError`]; the packet is to be dropped then.
    pub fn open(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        now: Duration,
    ) -> Result<Arrival, OpenError> {
        let result = match Carried::find(buffer.packet(), self.udp_port) {
            Ok(Carried::Esp(place)) => self.open_esp(buffer, &place, now),
            Ok(Carried::Ike) => Ok(Arrival::Ike),
            Ok(Carried::Keepalive) => Ok(Arrival::Keepalive),
            Ok(Carried::Other) => self.let_in(buffer.packet()),
            Err(error) => Err(error),
        };
        match result {
            Ok(Arrival::Opened(opened)) if opened.dummy => self.statistics.dummies += 1,
            Ok(Arrival::Opened(_)) => self.statistics.opened += 1,
            Ok(Arrival::Bypass) => self.statistics.bypassed += 1,
            Ok(Arrival::Ike | Arrival::Keepalive) => {}
            Err(error) => self.statistics.count_open_error(error),
        }
        result
    }

    fn open_esp(
        &mut self,
        buffer: &mut PacketBuffer<'_>,
        place: &EspPlace,
        now: Duration,
    ) -> Result<Arrival, OpenError> {
        let same_spi = self.inbound.get_mut(&place.spi).map(Vec::as_mut_slice);
        let association = same_spi
            .unwrap_or_default()
            .iter_mut()
            .filter_map(|association| Some((association.fit(place)?, association)))
            .max_by_key(|(fit, _)| *fit);
        match association {
            Some((_, association)) => association.open(buffer, place, now).map(Arrival::Opened),
            None => Err(OpenError::NoAssociation { spi: place.spi }),
        }
    }

    /// A packet without ESP passes only where the first policy that matches says so.
    fn let_in(&self, packet: &[u8]) -> Result<Arrival, OpenError> {
        let flow = Flow::new(packet, &Headers::parse(packet)?);
        let policy = self.policies.iter().find(|policy| policy.selectors.match_inbound(&flow));
        match policy.map(|policy| policy.action) {
            Some(Action::Bypass) => Ok(Arrival::Bypass),
            _ => Err(OpenError::Policy),
        }
    }
}

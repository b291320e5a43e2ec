// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An association as people and programs write it: in a configuration file, or in a request to a
//! tunnel that runs.

mod values;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smt_esp::{
    Addresses, Encapsulation, InboundAssociation, KeyMaterial, Lifetime, Limit, Mode,
    OutboundAssociation, Parameters, ParametersError, Selectors, TunnelHeader,
};
use zeroize::Zeroizing;

use crate::statistics::AssociationCounts;
pub(crate) use values::Prefix;
pub use values::SuiteName;
use values::{KeyText, PortRange, ProtocolName};

/// The way of an association's packets.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Packets that this host sends.
    Out,
    /// Packets that this host receives.
    In,
}

/// Transport or tunnel mode.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeName {
    /// The payload of a packet is protected.
    #[default]
    Transport,
    /// A whole packet is protected, behind an outer header.
    Tunnel,
}

impl ModeName {
    const fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::Tunnel => "tunnel",
        }
    }
}

/// Which packets an association or a policy is for; a field that is not there is a wildcard.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct SelectorSpec {
    pub(crate) local: Option<Prefix>,
    pub(crate) remote: Option<Prefix>,
    pub(crate) protocol: Option<ProtocolName>,
    pub(crate) local_ports: Option<PortRange>,
    pub(crate) remote_ports: Option<PortRange>,
}

impl SelectorSpec {
    pub(crate) fn selectors(&self) -> Selectors {
        let addresses =
            |prefix: &Option<Prefix>| prefix.as_ref().map_or(Addresses::ANY, Prefix::addresses);
        let ports = |range: &Option<PortRange>| -> Option<RangeInclusive<u16>> {
            range.as_ref().map(PortRange::range)
        };
        Selectors {
            local: addresses(&self.local),
            remote: addresses(&self.remote),
            protocol: self.protocol.as_ref().map(ProtocolName::number),
            local_ports: ports(&self.local_ports),
            remote_ports: ports(&self.remote_ports),
        }
    }
}

/// An association for one direction.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AssociationSpec {
    /// Packets that leave, or packets that come.
    pub direction: Direction,
    /// The receiver's number of the association.
    pub spi: u32,
    /// Policies name an association for packets out so.
    #[serde(default = "default_name")]
    pub name: String,
    pub(crate) suite: SuiteName,
    pub(crate) key: KeyText,
    #[serde(default)]
    pub(crate) mode: ModeName,
    /// The peer's address: of the outer header in tunnel mode, and the one that packets in must
    /// come from.
    #[serde(default)]
    pub peer: Option<IpAddr>,
    #[serde(default)]
    pub(crate) extended_numbers: bool,
    #[serde(default = "first_number")]
    pub(crate) first_number: u64,
    #[serde(default)]
    pub(crate) replay_window: Option<u32>,
    #[serde(default)]
    pub(crate) lifetime: LifetimeSpec,
    #[serde(default)]
    pub(crate) selectors: SelectorSpec,
}

/// How long an association may be used; without a limit where a field is not there.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct LifetimeSpec {
    /// Bytes after which it should be replaced.
    pub soft_bytes: Option<u64>,
    /// Bytes after which nothing passes.
    pub hard_bytes: Option<u64>,
    /// Packets after which it should be replaced.
    pub soft_packets: Option<u64>,
    /// Packets after which nothing passes.
    pub hard_packets: Option<u64>,
    /// Seconds after which it should be replaced.
    pub soft_seconds: Option<u64>,
    /// Seconds after which nothing passes.
    pub hard_seconds: Option<u64>,
}

/// Properties of the path that all associations of a tunnel share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathProperties {
    /// This host's address.
    pub(crate) local: IpAddr,
    /// ESP in UDP.
    pub(crate) encapsulation: Option<Encapsulation>,
}

/// Why an association cannot be: the field, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct AssociationError {
    /// The field.
    pub field: &'static str,
    /// The reason, in words.
    pub reason: String,
}

/// An association that two ends have agreed on by a handshake.
#[derive(Debug)]
pub struct AgreedAssociation {
    /// Packets that leave, or packets that come.
    pub direction: Direction,
    /// The receiver's number of the association.
    pub spi: u32,
    /// The name: policies call associations for packets out by it.
    pub name: String,
    /// The suite.
    pub suite: SuiteName,
    /// Keying material: the key, and the salt behind it.
    pub key: Zeroizing<Vec<u8>>,
    /// Transport or tunnel mode.
    pub mode: ModeName,
    /// The peer's address.
    pub peer: IpAddr,
}

impl From<AgreedAssociation> for AssociationSpec {
    /// Both ends know of extended numbers.
    fn from(agreed: AgreedAssociation) -> Self {
        Self {
            direction: agreed.direction,
            spi: agreed.spi,
            name: agreed.name,
            suite: agreed.suite,
            key: KeyText::new(agreed.key),
            mode: agreed.mode,
            peer: Some(agreed.peer),
            extended_numbers: true,
            first_number: first_number(),
            replay_window: None,
            lifetime: LifetimeSpec::default(),
            selectors: SelectorSpec::default(),
        }
    }
}

impl AssociationSpec {
    /// The association for packets out.
    pub(crate) fn outbound(
        &self,
        path: PathProperties,
        now: Duration,
    ) -> Result<OutboundAssociation, AssociationError> {
        OutboundAssociation::new(self.parameters(path)?, now).map_err(refused)
    }

    /// The association for packets in.
    pub(crate) fn inbound(
        &self,
        path: PathProperties,
        now: Duration,
    ) -> Result<InboundAssociation, AssociationError> {
        InboundAssociation::new(self.parameters(path)?, now).map_err(refused)
    }

    /// The packets that it is for. Transport mode keeps addresses: they are those of the two ends.
    pub(crate) fn selectors(&self, path: PathProperties) -> Selectors {
        let mut selectors = self.selectors.selectors();
        if let (ModeName::Transport, Some(peer)) = (self.mode, self.peer) {
            if self.selectors.local.is_none() {
                selectors.local = Addresses::one(path.local);
            }
            if self.selectors.remote.is_none() {
                selectors.remote = Addresses::one(peer);
            }
        }
        selectors
    }

    /// Counts of nothing yet.
    pub(crate) fn counts(&self) -> AssociationCounts {
        AssociationCounts {
            direction: self.direction,
            spi: self.spi,
            name: self.name.clone(),
            suite: self.suite.name().to_owned(),
            mode: self.mode.name().to_owned(),
            peer: self.peer,
            bytes: 0,
            packets: 0,
            sequence_number: None,
            replay_window: 0,
            replay: 0,
            failed: 0,
            soft_expired: false,
        }
    }

    fn parameters(&self, path: PathProperties) -> Result<Parameters, AssociationError> {
        let error = |field, reason: String| AssociationError { field, reason };
        let key = KeyMaterial::new(self.suite.suite(), self.key.bytes());
        let key = key.map_err(|why| error("key", why.to_string()))?;
        let mode = match (self.mode, self.peer) {
            (ModeName::Transport, _) => Mode::Transport,
            (ModeName::Tunnel, Some(peer)) => Mode::Tunnel(TunnelHeader::new(path.local, peer)),
            (ModeName::Tunnel, None) => {
                let reason = "tunnel mode needs the peer's address".to_owned();
                return Err(error("peer", reason));
            }
        };
        let mut parameters = Parameters::new(self.spi, key, mode);
        parameters.encapsulation = path.encapsulation;
        parameters.extended_numbers = self.extended_numbers;
        parameters.lifetime = self.lifetime.lifetime();
        parameters.selectors = self.selectors(path);
        parameters.first_number = self.first_number;
        if let Some(width) = self.replay_window {
            parameters.replay_window = width;
        }
        if self.direction == Direction::In {
            parameters.remote = self.peer;
        }
        Ok(parameters)
    }
}

impl LifetimeSpec {
    fn lifetime(&self) -> Lifetime {
        Lifetime {
            bytes: Limit { soft: self.soft_bytes, hard: self.hard_bytes },
            packets: Limit { soft: self.soft_packets, hard: self.hard_packets },
            time: Limit {
                soft: self.soft_seconds.map(Duration::from_secs),
                hard: self.hard_seconds.map(Duration::from_secs),
            },
        }
    }
}

fn refused(error: ParametersError) -> AssociationError {
    let field = match error {
        ParametersError::Spi(_) | ParametersError::InUse(_) => "spi",
        ParametersError::FirstNumber(_) => "first-number",
        ParametersError::ReplayWindow(_) => "replay-window",
        ParametersError::TunnelAddresses => "peer",
    };
    AssociationError { field, reason: error.to_string() }
}

/// A number for an association whose packets come here: any of 2^31, so that none comes again soon.
///
/// # Errors
/// The system gives no random bytes.
pub fn random_spi() -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| std::io::Error::other("no random bytes"))?;
    Ok(u32::from_be_bytes(bytes) | 0x8000_0000)
}

/// The name of an association that has no other.
pub(crate) fn default_name() -> String {
    "default".to_owned()
}

const fn first_number() -> u64 {
    1
}

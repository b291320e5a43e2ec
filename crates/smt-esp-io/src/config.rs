// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The configuration of a tunnel, as a TOML file; what is wrong in it is told with line and field.

mod error;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use smt_esp::{Encapsulation, limits};
use toml::Spanned;
use zeroize::Zeroizing;

use crate::association::{
    AssociationSpec, Direction, PathProperties, Prefix, SelectorSpec, default_name,
};
pub use error::ConfigError;

/// A tunnel as it was written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    #[serde(default)]
    pub(crate) device: DeviceConfig,
    pub(crate) underlay: UnderlayConfig,
    #[serde(default)]
    pub(crate) offloads: OffloadConfig,
    #[serde(default, rename = "association")]
    pub(crate) associations: Vec<Spanned<AssociationSpec>>,
    #[serde(default, rename = "policy")]
    pub(crate) policies: Vec<Spanned<PolicySpec>>,
    /// The Unix socket on which the tunnel answers; by default in `/run`.
    #[serde(default)]
    pub(crate) control: Option<PathBuf>,
    /// The file of hashes of the keys that this host has used.
    #[serde(default = "used_keys")]
    pub(crate) used_keys: PathBuf,
}

/// The TUN device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct DeviceConfig {
    pub(crate) name: String,
    pub(crate) addresses: Vec<Prefix>,
    pub(crate) routes: Vec<Prefix>,
    /// By default the longest packet that fits once it is sealed.
    pub(crate) mtu: Option<u16>,
    /// Workers, each with a queue of the device and a socket.
    pub(crate) queues: u16,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        Self {
            name: "esp0".to_owned(),
            addresses: Vec::new(),
            routes: Vec::new(),
            mtu: None,
            queues: 1,
        }
    }
}

/// How ESP travels.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EncapsulationName {
    /// In UDP (RFC 3948).
    #[default]
    Udp,
    /// By itself, as IP protocol 50.
    None,
}

/// The network below the tunnel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct UnderlayConfig {
    pub(crate) local: IpAddr,
    #[serde(default)]
    pub(crate) device: Option<String>,
    #[serde(default)]
    pub(crate) encapsulation: EncapsulationName,
    #[serde(default = "esp_port")]
    pub(crate) port: u16,
    #[serde(default = "esp_port")]
    pub(crate) peer_port: u16,
    /// Bytes of the longest packet that the network passes.
    #[serde(default = "ethernet_mtu")]
    pub(crate) mtu: u16,
}

/// The offloads, each of which can be switched off by itself.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct OffloadConfig {
    /// The host leaves transport checksums to the tunnel.
    pub(crate) checksums: bool,
    /// The host hands over super-packets, which are cut before they are sealed.
    pub(crate) segmentation: bool,
    /// Packets are coalesced into super-packets once they are opened.
    pub(crate) coalescing: bool,
    /// Sealed packets leave many to a system call.
    pub(crate) batched_send: bool,
    /// ESP in UDP comes many packets to a system call.
    pub(crate) batched_receive: bool,
}

impl Default for OffloadConfig {
    fn default() -> Self {
        Self {
            checksums: true,
            segmentation: true,
            coalescing: true,
            batched_send: true,
            batched_receive: true,
        }
    }
}

/// The action of a policy.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionName {
    #[default]
    Protect,
    Discard,
}

/// Which packets are protected by which association, or dropped.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PolicySpec {
    #[serde(default)]
    pub(crate) action: ActionName,
    #[serde(default = "default_name")]
    pub(crate) association: String,
    #[serde(default)]
    pub(crate) selectors: SelectorSpec,
}

/// A file of associations alone.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AssociationFile {
    #[serde(rename = "association")]
    associations: Vec<AssociationSpec>,
}

/// Reads a file that has nothing but `[[association]]` tables.
///
/// # Errors
/// The first thing that is wrong.
pub fn read_associations(path: &Path) -> Result<Vec<AssociationSpec>, ConfigError> {
    let (text, file) = read_secret(path)?;
    let parsed: AssociationFile =
        toml::from_str(&text).map_err(|error| ConfigError::of_toml(&error, &text, &file))?;
    Ok(parsed.associations)
}

/// The text of a file that has keys, and its name: no one but its owner may read it.
fn read_secret(path: &Path) -> Result<(Zeroizing<String>, String), ConfigError> {
    let file = path.display().to_string();
    let unreadable = |reason| ConfigError::Unreadable { file: file.clone(), reason };
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode();
    let text = Zeroizing::new(std::fs::read_to_string(path).map_err(unreadable)?);
    if mode & 0o077 != 0 {
        return Err(ConfigError::Exposed { file });
    }
    Ok((text, file))
}

impl Config {
    /// Reads a file. It has keys: no one but its owner may read it.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let (text, file) = read_secret(path)?;
        Self::parse(&text, &file)
    }

    /// Reads the text of a file of that name.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigError> {
        let config: Self =
            toml::from_str(text).map_err(|error| ConfigError::of_toml(&error, text, file))?;
        config.check(text, file)?;
        Ok(config)
    }

    fn check(&self, text: &str, file: &str) -> Result<(), ConfigError> {
        let place = error::Place { text, file };
        for association in &self.associations {
            let at = association.span().start;
            self.check_association(association.get_ref())
                .map_err(|wrong| place.at(at, format!("association.{}", wrong.0), wrong.1))?;
        }
        for policy in &self.policies {
            let (at, spec) = (policy.span().start, policy.get_ref());
            if spec.action == ActionName::Protect && !self.has_name(&spec.association) {
                let reason =
                    format!("no association for packets out is named {:?}", spec.association);
                return Err(place.at(at, "policy.association".to_owned(), reason));
            }
        }
        let queues = 1..=MOST_QUEUES;
        if !queues.contains(&self.device.queues) {
            let reason =
                format!("{} queues, where 1 to {MOST_QUEUES} are possible", self.device.queues);
            return Err(place.of_field("queues", "device.queues", reason));
        }
        if self.underlay.mtu < LEAST_MTU {
            let reason = format!("{} bytes, where {LEAST_MTU} are the least", self.underlay.mtu);
            return Err(place.of_field("mtu", "underlay.mtu", reason));
        }
        Ok(())
    }

    fn check_association(&self, spec: &AssociationSpec) -> Result<(), (String, String)> {
        let path = self.path_properties();
        let made = match spec.direction {
            Direction::Out => spec.outbound(path, std::time::Duration::ZERO).map(drop),
            Direction::In => spec.inbound(path, std::time::Duration::ZERO).map(drop),
        };
        made.map_err(|error| (error.field.to_owned(), error.reason))?;
        if spec.peer.is_some_and(|peer| peer.is_ipv4() != self.underlay.local.is_ipv4()) {
            let reason = "the peer and underlay.local are of different IP versions";
            return Err(("peer".to_owned(), reason.to_owned()));
        }
        let same = self.associations.iter().filter(|other| {
            let other = other.get_ref();
            other.direction == spec.direction && other.spi == spec.spi && other.peer == spec.peer
        });
        if same.count() > 1 {
            let reason = format!("{:#x} is another association's too", spec.spi);
            return Err(("spi".to_owned(), reason));
        }
        Ok(())
    }

    fn has_name(&self, name: &str) -> bool {
        // Without associations their keys come later, by the control socket.
        self.associations.is_empty()
            || self.associations.iter().any(|association| {
                let spec = association.get_ref();
                spec.direction == Direction::Out && spec.name == name
            })
    }

    /// The names by which policies call associations for packets out.
    pub(crate) fn names(&self) -> Vec<String> {
        let of_policies = self.policies.iter().map(|policy| &policy.get_ref().association);
        let of_associations = self.associations.iter().map(|spec| &spec.get_ref().name);
        let mut names: Vec<String> = of_policies.chain(of_associations).cloned().collect();
        names.push(default_name());
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn path_properties(&self) -> PathProperties {
        let in_udp = self.underlay.encapsulation == EncapsulationName::Udp;
        PathProperties {
            local: self.underlay.local,
            encapsulation: in_udp.then_some(Encapsulation {
                local_port: self.underlay.port,
                remote_port: self.underlay.peer_port,
            }),
        }
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        SocketAddr::new(self.underlay.local, self.underlay.port)
    }

    /// The Unix socket on which the tunnel answers.
    #[must_use]
    pub fn control_path(&self) -> PathBuf {
        let of_device = || default_control_path(&self.device.name);
        self.control.clone().unwrap_or_else(of_device)
    }

    /// The name of the TUN device.
    #[must_use]
    pub fn device_name(&self) -> &str {
        &self.device.name
    }
}

/// The Unix socket of the tunnel with this device, unless its file says another.
#[must_use]
pub fn default_control_path(device: &str) -> PathBuf {
    PathBuf::from(format!("/run/smt-esp-{device}.sock"))
}

fn used_keys() -> PathBuf {
    PathBuf::from("/var/lib/smt-esp/used-keys")
}

const fn esp_port() -> u16 {
    limits::ESP_UDP_PORT
}

const fn ethernet_mtu() -> u16 {
    1_500
}

/// Every network passes so much (RFC 8200 §5).
const LEAST_MTU: u16 = 1_280;
/// More than the cores of most machines; each queue has a thread and 1 MB of memory.
const MOST_QUEUES: u16 = 64;

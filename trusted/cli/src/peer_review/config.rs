// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configuration files of reviewed trees: one of the group, the same for all, and one of each node.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use smt_attestation::SigningKey;
use smt_mesh::{Certificates, Member, Place};
use smt_peer_review::{Group, Options, Tree};
use smt_trusted_process::{ConfigError, DeviceEntry, OwnSecret, SecretField, Source};
use toml::Spanned;

use crate::own_device::{DeviceConfig, read_epoch};

/// A device has no group of more.
pub(crate) const NODES_MAX: usize = 9;
/// The longest evidence, in bytes: a node's journal takes it as one record.
const EVIDENCE_MAX: u64 = 96 << 20;
/// Bytes of an entry beside a message, and of each message that it sends.
const ENTRY: u64 = 512;
const SENT: u64 = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    stream: u32,
    faults: Spanned<u32>,
    degree: Spanned<u32>,
    nodes: Spanned<Vec<NodeEntry>>,
    #[serde(default)]
    options: OptionsEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    address: Spanned<String>,
    key: Spanned<String>,
    epoch: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OptionsEntry {
    interval: Spanned<u32>,
    body_bytes: Spanned<u32>,
    retained: Spanned<u32>,
    segment: Spanned<u32>,
    resend_ticks: Spanned<u32>,
    complain_ticks: Spanned<u32>,
    audit_ticks: Spanned<u32>,
    suspect_ticks: Spanned<u32>,
    tick_ms: Spanned<u32>,
}

impl Default for OptionsEntry {
    fn default() -> Self {
        let own = |value| Spanned::new(0..0, value);
        Self {
            interval: own(64),
            body_bytes: own(65_536),
            retained: own(4096),
            segment: own(64),
            resend_ticks: own(3),
            complain_ticks: own(8),
            audit_ticks: own(10),
            suspect_ticks: own(40),
            tick_ms: own(100),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberFile {
    group: PathBuf,
    node: Spanned<u32>,
    state: PathBuf,
    authority: PathBuf,
    certificate: PathBuf,
    certificate_key: PathBuf,
    signing_key: Option<PathBuf>,
    device: Option<Spanned<DeviceEntry>>,
    journal_bytes: Option<Spanned<u32>>,
}

/// The group, as nodes and third parties know it.
pub(crate) struct GroupConfig {
    pub(crate) group: Arc<Group>,
    pub(crate) tree: Tree,
    pub(crate) tick_ms: u32,
    /// The longest evidence, in bytes.
    pub(crate) evidence_max: u64,
    addresses: Vec<String>,
}

/// A node's configuration.
pub(crate) struct NodeConfig {
    pub(crate) group: GroupConfig,
    pub(crate) node: u32,
    /// The device, or the seed of the key with which the kernel in the process signs.
    pub(crate) device: DeviceConfig,
    pub(crate) state: PathBuf,
    pub(crate) place: Place,
    /// Bytes by which the journal grows before it is begun anew.
    pub(crate) journal_bytes: u64,
}

impl NodeConfig {
    /// Reads and checks the files of a node.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, file) = Source::read::<MemberFile>(path)?;
        let group = GroupConfig::read(&source.beside(&file.group))?;
        let node = *file.node.get_ref();
        let Some(expected) = group.group.keys.get(node as usize) else {
            let why = format!("the group has nodes 0 to {}", group.addresses.len() - 1);
            return Err(source.field("node", file.node.span(), why));
        };
        let seed = SecretField { name: "signing_key", path: file.signing_key.as_deref() };
        let device = OwnSecret::read(&source, seed, file.device.as_ref())?.into();
        if let DeviceConfig::Library(seed) = &device
            && *expected != SigningKey::new(seed).public_key()
        {
            let why = "signing_key is not the one of which the group has the public key";
            return Err(source.field("node", file.node.span(), why.to_owned()));
        }
        let files = [&*file.authority, &*file.certificate, &*file.certificate_key];
        let certificates = source.certificates(files);
        let state = source.beside(&file.state);
        let place = group.place(node, certificates, state.join("boot"));
        let journal_bytes = source.growth("journal_bytes", file.journal_bytes.as_ref())?;
        Ok(Self { group, node, device, state, place, journal_bytes })
    }
}

impl GroupConfig {
    /// Reads and checks the file of a group.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, file) = Source::read::<GroupFile>(path)?;
        let count = file.nodes.get_ref().len();
        if count > NODES_MAX {
            let why = format!("{count} nodes are more than {NODES_MAX}");
            return Err(source.field("nodes", file.nodes.span(), why));
        }
        let members = file.nodes.get_ref().iter().map(|it| (&it.address, &it.key));
        let (addresses, keys) = source.addresses_and_keys("node", "key", members)?;
        let degree = source.bounded("degree", &file.degree, 1..9)?;
        let options = read_options(&source, &file.options)?;
        let tick_ms = source.bounded("tick_ms", &file.options.tick_ms, 1..10_001)?;
        let nodes = file.nodes.get_ref().iter();
        let epochs: Result<_, _> = nodes.map(|it| read_epoch(&source, it.epoch.as_ref())).collect();
        let epochs = epochs?;
        let (stream, faults) = (file.stream, *file.faults.get_ref());
        let group = Group { stream, keys, epochs, faults, options };
        let wrong = |error| source.field("nodes", file.nodes.span(), format!("{error}"));
        group.check().map_err(wrong)?;
        let evidence_max = evidence_max(&options);
        if evidence_max > EVIDENCE_MAX {
            let why = format!(
                "evidence would have up to {evidence_max} bytes, of {EVIDENCE_MAX} at most: make \
                 it, `interval` or `segment` smaller"
            );
            return Err(source.field("body_bytes", file.options.body_bytes.span(), why));
        }
        let tree = Tree::new(group.nodes(), degree);
        Ok(Self { group: Arc::new(group), tree, tick_ms, evidence_max, addresses })
    }

    fn place(&self, node: u32, certificates: Certificates, boot: PathBuf) -> Place {
        Place {
            own: Member::Replica(node),
            certificates,
            addresses: self.addresses.clone(),
            clients: BTreeSet::new(),
            boot: Some(boot),
            // Evidence is the longest message.
            packet_max: u32::try_from(self.evidence_max.saturating_add(2 << 20)).ok(),
            client_bytes: 0,
        }
    }
}

fn read_options(source: &Source, entry: &OptionsEntry) -> Result<Options, ConfigError> {
    let ticks = 1..100_001;
    Ok(Options {
        interval: source.bounded("interval", &entry.interval, 2..65_537)?.into(),
        body: source.bounded("body_bytes", &entry.body_bytes, 64..1_048_577)? as usize,
        // A tree has a short one.
        state: 4096,
        // A node sends to its children.
        sends: NODES_MAX,
        retained: source.bounded("retained", &entry.retained, 64..1_000_001)? as usize,
        segment: source.bounded("segment", &entry.segment, 1..1025)? as usize,
        resend: source.bounded("resend_ticks", &entry.resend_ticks, ticks.clone())?,
        complain: source.bounded("complain_ticks", &entry.complain_ticks, ticks.clone())?,
        audit: source.bounded("audit_ticks", &entry.audit_ticks, 2..100_001)?,
        suspect: source.bounded("suspect_ticks", &entry.suspect_ticks, ticks)?,
    })
}

/// The longest evidence of a group, in bytes: the entries since a checkpoint and two segments.
fn evidence_max(options: &Options) -> u64 {
    // A liar may show entries that are twice as long.
    let entry = 2 * options.body as u64 + ENTRY + 4 * SENT * options.sends as u64;
    (options.interval + 2 * options.segment as u64) * entry + options.state as u64 + ENTRY
}

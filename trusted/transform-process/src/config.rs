// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configuration files: one of the group, the same for all, and one of each member.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ed25519_dalek::SigningKey;
use serde::Deserialize;
use smt_attestation::GroupSecret;
use smt_mesh::{Certificates, Member, Place};
use smt_transform::{Group, Identity, Options};
use smt_trusted_process::{
    ClientEntry, ConfigError, MemberFile, ServingAlone, Source, client_bytes, refuse_count,
};
use toml::Spanned;

/// The longest step that a group may have, in bytes.
const STEP_MAX: u32 = Options::STEP_MAX as u32;
/// The shortest such bound. A step has room for the longest operation, sent on to eight nodes.
const STEP_MIN: u32 = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    stream: u32,
    nodes: Spanned<Vec<NodeEntry>>,
    clients: Vec<ClientEntry>,
    #[serde(default)]
    options: OptionsEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    address: Spanned<String>,
    key: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OptionsEntry {
    operation_bytes: Spanned<u32>,
    step_bytes: Spanned<u32>,
    retained_bytes: Spanned<u32>,
    tick_ms: Spanned<u32>,
}

impl Default for OptionsEntry {
    fn default() -> Self {
        let own = |value| Spanned::new(0..0, value);
        Self {
            operation_bytes: own(65_536),
            step_bytes: own(STEP_MAX),
            // A node that missed more steps than these does not catch up.
            retained_bytes: own(64 << 20),
            tick_ms: own(50),
        }
    }
}

/// The group, as all members know it.
pub(crate) struct GroupConfig {
    pub(crate) group: Arc<Group>,
    pub(crate) tick: Duration,
    addresses: Vec<String>,
}

/// A node's configuration.
pub(crate) struct NodeConfig {
    pub(crate) group: GroupConfig,
    pub(crate) identity: Identity,
    pub(crate) state: PathBuf,
    pub(crate) place: Place,
}

/// A client's configuration.
pub(crate) struct ClientConfig {
    pub(crate) group: GroupConfig,
    pub(crate) client: u32,
    pub(crate) key: SigningKey,
    pub(crate) place: Place,
}

impl NodeConfig {
    /// Reads and checks the files of a node.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (file, ServingAlone { state, group_secret }) = MemberFile::serving_alone(path)?;
        let group = GroupConfig::read(&file.group)?;
        file.refuse_other(&group.group.nodes)?;
        let MemberFile { number: device, certificates, signing_key, .. } = file;
        let (secret, key) = (GroupSecret::new(*group_secret), SigningKey::from_bytes(&signing_key));
        let mut place = group.place(Member::Replica(device), certificates);
        place.boot = Some(state.join("boot"));
        Ok(Self { group, identity: Identity { secret, device, key }, state, place })
    }
}

impl ClientConfig {
    /// Reads and checks the files of a client.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let file = MemberFile::of_client(path)?;
        let group = GroupConfig::read(&file.group)?;
        file.refuse_other_client(group.group.clients.get(&file.number))?;
        let MemberFile { number: client, certificates, signing_key, .. } = file;
        let place = group.place(Member::Client(client), certificates);
        Ok(Self { client, key: SigningKey::from_bytes(&signing_key), place, group })
    }
}

impl GroupConfig {
    /// Reads and checks the file of a group.
    fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, file) = Source::read::<GroupFile>(path)?;
        if let Some(why) = refuse_count(file.nodes.get_ref().len(), "nodes") {
            return Err(source.field("nodes", file.nodes.span(), why));
        }
        let members = file.nodes.get_ref().iter().map(|it| (&it.address, &it.key));
        let (addresses, nodes) = source.addresses_and_keys("node", "key", members)?;
        let clients = source.clients(&file.clients)?;
        let entry = &file.options;
        let operation = source.bounded("operation_bytes", &entry.operation_bytes, 1..1_048_577)?;
        let step = source.bounded("step_bytes", &entry.step_bytes, STEP_MIN..STEP_MAX + 1)?;
        let retained = &entry.retained_bytes;
        let retained = source.bounded("retained_bytes", retained, 1 << 20..(1 << 30) + 1)?;
        let tick_ms = source.bounded("tick_ms", &entry.tick_ms, 1..10_001)?;
        let options = Options {
            operation: operation as usize,
            step: step as usize,
            retained: retained as usize,
            ..Options::default()
        };
        let group = Arc::new(Group { stream: file.stream, nodes, clients, options });
        Ok(Self { group, tick: Duration::from_millis(tick_ms.into()), addresses })
    }

    fn place(&self, own: Member, certificates: Certificates) -> Place {
        let clients = self.group.clients.keys().copied().collect();
        let addresses = self.addresses.clone();
        // SMT takes the longest step.
        let client_bytes = client_bytes(self.group.options.operation);
        Place { own, certificates, addresses, clients, boot: None, packet_max: None, client_bytes }
    }
}

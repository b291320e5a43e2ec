// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configuration files of chains: one of the group, the same for all, and one of each member.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use smt_mesh::{Certificates, Member, Place};
use smt_replica::{Group, Options};
use smt_trusted_process::{
    ClientEntry, ConfigError, MemberFile, Role, Serving, Source, client_bytes, refuse_count,
};
use toml::Spanned;
use ureq::http::Uri;
use zeroize::Zeroizing;

use crate::own_device::{DeviceConfig, read_epoch};
use crate::service::ServiceName;

/// The longest packet between members. The longest message, a request that is ordered, is far
/// shorter, and several travel together up to 1 MiB.
const PACKET_MAX: u32 = 2 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    stream: u32,
    service: ServiceName,
    nodes: Spanned<Vec<NodeEntry>>,
    clients: Vec<ClientEntry>,
    etcd: EtcdEntry,
    #[serde(default)]
    options: OptionsEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeEntry {
    address: Spanned<String>,
    reply_key: Spanned<String>,
    epoch: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EtcdEntry {
    endpoints: Spanned<Vec<Spanned<String>>>,
    prefix: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OptionsEntry {
    operation_bytes: Spanned<u32>,
    window: Spanned<u32>,
    retained: Spanned<u32>,
    timeout_ticks: Spanned<u32>,
    tick_ms: Spanned<u32>,
    poll_ms: Spanned<u32>,
}

impl Default for OptionsEntry {
    fn default() -> Self {
        let own = |value| Spanned::new(0..0, value);
        Self {
            operation_bytes: own(65_536),
            window: own(256),
            // A node that missed more than these does not catch up.
            retained: own(1_000_000),
            timeout_ticks: own(20),
            tick_ms: own(50),
            poll_ms: own(200),
        }
    }
}

/// Where the group's configurations are.
#[derive(Clone, Debug)]
pub(crate) struct EtcdConfig {
    /// Addresses of etcd's members, without a slash at the end.
    pub(crate) endpoints: Vec<String>,
    /// The beginning of the group's keys.
    pub(crate) prefix: String,
    /// Milliseconds between two looks at them.
    pub(crate) poll_ms: u32,
}

/// The group, as all members know it.
pub(crate) struct GroupConfig {
    pub(crate) group: Arc<Group>,
    pub(crate) service: ServiceName,
    pub(crate) tick_ms: u32,
    pub(crate) etcd: EtcdConfig,
    addresses: Vec<String>,
}

/// A node's configuration.
pub(crate) struct NodeConfig {
    pub(crate) group: GroupConfig,
    pub(crate) node: u32,
    pub(crate) state: PathBuf,
    pub(crate) place: Place,
    pub(crate) signing_key: Zeroizing<[u8; 32]>,
    pub(crate) device: DeviceConfig,
    /// Bytes by which the log grows before it is begun anew.
    pub(crate) log_bytes: u64,
}

/// A client's configuration.
pub(crate) struct ClientConfig {
    pub(crate) group: GroupConfig,
    pub(crate) client: u32,
    pub(crate) place: Place,
    pub(crate) signing_key: Zeroizing<[u8; 32]>,
}

impl NodeConfig {
    /// Reads and checks the files of a node.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (file, serving) = MemberFile::serving(path, Role::Node)?;
        let Serving { state, secret, log_bytes } = serving;
        let group = GroupConfig::read(&file.group)?;
        file.refuse_other(&group.group.reply_keys)?;
        let MemberFile { number: node, certificates, signing_key, .. } = file;
        let mut place = group.place(Member::Replica(node), certificates);
        place.boot = Some(state.join("boot"));
        Ok(Self { node, state, place, signing_key, device: secret.into(), log_bytes, group })
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
        Ok(Self { client, place, signing_key, group })
    }
}

impl GroupConfig {
    /// Reads and checks the file of a group.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, file) = Source::read::<GroupFile>(path)?;
        if let Some(why) = refuse_count(file.nodes.get_ref().len(), "nodes") {
            return Err(source.field("nodes", file.nodes.span(), why));
        }
        let members = file.nodes.get_ref().iter().map(|it| (&it.address, &it.reply_key));
        let (addresses, reply_keys) = source.addresses_and_keys("node", "reply_key", members)?;
        let clients = source.clients(&file.clients)?;
        let options = read_options(&source, &file.options)?;
        let tick_ms = source.bounded("tick_ms", &file.options.tick_ms, 1..10_001)?;
        let etcd = read_etcd(&source, &file)?;
        let mut group = Group::new(file.stream, clients, reply_keys, options);
        let nodes = file.nodes.get_ref().iter();
        let epochs: Result<_, _> = nodes.map(|it| read_epoch(&source, it.epoch.as_ref())).collect();
        group.epochs = epochs?;
        let group = Arc::new(group);
        Ok(Self { group, service: file.service, tick_ms, etcd, addresses })
    }

    fn place(&self, own: Member, certificates: Certificates) -> Place {
        let clients = self.group.clients.keys().copied().collect();
        let addresses = self.addresses.clone();
        let packet_max = Some(PACKET_MAX);
        let client_bytes = client_bytes(self.group.options.operation);
        Place { own, certificates, addresses, clients, boot: None, packet_max, client_bytes }
    }
}

fn read_options(source: &Source, entry: &OptionsEntry) -> Result<Options, ConfigError> {
    Ok(Options {
        operation: source.bounded("operation_bytes", &entry.operation_bytes, 8..65_537)? as usize,
        window: source.bounded("window", &entry.window, 1..1_000_001)?.into(),
        retained: source.bounded("retained", &entry.retained, 64..1_000_001)?.into(),
        timeout: source.bounded("timeout_ticks", &entry.timeout_ticks, 2..10_001)?,
        ..Options::default()
    })
}

fn read_etcd(source: &Source, file: &GroupFile) -> Result<EtcdConfig, ConfigError> {
    let EtcdEntry { endpoints, prefix } = &file.etcd;
    if endpoints.get_ref().is_empty() {
        let why = "there is none: without etcd, the chain has no service of configurations";
        return Err(source.field("endpoints", endpoints.span(), why.to_owned()));
    }
    let mut addresses = Vec::new();
    for it in endpoints.get_ref() {
        if let Some(why) = refuse_endpoint(it.get_ref()) {
            return Err(source.field("endpoints", it.span(), why));
        }
        addresses.push(it.get_ref().trim_end_matches('/').to_owned());
    }
    if let Some(why) = refuse_prefix(prefix.get_ref()) {
        return Err(source.field("prefix", prefix.span(), why));
    }
    let poll_ms = source.bounded("poll_ms", &file.options.poll_ms, 10..60_001)?;
    Ok(EtcdConfig { endpoints: addresses, prefix: prefix.get_ref().clone(), poll_ms })
}

/// Why keys cannot begin with a prefix; nothing if they can.
pub(crate) fn refuse_prefix(prefix: &str) -> Option<String> {
    let why = "a prefix has 1 to 256 bytes, and is another one for each group".to_owned();
    (!(1..=256).contains(&prefix.len())).then_some(why)
}

/// Why etcd cannot be spoken to at an address; nothing if it can.
pub(crate) fn refuse_endpoint(endpoint: &str) -> Option<String> {
    let uri = endpoint.parse::<Uri>().ok();
    let is_good = uri.is_some_and(|it| {
        it.scheme_str() == Some("http") && it.host().is_some() && matches!(it.path(), "" | "/")
    });
    // A path is added at its end, and the way to etcd knows no users: a password would be in the
    // clear there.
    let is_good = is_good && !endpoint.contains(['@', '?', '#']);
    let shown = endpoint.rsplit_once('@').map_or(endpoint, |it| it.1);
    let why = format!("{shown:?} is no address of the form http://HOST:PORT");
    (!is_good).then_some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_etcd_is_http_with_a_host() {
        for good in ["http://127.0.0.1:2379", "http://etcd.example/", "http://[::1]:2379"] {
            assert_eq!(refuse_endpoint(good), None);
        }
        for bad in [
            "",
            "127.0.0.1:2379",
            "https://host:2379",
            "http://",
            "http://h/v3",
            "http://a b",
            "http://user:password@host:2379",
            "http://host:2379?a=b",
            "http://host:2379/?",
            "http://host:2379#a",
        ] {
            assert!(refuse_endpoint(bad).is_some(), "{bad}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configuration files: one of the group, the same for all, and one of each member.
//!
//! Each error names file, line and field.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use smt_mesh::{Certificates, Member, Place};
use smt_replica::{Group, Options};
use smt_trusted_process::{
    ClientEntry, ConfigError, MemberFile, Role, Serving, Source, client_bytes, refuse_count,
};
use toml::Spanned;
use zeroize::Zeroizing;

use crate::own_device::{DeviceConfig, read_epoch};
use crate::service::ServiceName;

/// The longest packet that a client takes: replies that travel together have 1 MiB at most, and an
/// answer is no longer than the longest operation.
const CLIENT_PACKET_MAX: u32 = 2 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupFile {
    stream: Spanned<u32>,
    service: ServiceName,
    replicas: Spanned<Vec<ReplicaEntry>>,
    clients: Vec<ClientEntry>,
    #[serde(default)]
    options: OptionsEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicaEntry {
    address: Spanned<String>,
    reply_key: Spanned<String>,
    epoch: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OptionsEntry {
    batch: Spanned<u32>,
    operation_bytes: Spanned<u32>,
    checkpoint_interval: Spanned<u32>,
    window: Spanned<u32>,
    pipeline: Spanned<u32>,
    retained: Spanned<u32>,
    timeout_ticks: Spanned<u32>,
    tick_ms: Spanned<u32>,
}

impl Default for OptionsEntry {
    fn default() -> Self {
        let own = |value| Spanned::new(0..0, value);
        Self {
            batch: own(64),
            operation_bytes: own(65_536),
            checkpoint_interval: own(64),
            window: own(256),
            pipeline: own(1),
            retained: own(4096),
            timeout_ticks: own(20),
            tick_ms: own(50),
        }
    }
}

/// The group, as all members know it.
pub(crate) struct GroupConfig {
    pub(crate) group: Arc<Group>,
    pub(crate) service: ServiceName,
    pub(crate) addresses: Vec<String>,
    pub(crate) tick_ms: u32,
}

/// A replica's configuration.
pub(crate) struct ReplicaConfig {
    pub(crate) group: GroupConfig,
    pub(crate) replica: u32,
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

impl ReplicaConfig {
    /// Reads and checks the files of a replica.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (file, serving) = MemberFile::serving(path, Role::Replica)?;
        let Serving { state, secret, log_bytes } = serving;
        let group = GroupConfig::read(&file.group)?;
        file.refuse_other(&group.group.reply_keys)?;
        let MemberFile { number: replica, certificates, signing_key, .. } = file;
        let mut place = group.place(Member::Replica(replica), certificates);
        place.boot = Some(state.join("boot"));
        Ok(Self { replica, state, place, signing_key, device: secret.into(), log_bytes, group })
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
        if let Some(why) = refuse_count(file.replicas.get_ref().len(), "replicas") {
            return Err(source.field("replicas", file.replicas.span(), why));
        }
        let members = file.replicas.get_ref().iter().map(|it| (&it.address, &it.reply_key));
        let (addresses, reply_keys) = source.addresses_and_keys("replica", "reply_key", members)?;
        let mut epochs = Vec::new();
        for it in file.replicas.get_ref() {
            epochs.push(read_epoch(&source, it.epoch.as_ref())?);
        }
        let clients = source.clients(&file.clients)?;
        let options = read_options(&source, &file.options)?;
        let tick_ms = source.bounded("tick_ms", &file.options.tick_ms, 1..10_001)?;
        let mut group = Group::new(*file.stream.get_ref(), clients, reply_keys, options);
        group.epochs = epochs;
        Ok(Self { group: Arc::new(group), service: file.service, addresses, tick_ms })
    }

    fn place(&self, own: Member, certificates: Certificates) -> Place {
        let clients = self.group.clients.keys().copied().collect();
        let addresses = self.addresses.clone();
        // A state travels as one message, and may be as long as SMT takes. Clients get replies.
        let packet_max = matches!(own, Member::Client(_)).then_some(CLIENT_PACKET_MAX);
        let client_bytes = client_bytes(self.group.options.operation);
        Place { own, certificates, addresses, clients, boot: None, packet_max, client_bytes }
    }
}

fn read_options(source: &Source, entry: &OptionsEntry) -> Result<Options, ConfigError> {
    let interval = source.bounded("checkpoint_interval", &entry.checkpoint_interval, 1..65_537)?;
    // A full window must have a checkpoint in it, or the log stands still.
    let window = source.bounded("window", &entry.window, interval..1_000_001)?;
    Ok(Options {
        batch: source.bounded("batch", &entry.batch, 1..1025)? as usize,
        operation: source.bounded("operation_bytes", &entry.operation_bytes, 8..65_537)? as usize,
        interval: interval.into(),
        window: window.into(),
        pipeline: source.bounded("pipeline", &entry.pipeline, 1..window + 1)?.into(),
        retained: source.bounded("retained", &entry.retained, 64..1_000_001)?.into(),
        timeout: source.bounded("timeout_ticks", &entry.timeout_ticks, 2..10_001)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use std::fs;

    const KEYS: [&str; 4] = [
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "278117fc144c72340f67d0f2316e8386ceffbf2b2428c9c51fef7c597f1d426e",
    ];

    fn group_text() -> String {
        let replica = |at: usize| {
            format!("[[replicas]]\naddress = \"h{at}:1\"\nreply_key = \"{}\"\n", KEYS[at])
        };
        let replicas: String = (0..3).map(replica).collect();
        let client = format!("[[clients]]\nnumber = 1\nkey = \"{}\"\n", KEYS[3]);
        format!("stream = 7\nservice = \"counter\"\n{replicas}{client}[options]\nbatch = 8\n")
    }

    /// Reads the text of a group in which `old` is replaced.
    fn read(old: &str, new: &str) -> Result<GroupConfig, String> {
        let text = group_text();
        let text = text.contains(old).then(|| text.replacen(old, new, 1)).unwrap();
        let name =
            format!("smt-group-{}-{:?}.toml", std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        let read = GroupConfig::read(&path).map_err(|error| error.to_string());
        fs::remove_file(path).unwrap();
        read
    }

    #[test]
    fn a_group_is_read() {
        let config = read("", "").unwrap();
        assert_eq!((config.group.replicas, config.group.options.batch), (3, 8));
        assert_eq!(config.addresses, ["h0:1", "h1:1", "h2:1"]);
    }

    #[test]
    fn an_error_names_line_and_field() {
        for (old, new, line, field) in [
            ("batch = 8", "batch = 0", 16, "batch: 0 is not 1 to 1024"),
            ("h1:1", "h0:1", 7, "address: \"h0:1\" is empty, or that of another replica"),
            (KEYS[1], KEYS[0], 8, "reply_key: another replica has this key"),
            (KEYS[3], "00", 14, "key: no Ed25519 public key"),
            ("batch = 8", "window = 3", 16, "window: 3 is not 64 to 1000000"),
        ] {
            let text = read(old, new).err().unwrap();
            assert!(text.contains(&format!("line {line}: {field}")), "{text}");
        }
    }

    #[test]
    fn a_group_without_a_majority_of_correct_replicas_is_refused() {
        let last = format!("[[replicas]]\naddress = \"h2:1\"\nreply_key = \"{}\"\n", KEYS[2]);
        let text = read(&last, "").err().unwrap();
        assert!(text.contains("replicas: 2 replicas: a group has 2f + 1"), "{text}");
    }

    #[test]
    fn a_field_that_is_misspelt_is_told_with_its_line() {
        let text = read("batch = 8", "batsch = 8").err().unwrap();
        assert!(text.contains("line 16") && text.contains("batsch"), "{text}");
        let text = read("stream = 7", "").err().unwrap();
        assert!(text.contains("stream"), "{text}");
    }
}

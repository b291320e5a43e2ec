// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Configuration files: one of the group, the same for all, and one of each member.
//!
//! Each error names file, line and field.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use smt_bft::{Group, Options, PublicKey};
use smt_device_client::SecretNumber;
use smt_mesh::{Certificates, Member, Place};
use toml::Spanned;
use zeroize::Zeroizing;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// A file cannot be read.
    #[error("your files: {} cannot be read: {error}", .path.display())]
    Read { path: PathBuf, error: std::io::Error },
    /// A file is no TOML, or lacks a field, or has one too many.
    #[error("your files: {}: {error}", .path.display())]
    Syntax { path: PathBuf, error: Box<toml::de::Error> },
    /// A field has a value that it cannot have.
    #[error("your files: {}, line {line}: {field}: {why}", .path.display())]
    Field { path: PathBuf, line: usize, field: &'static str, why: String },
    /// A file of a secret is none.
    #[error("your files: {}: {why}", .path.display())]
    Secret { path: PathBuf, why: &'static str },
}

/// The services that can be replicated.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ServiceName {
    Counter,
    KeyValue,
}

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
#[serde(deny_unknown_fields)]
struct ClientEntry {
    number: Spanned<u32>,
    key: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OptionsEntry {
    batch: Spanned<u32>,
    operation_bytes: Spanned<u32>,
    checkpoint_interval: Spanned<u32>,
    window: Spanned<u32>,
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
            retained: own(4096),
            timeout_ticks: own(20),
            tick_ms: own(50),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberFile {
    group: PathBuf,
    replica: Option<Spanned<u32>>,
    client: Option<Spanned<u32>>,
    state: Option<PathBuf>,
    authority: PathBuf,
    certificate: PathBuf,
    certificate_key: PathBuf,
    signing_key: PathBuf,
    group_secret: Option<PathBuf>,
    device: Option<Spanned<DeviceEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceEntry {
    socket: PathBuf,
    secret: u32,
}

/// Where a replica's attestations come from.
pub(crate) enum DeviceConfig {
    /// A kernel in the process of the replica, with the group's secret.
    Library(Zeroizing<[u8; 32]>),
    /// The device process at this socket, which has the group's secret under this number.
    Process(PathBuf, SecretNumber),
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
        let (source, file) = Source::read::<MemberFile>(path)?;
        let Some(replica) = &file.replica else {
            return Err(source.lacks("replica"));
        };
        let group = GroupConfig::read(&source.beside(&file.group))?;
        if *replica.get_ref() as usize >= group.addresses.len() {
            let why = format!("the group has replicas 0 to {}", group.addresses.len() - 1);
            return Err(source.field("replica", replica.span(), why));
        }
        let state = file.state.as_ref().ok_or_else(|| source.lacks("state"))?;
        let device = source.device(&file)?;
        let signing_key = read_secret(&source.beside(&file.signing_key))?;
        let own = smt_bft::public_key(&signing_key);
        if group.group.reply_keys.get(*replica.get_ref() as usize) != Some(&own) {
            let why = "signing_key is not the one of which the group has the public key";
            return Err(source.field("replica", replica.span(), why.to_owned()));
        }
        let own = Member::Replica(*replica.get_ref());
        let mut place = group.place(own, source.certificates(&file));
        let state = source.beside(state);
        place.boot = Some(state.join("boot"));
        Ok(Self { replica: *replica.get_ref(), state, place, signing_key, device, group })
    }
}

impl ClientConfig {
    /// Reads and checks the files of a client.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, file) = Source::read::<MemberFile>(path)?;
        let Some(client) = &file.client else {
            return Err(source.lacks("client"));
        };
        let group = GroupConfig::read(&source.beside(&file.group))?;
        let signing_key = read_secret(&source.beside(&file.signing_key))?;
        let own = smt_bft::public_key(&signing_key);
        if group.group.clients.get(client.get_ref()) != Some(&own) {
            let why = "the group has no client of this number with the key of signing_key";
            return Err(source.field("client", client.span(), why.to_owned()));
        }
        let own = Member::Client(*client.get_ref());
        let place = group.place(own, source.certificates(&file));
        Ok(Self { client: *client.get_ref(), place, signing_key, group })
    }
}

impl GroupConfig {
    /// Reads and checks the file of a group.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let (source, file) = Source::read::<GroupFile>(path)?;
        let count = file.replicas.get_ref().len();
        if !matches!(count, 3 | 5 | 7 | 9) {
            let why = format!("{count} replicas: a group has 2f + 1 of them, 3, 5, 7 or 9");
            return Err(source.field("replicas", file.replicas.span(), why));
        }
        let (mut addresses, mut reply_keys, mut epochs) = (Vec::new(), Vec::new(), Vec::new());
        for it in file.replicas.get_ref() {
            let address = it.address.get_ref().clone();
            if address.is_empty() || addresses.contains(&address) {
                let why = format!("{address:?} is empty, or that of another replica");
                return Err(source.field("address", it.address.span(), why));
            }
            addresses.push(address);
            let key = source.key("reply_key", &it.reply_key)?;
            if reply_keys.contains(&key) {
                let why = "another replica has this key".to_owned();
                return Err(source.field("reply_key", it.reply_key.span(), why));
            }
            reply_keys.push(key);
            let epoch = it.epoch.as_ref().map_or(1, |it| *it.get_ref());
            if let Some(it) = it.epoch.as_ref().filter(|_| epoch == 0) {
                let why = "epochs are counted from 1".to_owned();
                return Err(source.field("epoch", it.span(), why));
            }
            epochs.push(epoch);
        }
        let mut clients = BTreeMap::new();
        let mut keys = BTreeSet::new();
        for it in &file.clients {
            let key = source.key("key", &it.key)?;
            if !keys.insert(key) {
                let why = "another client has this key".to_owned();
                return Err(source.field("key", it.key.span(), why));
            }
            if clients.insert(*it.number.get_ref(), key).is_some() {
                let why = "another client has this number".to_owned();
                return Err(source.field("number", it.number.span(), why));
            }
        }
        let options = source.options(&file.options)?;
        let tick_ms = source.bounded("tick_ms", &file.options.tick_ms, 1..10_001)?;
        let mut group = Group::new(*file.stream.get_ref(), clients, reply_keys, options);
        group.epochs = epochs;
        Ok(Self { group: Arc::new(group), service: file.service, addresses, tick_ms })
    }

    fn place(&self, own: Member, certificates: Certificates) -> Place {
        let clients = self.group.clients.keys().copied().collect();
        let addresses = self.addresses.clone();
        Place { own, certificates, addresses, clients, boot: None }
    }
}

/// A file and its text, for errors that name a line.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn read<T: DeserializeOwned>(path: &Path) -> Result<(Self, T), ConfigError> {
        let path = path.to_path_buf();
        let text = fs::read_to_string(&path)
            .map_err(|error| ConfigError::Read { path: path.clone(), error })?;
        let parsed = toml::from_str(&text).map_err(|error| {
            let error = Box::new(error);
            ConfigError::Syntax { path: path.clone(), error }
        })?;
        Ok((Self { path, text }, parsed))
    }

    /// Paths are relative to the file that has them.
    fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().map_or_else(|| path.to_path_buf(), |it| it.join(path))
    }

    fn certificates(&self, file: &MemberFile) -> Certificates {
        Certificates {
            authority: self.beside(&file.authority),
            certificate: self.beside(&file.certificate),
            key: self.beside(&file.certificate_key),
        }
    }

    fn device(&self, file: &MemberFile) -> Result<DeviceConfig, ConfigError> {
        match (&file.group_secret, &file.device) {
            (Some(secret), None) => Ok(DeviceConfig::Library(read_secret(&self.beside(secret))?)),
            (None, Some(entry)) => {
                let DeviceEntry { socket, secret } = entry.get_ref();
                Ok(DeviceConfig::Process(self.beside(socket), SecretNumber(*secret)))
            }
            (None, None) => Err(self.lacks("group_secret or device")),
            (Some(_), Some(entry)) => {
                let why = "a device has the group's secret itself: remove group_secret".to_owned();
                Err(self.field("device", entry.span(), why))
            }
        }
    }

    fn field(&self, field: &'static str, span: Range<usize>, why: String) -> ConfigError {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        ConfigError::Field { path: self.path.clone(), line, field, why }
    }

    fn lacks(&self, field: &'static str) -> ConfigError {
        self.field(field, 0..0, "is missing".to_owned())
    }

    fn key(&self, field: &'static str, text: &Spanned<String>) -> Result<PublicKey, ConfigError> {
        let bytes = HEXLOWER.decode(text.get_ref().as_bytes()).ok();
        let key = bytes.and_then(|it| PublicKey::try_from(it).ok());
        key.filter(smt_bft::is_public_key).ok_or_else(|| {
            let why = "no Ed25519 public key: 64 digits 0 to 9 and a to f".to_owned();
            self.field(field, text.span(), why)
        })
    }

    fn bounded(
        &self,
        field: &'static str,
        value: &Spanned<u32>,
        bounds: Range<u32>,
    ) -> Result<u32, ConfigError> {
        if bounds.contains(value.get_ref()) {
            return Ok(*value.get_ref());
        }
        let why = format!("{} is not {} to {}", value.get_ref(), bounds.start, bounds.end - 1);
        Err(self.field(field, value.span(), why))
    }

    fn options(&self, entry: &OptionsEntry) -> Result<Options, ConfigError> {
        let interval =
            self.bounded("checkpoint_interval", &entry.checkpoint_interval, 1..65_537)?;
        // A full window must have a checkpoint in it, or the log stands still.
        let window = self.bounded("window", &entry.window, interval..1_000_001)?;
        Ok(Options {
            batch: self.bounded("batch", &entry.batch, 1..1025)? as usize,
            operation: self.bounded("operation_bytes", &entry.operation_bytes, 8..65_537)? as usize,
            interval: interval.into(),
            window: window.into(),
            retained: self.bounded("retained", &entry.retained, 64..1_000_001)?.into(),
            timeout: self.bounded("timeout_ticks", &entry.timeout_ticks, 2..10_001)?,
        })
    }
}

/// Reads 32 secret bytes in hexadecimal.
fn read_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>, ConfigError> {
    let read = |error| ConfigError::Read { path: path.to_path_buf(), error };
    let wrong = |why| ConfigError::Secret { path: path.to_path_buf(), why };
    if fs::metadata(path).map_err(read)?.mode() & 0o077 != 0 {
        return Err(wrong("others may read this secret: `chmod 600` it"));
    }
    let text = Zeroizing::new(fs::read(path).map_err(read)?);
    let bytes = HEXLOWER.decode(text.trim_ascii()).map(Zeroizing::new);
    let bytes = bytes.ok().and_then(|it| Some(Zeroizing::new(<[u8; 32]>::try_from(&it[..]).ok()?)));
    bytes.ok_or_else(|| wrong("no 32 bytes in hexadecimal"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

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

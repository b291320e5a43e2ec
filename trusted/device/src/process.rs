// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The device process from its start to its loop.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;
use smt_attestation::Start;
use smt_device_client::{Device, Library, Logs};

use crate::confinement::{self, Account, Rights};
use crate::files::Files;
use crate::secret_memory::{Secrecy, SecretBox, clear_stack};
use crate::server::Server;
use crate::store::Store;
use crate::store_error::StoreError;
use crate::tpm::Transport;

/// The kernel of a device process: 128 streams of groups with 16 members, and the last 64
/// attestations of each.
pub type Core = Library<128, 15, 64>;

/// The options of a device process.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The device's directory.
    pub directory: PathBuf,
    /// Where hosts connect.
    pub socket: PathBuf,
    /// The TPM: a path or `host:port`.
    pub tpm: Option<String>,
    /// The user that the process becomes, if it is root's.
    pub account: Option<Account>,
    /// The group whose members may connect. Without one, only the user itself.
    pub clients: Option<u32>,
    /// Whether it remembers where append-only logs end. It keeps its files and the way to its TPM
    /// open then, and the system calls for both.
    pub memory: bool,
}

/// Why a device process ends. Each text begins with whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The device's files or its TPM.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The socket.
    #[error("your request: the device cannot listen at {path}")]
    Socket {
        /// Its path.
        path: String,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// Another process listens there.
    #[error("your request: another process listens at {0}")]
    Busy(String),
    /// The process cannot give up its rights, so it does not serve.
    #[error("the operating system: the process cannot become another user or confine itself")]
    Confinement(#[source] io::Error),
    /// No memory for keys.
    #[error("the operating system: no memory for keys: is the limit `ulimit -l` below 2 MiB?")]
    Memory(#[source] io::Error),
    /// The loop failed.
    #[error("the operating system: the device cannot serve any more")]
    Serve(#[source] io::Error),
}

/// Runs a device until it fails or is killed, which it may be at any time.
///
/// # Errors
/// Any [`RunError`].
pub fn run(options: &RunOptions) -> Result<Infallible, RunError> {
    if !options.directory.join("keys").exists() {
        return Err(StoreError::Missing(options.directory.display().to_string()).into());
    }
    // The steps that only root may take come first.
    let tpm = options.tpm.as_deref().map(Transport::open).transpose().map_err(StoreError::from)?;
    let listener = listen(&options.socket, options.account, options.clients)?;
    if let Some(account) = options.account {
        account.assume().map_err(RunError::Confinement)?;
    }
    confinement::hide().map_err(RunError::Confinement)?;
    // The lock lives as long as the process: a second one would take another epoch.
    let Started { mut core, _files, rights } = start(&options.directory, tpm, options.memory)?;
    clear_stack::<{ 2 << 20 }>();
    let Start { device, epoch, .. } = core.own();
    let secrecy = match core.secrecy() {
        Secrecy::Secret => "in secret memory",
        Secrecy::Locked => "in locked memory: this kernel has no memfd_secret",
    };
    let counter = if options.tpm.is_some() { "its TPM" } else { "a file, which can be restored" };
    let memory = if options.memory { ", remembers logs by the same" } else { "" };
    eprintln!(
        "smt-device: device {} in epoch {} by {counter}{memory}, keys {secrecy}, serves at {}",
        device.0,
        epoch.0,
        options.socket.display()
    );
    let mut server = Server::new(listener).map_err(RunError::Serve)?;
    confinement::filter(&rights).map_err(RunError::Confinement)?;
    match server.run(&mut *core) {
        Ok(()) => unreachable!("it serves for ever"),
        Err(error) => Err(RunError::Serve(error)),
    }
}

/// A device that can serve.
struct Started {
    core: SecretBox<Core>,
    _files: Box<dyn Files>,
    /// The descriptors that it goes on to use.
    rights: Rights,
}

/// Opens the device in its next epoch, with all its keys in secret memory.
#[inline(never)]
fn start(
    directory: &Path,
    mut tpm: Option<Transport>,
    has_memory: bool,
) -> Result<Started, RunError> {
    let mut store = Store::open(directory, tpm.as_mut())?;
    let epoch = store.next_epoch(tpm.as_mut())?;
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| RunError::Memory(error.into()))?;
    let own = Start { device: store.device(), epoch, nonce };
    let core = SecretBox::new(Core::start(own, store.signing_key()));
    let mut core = core.map_err(|error| RunError::Memory(error.into()))?;
    for (number, secret) in store.secrets() {
        // A store has 64 at most.
        core.add_secret(number, secret).map_err(|_| StoreError::SecretExists(number.0))?;
    }
    let mut rights = Rights::default();
    if has_memory {
        let logs = store.open_logs(tpm)?;
        (rights.files, rights.tpm) = logs.descriptors();
        let ends = logs.ends().to_vec();
        // A sealing has no more logs than a device has room for.
        let logs = Logs::new(&ends, Some(Box::new(logs)));
        core.remember(logs.map_err(|_| StoreError::Altered("memory"))?);
    }
    Ok(Started { core, _files: store.into_files(), rights })
}

fn listen(
    path: &Path,
    account: Option<Account>,
    clients: Option<u32>,
) -> Result<UnixListener, RunError> {
    let failed = |source| RunError::Socket { path: path.display().to_string(), source };
    if UnixStream::connect(path).is_ok() {
        return Err(RunError::Busy(path.display().to_string()));
    }
    // A socket that an earlier process has left. Another file there is a mistake of the caller.
    if std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket()) {
        std::fs::remove_file(path).map_err(failed)?;
    }
    // The socket has its rights from its first moment, and no link in its place is followed: the
    // directory may be that of another user, and this process is still root's.
    umask(if clients.is_some() { Mode::RWXO } else { Mode::RWXO.union(Mode::RWXG) });
    let listener = UnixListener::bind(path).map_err(failed)?;
    let owner = account.map(|it| it.user);
    std::os::unix::fs::lchown(path, owner, clients).map_err(failed)?;
    Ok(listener)
}

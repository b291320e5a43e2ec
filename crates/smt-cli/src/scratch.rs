// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A directory that lives as long as the value, with ephemeral certificates in it.
//!
//! For `demo` and `perf loopback`, whose client and server are processes of their own and so need
//! files. A directory whose process was killed (SIGKILL) is removed by the next one that makes a
//! directory (`left_behind`).

mod left_behind;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use smt::pki::{CertificatePlan, EphemeralCa, IssuedCertificate, KeyKind};

use crate::failure::{Doing, Failure};
use crate::interrupt::{EXIT_INTERRUPTED, Interrupt};

/// The directory, which is locked; removed on drop, and by Ctrl-C, SIGTERM and SIGHUP, which end
/// the process with exit code 130.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    /// Holds the lock, until the process ends however it does.
    _lock: File,
}

/// Paths of a certificate and its key.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

/// The files by which client and server of `demo` and `perf loopback` know each other.
#[derive(Debug)]
pub(crate) struct EphemeralFiles {
    pub(crate) authority: PathBuf,
    pub(crate) server: Pair,
    pub(crate) client: Pair,
}

impl Scratch {
    /// Makes it, for this user alone.
    pub(crate) fn new() -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        left_behind::remove(&parent);
        let process = std::process::id();
        for attempt in 0..ATTEMPTS_MAX {
            let path = parent.join(format!("smt-{process}-{attempt}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Self::guarded(path),
                // Left behind by a process of the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).doing(format!("making {}", path.display())),
            }
        }
        Err(Failure::of(
            smt::Fault::Environment,
            format!("there is no free name for a temporary directory in {}", parent.display()),
        ))
    }

    /// Keys are not left behind by a user who has seen enough.
    fn guarded(path: PathBuf) -> Result<Self, Failure> {
        let lock = File::open(&path).doing(format!("opening {}", path.display()))?;
        let scratch = Self { path, _lock: lock };
        // Others see by it that the directory is in use. Without locks they see the process.
        let _ = flock(&scratch._lock, FlockOperation::LockExclusive);
        let interrupt = Interrupt::on_signals()?;
        let path = scratch.path.clone();
        std::thread::spawn(move || {
            interrupt.wait();
            // A file that is written meanwhile keeps a directory from being removed. The directory
            // is gone if the process was about to end.
            let is_left = || {
                let removed = fs::remove_dir_all(&path);
                removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
            };
            (0..REMOVALS_MAX).find(|_| !is_left());
            std::process::exit(EXIT_INTERRUPTED.into());
        });
        Ok(scratch)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes an authority, a server called `localhost` and a client, and writes them here.
    pub(crate) fn ephemeral(&self) -> Result<EphemeralFiles, Failure> {
        self.ephemeral_with_keys(KeyKind::default())
    }

    /// The same with keys of this kind.
    pub(crate) fn ephemeral_with_keys(&self, key_kind: KeyKind) -> Result<EphemeralFiles, Failure> {
        let authority = EphemeralCa::with_keys(key_kind)?;
        let authority = authority.authority();
        let issue = |plan| authority.issue(&CertificatePlan { key_kind, ..plan });
        let server = issue(CertificatePlan::server(&["localhost"])?)?;
        let client = issue(CertificatePlan::client("client")?)?;
        Ok(EphemeralFiles {
            authority: self.write("ca.pem", authority.certificate_pem().as_bytes())?,
            server: self.write_pair("server", &server)?,
            client: self.write_pair("client", &client)?,
        })
    }

    fn write_pair(&self, name: &str, issued: &IssuedCertificate) -> Result<Pair, Failure> {
        Ok(Pair {
            cert: self.write(&format!("{name}.pem"), issued.certificate_pem.as_bytes())?,
            key: self.write(&format!("{name}.key"), issued.key_pem.as_bytes())?,
        })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options
            .open(&path)
            .and_then(|mut file| file.write_all(bytes))
            .doing(format!("writing {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the temporary directory is left behind");
        }
    }
}

/// Tries to remove a directory into which this process still writes a few files.
const REMOVALS_MAX: u32 = 1_000;
/// Names to try. Fewer processes of one number than this leave directories behind.
const ATTEMPTS_MAX: u32 = 100;

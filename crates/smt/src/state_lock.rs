// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock of a state file: one endpoint holds it, as long as the endpoint lives.
//!
//! The lock is on a file beside the state file (`.lock`), since the state file itself is replaced
//! each time. The lock file names the holder, and is never removed. The system releases the lock
//! when the holder ends, however it ends. Forked copies of a process hold its locks too, until all
//! copies have ended or have closed their files.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::error::OpenError;

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct StateLock {
    _file: File,
}

impl StateLock {
    /// Takes the lock of the state file at `path`.
    ///
    /// # Errors
    /// Another endpoint has it, or the system gives no lock.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        let system = |reason: io::Error| OpenError::System {
            what: "locking the state file",
            reason: io::Error::new(reason.kind(), format!("{}: {reason}", path.display())),
        };
        let mut file = open(path).map_err(system)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(OpenError::StateFileInUse {
                    path: path.to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(error) => return Err(system(error.into())),
        }
        name_holder(&mut file).map_err(system)?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(beside)
}

/// Writes the holder's name, for those who want the lock.
fn name_holder(file: &mut File) -> io::Result<()> {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    file.set_len(0)?;
    write!(file, "process {} on {host}", std::process::id())
}

/// The name of the lock's holder, as far as it can be read.
fn holder(file: &mut File) -> String {
    let mut name = Vec::new();
    let read = file.take(HOLDER_BYTES_MAX).read_to_end(&mut name);
    match read {
        Ok(1..) => String::from_utf8_lossy(&name).escape_debug().to_string(),
        _ => "another endpoint".to_owned(),
    }
}

/// More than a process and a host name have.
const HOLDER_BYTES_MAX: u64 = 128;

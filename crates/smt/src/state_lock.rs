// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lock of a state file: one endpoint holds it, as long as the endpoint lives.
//!
//! The lock is on a file beside the state file (`.lock`), since the state file itself is replaced
//! each time. The lock file names the holder, who removes it at its end. If the holder has no time
//! for that, the system releases the lock, and the next holder takes the file that is left. A lock
//! counts only on the file that is there by its name: one that was removed while somebody waited
//! for its lock is none. Forked copies of a process remove nothing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use smt_io::Process;

use crate::error::OpenError;

/// Held until it is dropped.
#[derive(Debug)]
pub(crate) struct StateLock {
    file: File,
    path: PathBuf,
    /// The holder, and none of its forked copies.
    process: Process,
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
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let beside = PathBuf::from(beside);
        loop {
            let mut file = open(&beside).map_err(system)?;
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
            if !is_at(&file, &beside).map_err(system)? {
                // The holder before has removed it meanwhile.
                continue;
            }
            name_holder(&mut file).map_err(system)?;
            return Ok(Self { file, path: beside, process: Process::this() });
        }
    }
}

impl Drop for StateLock {
    /// The lock is released after the file is gone: nobody takes it meanwhile.
    fn drop(&mut self) {
        if self.process.is_this() && is_at(&self.file, &self.path).unwrap_or(false) {
            // A file that stays does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether the file of this name is this one.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(facts) => {
            let held = file.metadata()?;
            Ok((facts.dev(), facts.ino()) == (held.dev(), held.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Somebody else may write in the folder, and have a link there: its end is not opened.
fn open(beside: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(beside, flags, Mode::RUSR | Mode::WUSR)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "the lock is no file")),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn the_end_of_a_link_in_the_place_of_the_lock_stays_as_it_is() {
        let folder = std::env::temp_dir().join(format!("smt-lock-link-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (victim, lock) = (folder.join("victim"), folder.join("state.lock"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &lock).unwrap();
        let error = StateLock::take(&folder.join("state")).unwrap_err().to_string();
        assert!(error.contains("locking the state file"), "{error}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn one_alone_holds_it_however_many_take_and_release_it_and_no_file_is_left() {
        let path = std::env::temp_dir().join(format!("smt-lock-{}", std::process::id()));
        let (held, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while taken.load(Ordering::Relaxed) < 2_000 {
                        let lock = match StateLock::take(&path) {
                            Ok(lock) => lock,
                            Err(OpenError::StateFileInUse { .. }) => continue,
                            Err(error) => panic!("{error}"),
                        };
                        assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0, "two hold it");
                        taken.fetch_add(1, Ordering::Relaxed);
                        held.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(!path.with_extension("lock").exists());
    }
}

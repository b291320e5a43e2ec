// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Temporary directories of processes that were killed: their private keys go.
//!
//! A directory is removed if all of this holds: its name is that of a [`super::Scratch`], it is of
//! this user and nobody else may open it, it has files of these names alone, no process has its
//! number, and none holds its lock.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};

/// Removes those of a directory for temporary files. One that cannot be removed is left.
pub(super) fn remove(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let process = entry.file_name().to_str().and_then(process);
        if process.is_some_and(is_gone) && is_ours(&path) && is_unlocked(&path) {
            match fs::remove_dir_all(&path) {
                Ok(()) => tracing::info!("removed what a killed process left: {}", path.display()),
                Err(error) => tracing::debug!(%error, "{} stays", path.display()),
            }
        }
    }
}

/// The process by whose number a directory is named.
fn process(name: &str) -> Option<Pid> {
    let (process, attempt) = name.strip_prefix("smt-")?.split_once('-')?;
    attempt.parse::<u32>().ok()?;
    Pid::from_raw(process.parse().ok().filter(|process| *process > 0)?)
}

fn is_gone(process: Pid) -> bool {
    test_kill_process(process) == Err(Errno::SRCH)
}

/// Whether it is a directory of this user alone with nothing but such files.
fn is_ours(path: &Path) -> bool {
    let is_private = path.symlink_metadata().is_ok_and(|facts| {
        facts.is_dir() && facts.uid() == geteuid().as_raw() && facts.mode() & 0o077 == 0
    });
    is_private
        && fs::read_dir(path).is_ok_and(|mut entries| {
            entries.all(|entry| {
                let name = entry.map(|entry| entry.file_name());
                name.is_ok_and(|name| NAMES.iter().any(|known| name == *known))
            })
        })
}

/// Whether no process holds its lock; one in a container may have another number there.
fn is_unlocked(path: &Path) -> bool {
    let locked =
        File::open(path).map(|file| flock(&file, FlockOperation::NonBlockingLockExclusive));
    locked.is_ok_and(|locked| locked.is_ok())
}

/// The files of [`super::EphemeralFiles`].
const NAMES: [&str; 5] = ["ca.pem", "server.pem", "server.key", "client.pem", "client.key"];

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn only_what_a_process_that_is_gone_has_left_is_removed() {
        let scratch = Scratch::new().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        let (gone, here) = (child.id(), std::process::id());
        child.wait().unwrap();
        let make = |name: String, file: &str, mode: u32| {
            let path = scratch.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            fs::write(path.join(file), "").unwrap();
            path
        };
        let left = make(format!("smt-{gone}-0"), "server.key", 0o700);
        let locked = make(format!("smt-{gone}-1"), "server.key", 0o700);
        let kept = [
            make(format!("smt-{gone}-2"), "letter", 0o700),
            make(format!("smt-{gone}-3"), "server.key", 0o755),
            make(format!("smt-{gone}-x"), "server.key", 0o700),
            make(format!("smt-{here}-0"), "server.key", 0o700),
        ];
        let lock = File::open(&locked).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        remove(scratch.path());
        assert!(!left.exists() && locked.exists());
        assert!(kept.iter().all(|path| path.exists()));
        drop(lock);
        remove(scratch.path());
        assert!(!locked.exists());
    }
}

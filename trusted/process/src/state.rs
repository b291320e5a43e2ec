// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A member's directory: the epoch of its device, and the log of that epoch.
//!
//! The file `epoch` has the number, and whether the log was begun. A log that was begun and is gone
//! is not begun again in the same epoch: the device would use its counters twice.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use smt_journal::{FileDisk, JournalError};

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There is no epoch.
    #[error(
        "your files: {0} has no epoch: is `state` right, and the disk mounted? `init` has made the \
         directory of a new member"
    )]
    Missing(String),
    /// The epoch is not new.
    #[error(
        "your request: the directory is in epoch {current} already, and {asked} is not above it"
    )]
    NotNewer {
        /// The epoch of the directory.
        current: u64,
        /// The epoch that was asked for.
        asked: u64,
    },
    /// The log is gone.
    #[error("your files: the log of epoch {0} is gone: the member goes on in a later epoch alone")]
    LogGone(u64),
    /// The file is no epoch.
    #[error("your files: {0} is no epoch")]
    Malformed(String),
    /// Reading or writing failed.
    #[error("the operating system: {0} cannot be read or written")]
    File(String, #[source] io::Error),
    /// The device is in an older epoch than the directory.
    #[error(
        "your files: the directory is of epoch {directory}, and the device is in epoch {device}: \
         it is another device, or was restored"
    )]
    DeviceOlder {
        /// The epoch of the directory.
        directory: u64,
        /// The epoch of the device.
        device: u64,
    },
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] JournalError),
}

/// A directory that is open, with the log of its epoch.
pub struct State {
    /// The epoch.
    pub epoch: u64,
    /// Its log.
    pub log: FileDisk,
}

impl State {
    /// Opens the directory for a device that counts its epochs itself.
    ///
    /// # Errors
    /// [`StateError`]
    pub fn of_device(directory: &Path, device: u64) -> Result<Self, StateError> {
        let name = directory.display().to_string();
        fs::create_dir_all(directory).map_err(|error| StateError::File(name, error))?;
        match read(directory)? {
            Some((current, _)) if current == device => Self::open(directory, None),
            Some((current, _)) if current > device => {
                Err(StateError::DeviceOlder { directory: current, device })
            }
            _ => Self::open(directory, Some(device)),
        }
    }

    /// Opens the directory, and begins epoch `asked` if there is one. Otherwise a directory that is
    /// not there is not made: it may be on a disk that is not mounted.
    ///
    /// # Errors
    /// [`StateError`]
    pub fn open(directory: &Path, asked: Option<u64>) -> Result<Self, StateError> {
        let name = directory.display().to_string();
        let failed = |error| StateError::File(name.clone(), error);
        if asked.is_some() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let current = read(directory)?;
        let (epoch, is_begun) = match (current, asked) {
            (None, None) => return Err(StateError::Missing(name)),
            (Some(current), None) => current,
            (Some((current, _)), Some(asked)) if asked <= current => {
                return Err(StateError::NotNewer { current, asked });
            }
            (_, Some(asked)) => {
                write(directory, asked, false).map_err(failed)?;
                (asked, false)
            }
        };
        let path = log_path(directory, epoch);
        let is_gone = fs::metadata(&path).map_or(true, |it| it.len() == 0);
        if is_begun && is_gone {
            return Err(StateError::LogGone(epoch));
        }
        Ok(Self { epoch, log: FileDisk::open(&path)? })
    }

    /// Notes that the log is durable, and removes those of earlier epochs.
    ///
    /// # Errors
    /// [`StateError`]
    pub fn begun(directory: &Path, epoch: u64) -> Result<(), StateError> {
        let name = directory.display().to_string();
        let failed = |error| StateError::File(name.clone(), error);
        write(directory, epoch, true).map_err(failed)?;
        for entry in fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let number = path.file_name().and_then(|it| it.to_str()?.strip_prefix("log-"));
            // One that was being begun anew too.
            let number = number.map(|it| it.strip_suffix(".new").unwrap_or(it));
            let number = number.and_then(|it| it.parse::<u64>().ok());
            if number.is_some_and(|it| it < epoch) {
                fs::remove_file(path).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Makes the directory of a member of a new group.
///
/// # Errors
/// Those of the operating system.
pub fn create(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    write(directory, 1, false)
}

/// The log of an epoch.
pub fn log_path(directory: &Path, epoch: u64) -> PathBuf {
    directory.join(format!("log-{epoch}"))
}

fn read(directory: &Path) -> Result<Option<(u64, bool)>, StateError> {
    let path = directory.join("epoch");
    let name = path.display().to_string();
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StateError::File(name, error)),
        Ok(text) => text,
    };
    let (number, state) =
        text.trim().split_once(' ').ok_or_else(|| StateError::Malformed(name.clone()))?;
    let number = number.parse().ok().filter(|it| *it > 0);
    match (number, state) {
        (Some(number), "new") => Ok(Some((number, false))),
        (Some(number), "begun") => Ok(Some((number, true))),
        _ => Err(StateError::Malformed(name)),
    }
}

fn write(directory: &Path, epoch: u64, is_begun: bool) -> io::Result<()> {
    let text = format!("{epoch} {}\n", if is_begun { "begun" } else { "new" });
    replace(&directory.join("epoch"), text.as_bytes(), 0o600)
}

/// Replaces a file: the new one is on the disk before it has the name.
///
/// # Errors
/// Those of the operating system.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    rename(&new, path)
}

/// Gives a file the name of another one, durably.
///
/// # Errors
/// Those of the operating system.
pub fn rename(new: &Path, path: &Path) -> io::Result<()> {
    fs::rename(new, path)?;
    path.parent().map_or(Ok(()), |it| File::open(it)?.sync_all())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("smt-state-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_log_that_is_gone_is_not_begun_again_in_its_epoch() {
        let directory = Directory::new("gone");
        create(&directory.0).unwrap();
        let state = State::open(&directory.0, None).unwrap();
        fs::write(directory.0.join("log-1"), "x").unwrap();
        State::begun(&directory.0, state.epoch).unwrap();
        drop(state);
        assert_eq!(State::open(&directory.0, None).unwrap().epoch, 1);
        fs::write(directory.0.join("log-1"), "").unwrap();
        let refused = State::open(&directory.0, None).err();
        assert!(matches!(refused, Some(StateError::LogGone(1))));
        let state = State::open(&directory.0, Some(2)).unwrap();
        State::begun(&directory.0, state.epoch).unwrap();
        assert!(!directory.0.join("log-1").exists());
    }

    #[test]
    fn an_epoch_that_is_not_newer_is_refused() {
        let directory = Directory::new("older");
        assert!(matches!(State::open(&directory.0, None).err(), Some(StateError::Missing(_))));
        assert!(!directory.0.exists());
        assert_eq!(State::open(&directory.0, Some(3)).unwrap().epoch, 3);
        let refused = State::open(&directory.0, Some(3)).err();
        assert!(matches!(refused, Some(StateError::NotNewer { current: 3, asked: 3 })));
    }
}

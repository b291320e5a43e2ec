// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The boot number and the key of reset tokens (SPEC §12.1).
//!
//! With a file both survive a restart: the boot number grows by [`BOOTS`] each time, before
//! anything is sent, and the numbers between are this run's too. Without a file both are new, and
//! sessions of an earlier run end by silence. Only one endpoint has the file at a time: if two had
//! it, one would take the sessions of the other for those of an earlier run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use zeroize::Zeroizing;

use crate::error::OpenError;
use crate::state_lock::StateLock;

/// The boot number and the seed with which an endpoint begins.
pub(crate) struct StateFile {
    pub(crate) boot: u32,
    pub(crate) seed: Zeroizing<[u8; 32]>,
    pub(crate) is_durable: bool,
    /// Keeps other endpoints from the file.
    pub(crate) lock: Option<StateLock>,
}

impl StateFile {
    /// A state for this run alone, without a file.
    pub(crate) fn ephemeral() -> Result<Self, OpenError> {
        let (mut boot, mut seed) = ([0; 4], Zeroizing::new([0; 32]));
        fill(&mut boot)?;
        fill(&mut *seed)?;
        Ok(Self { boot: u32::from_be_bytes(boot), seed, is_durable: false, lock: None })
    }

    /// The run after the one that the file tells of; the file then tells of this one, and is
    /// locked.
    ///
    /// # Errors
    /// [`OpenError::StateFileInUse`] if another endpoint has the file, or what the system says.
    pub(crate) fn next(path: &Path) -> Result<Self, OpenError> {
        let system = |what| {
            move |reason: io::Error| OpenError::System {
                what,
                reason: io::Error::new(reason.kind(), format!("{}: {reason}", path.display())),
            }
        };
        let lock = StateLock::take(path)?;
        let (boot, seed) = match read(path) {
            Ok(bytes) => {
                // A process's first random number takes 80 ms, which else the first client would
                // wait for.
                fill(&mut [0])?;
                parse(&bytes).map_err(system("reading the state file"))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut seed = Zeroizing::new([0; 32]);
                fill(&mut *seed)?;
                (0, seed)
            }
            Err(error) => return Err(system("reading the state file")(error)),
        };
        let last = boot
            .checked_add(BOOTS)
            .ok_or(OpenError::Options("the state file's boot number is used up: delete it"))?;
        write(path, last, &seed).map_err(system("writing the state file"))?;
        Ok(Self { boot: boot + 1, seed, is_durable: true, lock: Some(lock) })
    }
}

/// Reads the file, and no more bytes than it takes to see that it is none of ours. A path that is
/// no regular file is refused, since its first byte may never come.
fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    // With room for all of it, since what a vector grows out of is not cleared.
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * BYTES_MAX as usize));
    File::open(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> io::Result<(u32, Zeroizing<[u8; 32]>)> {
    let wrong =
        || io::Error::new(io::ErrorKind::InvalidData, "this is no state file of an SMT server");
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(wrong)?;
    let (boot, seed) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
    let seed: &[u8; 32] = seed.try_into().map_err(|_| wrong())?;
    Ok((u32::from_be_bytes(*boot), Zeroizing::new(*seed)))
}

/// Writes beside the file and renames, so that a crash leaves the old or the new one.
fn write(path: &Path, boot: u32, seed: &[u8; 32]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    // A file that a crash has left, or that another user has put there, is not written to: it may
    // not be the owner's alone.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(&beside)?;
    file.write_all(MAGIC)?;
    file.write_all(&boot.to_be_bytes())?;
    file.write_all(seed)?;
    file.sync_all()?;
    fs::rename(beside, path)?;
    // The new name is to outlive a loss of power too, or a boot number is used twice; not every
    // file system can do it.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let synced =
        File::open(parent.unwrap_or_else(|| Path::new("."))).and_then(|parent| parent.sync_all());
    if let Err(error) = synced {
        tracing::debug!(%error, "the state file's directory was not written to disk");
    }
    Ok(())
}

fn fill(bytes: &mut [u8]) -> Result<(), OpenError> {
    aws_lc_rs::rand::fill(bytes).map_err(|_| OpenError::System {
        what: "drawing random numbers",
        reason: io::Error::other("the system's random number generator failed"),
    })
}

/// Boot numbers of a run: it takes the next when the session indices of one are used up, by 2,000
/// handshakes a second in 25 days.
pub(crate) const BOOTS: u32 = 256;
const MAGIC: &[u8] = b"smt state 1\n";
/// One more than a state file has.
const BYTES_MAX: u64 = 12 + 4 + 32 + 1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A path of a state file that is gone afterwards.
    struct Path(PathBuf);

    impl Path {
        fn new(name: &str) -> Self {
            let name = format!("smt-state-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Path {
        fn drop(&mut self) {
            for end in ["", ".lock"] {
                let mut path = self.0.clone().into_os_string();
                path.push(end);
                let _ = fs::remove_file(path);
            }
        }
    }

    #[test]
    fn each_run_has_the_next_numbers_and_the_same_key() {
        let path = Path::new("runs");
        let run = || {
            let run = StateFile::next(&path.0).unwrap();
            (run.boot, *run.seed)
        };
        let (first, second) = (run(), run());
        assert_eq!((first.0, second.0), (1, 1 + BOOTS));
        assert_eq!(first.1, second.1);
        fs::write(&path.0, "something else").unwrap();
        assert!(StateFile::next(&path.0).is_err());
    }

    #[test]
    fn a_second_run_beside_the_first_is_refused_and_takes_no_number() {
        let path = Path::new("beside");
        let first = StateFile::next(&path.0).unwrap();
        let Err(error) = StateFile::next(&path.0) else { panic!("two runs have one file") };
        assert!(matches!(error, OpenError::StateFileInUse { .. }), "{error}");
        let text = error.to_string();
        let holder = format!("process {} on ", std::process::id());
        assert!(text.contains(&holder), "{text}");
        drop(first);
        assert_eq!(StateFile::next(&path.0).unwrap().boot, 1 + BOOTS);
    }
}

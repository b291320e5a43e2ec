// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of one directory, and nothing outside of it.
//!
//! The kernel itself walks the path beneath the directory (`openat2` with `RESOLVE_BENEATH`), so
//! neither `..` nor an absolute path nor a symbolic link leads out, also not one that is changed
//! during the walk.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::failure::{Doing, Failure};

/// An open directory.
#[derive(Debug)]
pub(super) struct Directory {
    root: OwnedFd,
    file_limit: u32,
}

impl Directory {
    /// Opens it; files of more than `file_limit` bytes are not handed out.
    pub(super) fn open(path: &Path, file_limit: u32) -> Result<Self, Failure> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .doing(format!("opening the directory {}", path.display()))?;
        Ok(Self { root, file_limit })
    }

    /// The bytes of the file that the request names.
    pub(super) fn read(&self, request: &[u8]) -> Result<Bytes, Failure> {
        let path = std::str::from_utf8(request)
            .map_err(|_| Failure::new("the request is no path in UTF-8"))?;
        // A request that is no path is not quoted: any client could fill the log.
        if path.len() > PATH_MAX {
            let length = path.len();
            return Err(Failure::new(format!(
                "the request has {length} bytes, and a path at most {PATH_MAX}"
            )));
        }
        let shown: String = path.escape_debug().take(SHOWN).collect();
        let mut file = self.open_beneath(path).doing(&shown)?;
        let facts = file.metadata().doing(&shown)?;
        if !facts.is_file() {
            return Err(Failure::new(format!("{shown}: not a file")));
        }
        if facts.len() > u64::from(self.file_limit) {
            return Err(too_large(&shown, facts.len(), self.file_limit));
        }
        let mut bytes = Vec::with_capacity(facts.len() as usize);
        // A file may grow while it is read.
        let limit = u64::from(self.file_limit) + 1;
        let length = file
            .by_ref()
            .take(limit)
            .read_to_end(&mut bytes)
            .doing(&shown)?;
        if length as u64 == limit {
            return Err(too_large(&shown, limit, self.file_limit));
        }
        Ok(bytes.into())
    }

    fn open_beneath(&self, path: &str) -> rustix::io::Result<File> {
        // Without waiting, should it be a FIFO.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.root, path, flags, Mode::empty(), beneath).map(File::from)
    }
}

fn too_large(path: &dyn Display, length: u64, limit: u32) -> Failure {
    Failure::new(format!(
        "{path}: the file has {length} bytes, and --message-limit is {limit}"
    ))
}

/// Linux's limit.
const PATH_MAX: usize = 4_095;
/// Characters of a path that messages quote: any client may send many.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::os::unix::fs::symlink;

    /// `inside/` with a file, and a secret beside it.
    fn tree() -> (Scratch, Directory) {
        let scratch = Scratch::new().unwrap();
        let inside = scratch.path().join("inside");
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        std::fs::write(inside.join("deep/file"), "content").unwrap();
        std::fs::write(scratch.path().join("secret"), "secret").unwrap();
        symlink("deep/file", inside.join("link")).unwrap();
        symlink("../secret", inside.join("out")).unwrap();
        symlink("/etc/hostname", inside.join("far-out")).unwrap();
        let directory = Directory::open(&inside, 7).unwrap();
        (scratch, directory)
    }

    mod read {
        use super::*;

        #[test]
        fn files_within_are_read_also_by_links_that_stay_within() {
            let (_scratch, directory) = tree();
            for path in ["deep/file", "./deep/../deep/file", "link"] {
                assert_eq!(
                    directory.read(path.as_bytes()).unwrap(),
                    "content",
                    "{path}"
                );
            }
        }

        #[test]
        fn nothing_leads_out() {
            let (scratch, directory) = tree();
            let absolute = scratch.path().join("inside/deep/file");
            let paths = [
                "../secret",
                "deep/../../secret",
                "out",
                "far-out",
                "/etc/hostname",
            ];
            for path in paths.into_iter().chain(absolute.to_str()) {
                assert!(directory.read(path.as_bytes()).is_err(), "{path}");
            }
        }

        #[test]
        fn what_is_no_file_is_refused() {
            let (_scratch, directory) = tree();
            for path in [&b""[..], b".", b"deep", b"missing", b"\xff", b"deep/file\0"] {
                assert!(directory.read(path).is_err(), "{path:?}");
            }
        }

        #[test]
        fn what_is_too_long_for_a_path_is_not_quoted() {
            let (_scratch, directory) = tree();
            let failure = directory.read(&[0; 1 << 20]).unwrap_err();
            assert!(failure.text().contains("1048576 bytes"));
            assert!(failure.text().len() < 200);
        }

        #[test]
        fn a_file_over_the_limit_is_refused_with_both_numbers() {
            let (scratch, directory) = tree();
            std::fs::write(scratch.path().join("inside/large"), "8 bytes!").unwrap();
            let failure = directory.read(b"large").unwrap_err();
            assert!(failure.text().contains("8 bytes") && failure.text().contains("is 7"));
        }
    }
}

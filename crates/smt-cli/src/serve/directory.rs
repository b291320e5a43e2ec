// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of one directory, and nothing outside of it.
//!
//! The kernel itself walks the path beneath the directory (`openat2` with `RESOLVE_BENEATH`), so
//! neither `..` nor an absolute path nor a symbolic link leads out, also not one that is changed
//! during the walk.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use bytes::Bytes;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use smt::{Incoming, Metadata};

use super::handler::Dropped;
use super::opened_file::OpenedFile;
use crate::failure::{Doing, Failure};
use crate::file_range;

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

    /// The reply to a request: the file, or the range of it that metadata asks for.
    pub(super) fn answer(&self, message: &Incoming) -> Result<Bytes, Dropped> {
        let none = Metadata::new();
        let metadata = match message {
            Incoming::Request(request) => request.metadata(),
            Incoming::Message(message) => message.metadata(),
            _ => &none,
        };
        // The caller may take less than this server sends.
        let limit = self.file_limit.min(message.peer().message_limit());
        self.read(message.body(), metadata, limit)
    }

    fn read(&self, request: &[u8], metadata: &Metadata, limit: u32) -> Result<Bytes, Dropped> {
        let opened = self.open_file(request).map_err(Dropped::before_it_ran)?;
        let Some(range) = metadata.get(file_range::RANGE) else {
            return opened.read_whole(limit);
        };
        let range = file_range::parse_range(range).ok_or_else(|| {
            Dropped::before_it_ran(Failure::new("the range is none: bytes=FIRST-LAST is one"))
        })?;
        let part = opened.read_range(range, metadata.get(file_range::IF_MATCH), limit)?;
        Ok(part.encode())
    }

    /// Opens the file that the request names.
    fn open_file(&self, request: &[u8]) -> Result<OpenedFile, Failure> {
        let path = std::str::from_utf8(request)
            .map_err(|_| Failure::new("the request is no path in UTF-8"))?;
        // A request that is no path is not quoted: any client could fill the log.
        if path.len() > PATH_MAX {
            let length = path.len();
            return Err(Failure::new(format!(
                "the request has {length} bytes, and a path at most {PATH_MAX}"
            )));
        }
        let shown = shown(request);
        let file = match self.open_beneath(path) {
            // The way leads out of the directory.
            Err(Errno::XDEV) => {
                return Err(Failure::new(format!("{shown}: not in the directory")));
            }
            // As `echo` sends it.
            Err(Errno::NOENT) if path.ends_with('\n') => {
                return Err(Failure::new(format!(
                    "{shown}: No such file; the request ends with a line break, which is part of the name: send it without, as `printf` does"
                )));
            }
            opened => opened.doing(&shown)?,
        };
        let facts = file.metadata().doing(&shown)?;
        if !facts.is_file() {
            return Err(Failure::new(format!("{shown}: not a file")));
        }
        Ok(OpenedFile { file, facts, shown })
    }

    fn open_beneath(&self, path: &str) -> rustix::io::Result<File> {
        // Without waiting, should it be a FIFO.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.root, path, flags, Mode::empty(), beneath).map(File::from)
    }
}

/// The path that a request asks for, as messages quote it.
pub(super) fn shown(request: &[u8]) -> String {
    let path = &request[..request.len().min(PATH_MAX)];
    let path = String::from_utf8_lossy(path);
    path.escape_debug().take(SHOWN).collect()
}

/// Linux's limit.
const PATH_MAX: usize = 4_095;
/// Characters of a path that messages quote: any client may send many.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_range::{Part, Tag};
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

    fn read(directory: &Directory, request: &[u8]) -> Result<Bytes, Failure> {
        let whole = directory.read(request, &Metadata::new(), directory.file_limit);
        whole.map_err(|dropped| dropped.failure)
    }

    /// A range of a file, or the code of the refusal.
    fn read_range(directory: &Directory, range: (u64, u64), tag: Option<Tag>) -> Result<Part, u32> {
        let mut metadata = Metadata::new();
        let text = file_range::range_text(range.0, range.1);
        metadata.push(file_range::RANGE, text.as_bytes()).unwrap();
        if let Some(tag) = tag {
            metadata.push(file_range::IF_MATCH, &tag).unwrap();
        }
        let body = directory.read(b"deep/file", &metadata, 34);
        body.map(|body| Part::decode(body).unwrap()).map_err(|dropped| dropped.code)
    }

    mod read {
        use super::*;

        #[test]
        fn ranges_of_a_file_are_read_as_far_as_a_message_goes() {
            let (_scratch, directory) = tree();
            let read = |first, length| {
                let part = read_range(&directory, (first, length), None).unwrap();
                assert_eq!(part.size, 7);
                part.bytes
            };
            assert_eq!(read(0, 1), "c");
            // 34 bytes have room for 2 behind the header.
            assert_eq!(read(0, 7), "co");
            assert_eq!(read(6, 100), "t");
            assert_eq!(read(7, 1), "");
            assert_eq!(read(1 << 40, 1 << 40), "");
        }

        #[test]
        fn a_range_of_another_version_is_refused_with_a_code() {
            let (scratch, directory) = tree();
            let tag = read_range(&directory, (0, 1), None).unwrap().tag;
            assert_eq!(read_range(&directory, (1, 1), Some(tag)).unwrap().bytes, "o");
            let file = scratch.path().join("inside/deep/file");
            std::fs::write(scratch.path().join("new"), "another").unwrap();
            std::fs::rename(scratch.path().join("new"), file).unwrap();
            let refused = read_range(&directory, (1, 1), Some(tag)).unwrap_err();
            assert_eq!(refused, file_range::CHANGED);
        }

        #[test]
        fn a_name_with_a_line_break_is_explained() {
            let (_scratch, directory) = tree();
            let failure = read(&directory, b"deep/file\n").unwrap_err();
            assert!(failure.text().contains("ends with a line break"));
        }

        #[test]
        fn files_within_are_read_also_by_links_that_stay_within() {
            let (_scratch, directory) = tree();
            for path in ["deep/file", "./deep/../deep/file", "link"] {
                assert_eq!(read(&directory, path.as_bytes()).unwrap(), "content", "{path}");
            }
        }

        #[test]
        fn nothing_leads_out() {
            let (scratch, directory) = tree();
            let absolute = scratch.path().join("inside/deep/file");
            let paths = ["../secret", "deep/../../secret", "out", "far-out", "/etc/hostname"];
            for path in paths.into_iter().chain(absolute.to_str()) {
                assert!(read(&directory, path.as_bytes()).is_err(), "{path}");
            }
        }

        #[test]
        fn what_is_no_file_is_refused() {
            let (_scratch, directory) = tree();
            for path in [&b""[..], b".", b"deep", b"missing", b"\xff", b"deep/file\0"] {
                assert!(read(&directory, path).is_err(), "{path:?}");
            }
        }

        #[test]
        fn what_is_too_long_for_a_path_is_not_quoted() {
            let (_scratch, directory) = tree();
            let failure = read(&directory, &[0; 1 << 20]).unwrap_err();
            assert!(failure.text().contains("1048576 bytes"));
            assert!(failure.text().len() < 200);
        }

        #[test]
        fn a_file_over_the_limit_is_refused_with_both_numbers() {
            let (scratch, directory) = tree();
            std::fs::write(scratch.path().join("inside/large"), "8 bytes!").unwrap();
            let failure = read(&directory, b"large").unwrap_err();
            assert!(failure.text().contains("8 bytes") && failure.text().contains("at most 7"));
        }
    }
}

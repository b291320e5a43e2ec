// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where replies go: standard output, a device, or a file that is written whole or not at all.
//!
//! A file is written beside its place, under a name of its own, and renamed when all replies are in
//! it and on disk: until then what was there stays, and no reader sees a part of a reply.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::terminal::Terminal;
use crate::exit_code;
use crate::failure::{Doing, Failure};

/// Where replies go.
pub(super) struct Output {
    shown: String,
    place: Place,
}

enum Place {
    /// A pipe, a terminal or a device: bytes that have left do not come back.
    Device(File),
    File(WholeFile),
    Standard,
    Terminal(Terminal),
}

/// A file that takes its place when it is whole; before that it goes on drop.
struct WholeFile {
    target: PathBuf,
    beside: PathBuf,
    file: File,
    is_in_place: bool,
}

impl Output {
    /// Opens it. A file cannot be written if its directory cannot.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if super::is_standard(path) {
            let place = match io::stdout().is_terminal() {
                true => Place::Terminal(Terminal::default()),
                false => Place::Standard,
            };
            return Ok(Self { shown: "standard output".to_owned(), place });
        }
        let shown = path.display().to_string();
        let place = open(path).doing(format!("writing {shown}"))?;
        Ok(Self { shown, place })
    }

    /// The file that is not whole yet.
    pub(super) fn begun_file(&self) -> Option<PathBuf> {
        match &self.place {
            Place::File(file) => Some(file.beside.clone()),
            _ => None,
        }
    }

    /// Writes a reply behind those before.
    pub(super) fn write(&mut self, reply: &[u8]) -> Result<(), Failure> {
        let written = match &mut self.place {
            Place::Device(file) => file.write_all(reply),
            Place::File(file) => file.file.write_all(reply),
            Place::Standard => write_standard(reply),
            Place::Terminal(terminal) => terminal.write(reply),
        };
        self.told(written)
    }

    /// All replies were written: a file takes its place.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let finished = match &mut self.place {
            Place::File(file) => file.take_place(),
            Place::Device(_) | Place::Standard | Place::Terminal(_) => Ok(()),
        };
        self.told(finished)
    }

    fn told(&self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            // The reader has closed the pipe on purpose, and needs no message.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error.into()),
            written => written
                .doing(format!(
                    "the request has run, but writing its reply to {} failed",
                    self.shown
                ))
                .map_err(|failure| failure.and_exit_code(exit_code::OUTPUT_FAILED)),
        }
    }
}

fn open(path: &Path) -> io::Result<Place> {
    let facts = match fs::metadata(path) {
        Ok(facts) if !facts.is_file() => {
            return OpenOptions::new().write(true).open(path).map(Place::Device);
        }
        Ok(facts) => Some(facts),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let target = match &facts {
        // A file that may not be written may not be replaced either, and links stay links.
        Some(_) => {
            access(path, Access::WRITE_OK)?;
            fs::canonicalize(path)?
        }
        None => path.to_owned(),
    };
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let name = format!(".{}.smt-{}", name.to_string_lossy(), std::process::id());
    let beside = target.with_file_name(name);
    let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let whole = WholeFile { target, beside, file, is_in_place: false };
    if let Some(facts) = facts {
        whole.file.set_permissions(facts.permissions())?;
    }
    Ok(Place::File(whole))
}

fn write_standard(reply: &[u8]) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(reply)?;
    output.flush()
}

impl WholeFile {
    fn take_place(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.target)?;
        self.is_in_place = true;
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.is_in_place {
            let _ = fs::remove_file(&self.beside);
        }
    }
}

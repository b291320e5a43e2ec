// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file that a zone includes (`$INCLUDE`), with the records of a server's ticket.
//!
//! The records are in the form of RFC 3597, which every name server reads, those that have no SVCB
//! too. The file is replaced at once: no reader finds a part of it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Publication;
use crate::error::PublishError;

/// A file with records.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ZoneFile(PathBuf);

impl ZoneFile {
    /// The file at this path. It is made with the first record, and its directory must be there.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Writes the records in place of those that are there.
    ///
    /// # Errors
    /// The file stays as it was.
    pub(super) fn write(&self, publication: &Publication) -> Result<(), PublishError> {
        self.replace(&text(publication))
    }

    /// Takes the records away.
    ///
    /// # Errors
    /// The file stays as it was.
    pub(super) fn clear(&self) -> Result<(), PublishError> {
        self.replace("; No ticket: the server has ended.\n")
    }

    fn replace(&self, text: &str) -> Result<(), PublishError> {
        replace(&self.0, text)
            .map_err(|error| PublishError::ZoneFile { path: self.0.clone(), error })
    }
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is the name of no file");
    let mut name = path.file_name().ok_or_else(no_file)?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    // A process of this number that was killed may have left one. A link is not followed.
    let _ = fs::remove_file(&beside);
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        // The first failure counts.
        let _ = fs::remove_file(&beside);
    }
    replaced
}

/// The records as text.
fn text(publication: &Publication) -> String {
    let Publication { servers, record, ttl } = publication;
    let validity = record.ticket().validity();
    let (from, to) = (validity.start(), validity.end());
    let mut text = format!("; An SMT ticket, good from {from} to {to} (seconds since 1970).\n");
    let rdata = record.to_rdata();
    for server in servers {
        let (name, length) = (server.record_name(), rdata.len());
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name} {ttl} IN TYPE64 \\# {length} (");
        for line in rdata.chunks(BYTES_A_LINE) {
            let _ = writeln!(text, "    {}", data_encoding::HEXLOWER.encode(line));
        }
        text.push_str("    )\n");
    }
    text
}

/// Lines that fit a terminal.
const BYTES_A_LINE: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TicketRecord;
    use crate::server::Server;

    fn publication() -> Publication {
        let (ticket, chain) = crate::record::tests::ticket("db7.example");
        Publication {
            servers: vec![Server::new("db7.example", 17_379).unwrap()],
            record: TicketRecord::new(ticket, &chain).unwrap(),
            ttl: 900,
        }
    }

    #[test]
    fn the_text_has_the_record_byte_by_byte() {
        let publication = publication();
        let text = text(&publication);
        let rdata = publication.record.to_rdata();
        let head = format!("_17379._smt.db7.example. 900 IN TYPE64 \\# {} (\n", rdata.len());
        let (_, behind) = text.split_once(&head).unwrap();
        let hex: String = behind.split_whitespace().filter(|word| *word != ")").collect();
        assert_eq!(data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap(), rdata);
        assert!(text.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let directory = std::env::temp_dir().join(format!("smt-dns-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("ticket.zone");
        let file = ZoneFile::new(&path);
        file.write(&publication()).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("TYPE64"));
        file.clear().unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("TYPE64"));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        let nowhere = ZoneFile::new(directory.join("no/ticket.zone"));
        let error = nowhere.write(&publication()).unwrap_err();
        assert!(error.to_string().starts_with("environment: "), "{error}");
        fs::remove_dir_all(&directory).unwrap();
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where a ticket is read from: a file in any of its forms, or DNS.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use smt::{Pem, Ticket};
use smt_dns::{Server, TicketRecord};

use crate::failure::{Doing, Failure};
use crate::host_and_port::host_and_port;
use crate::resolver::{ResolverArguments, block_on};

/// One of a file and a name.
#[derive(Args, Debug)]
pub(super) struct Source {
    /// A file with a ticket, with a record (RDATA), or with a record as text, as smt serve
    /// --tickets-zone-file writes it; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "dns", conflicts_with = "dns")]
    file: Option<PathBuf>,
    /// Look the ticket of this server up; the default port is 17379
    #[arg(long, value_name = "NAME[:PORT]")]
    dns: Option<String>,
    /// The server's certificates (PEM), for a ticket that comes without
    #[arg(long, value_name = "FILE")]
    chain: Option<PathBuf>,
    #[command(flatten)]
    resolver: ResolverArguments,
}

/// A ticket, and what came with it.
pub(super) struct Found {
    pub(super) ticket: Ticket,
    /// Leaf first, in DER.
    pub(super) chain: Option<Vec<Vec<u8>>>,
    /// The name that it was looked up by.
    pub(super) server: Option<String>,
    pub(super) ttl: Option<u32>,
}

impl Source {
    /// The ticket, well formed.
    pub(super) fn read(&self) -> Result<Found, Failure> {
        let mut found = match (&self.dns, &self.file) {
            (Some(name), _) => self.look_up(name)?,
            (None, Some(file)) => read(file)?,
            (None, None) => return Err(Failure::usage("give FILE, - or --dns NAME")),
        };
        if let Some(path) = &self.chain {
            let chain = Pem::read(path)?.certificates()?;
            found.chain = Some(chain.iter().map(|der| der.to_vec()).collect());
        }
        Ok(found)
    }

    fn look_up(&self, name: &str) -> Result<Found, Failure> {
        let (host, port) = host_and_port(name)?;
        let server = Server::new(host, port)?;
        let records = block_on(async {
            let resolver = self.resolver.resolver(LOOKUP_TIME)?;
            Ok::<_, Failure>(resolver.look_up(&server).await?)
        })??;
        let newest =
            records.into_iter().max_by_key(|found| *found.record.ticket().validity().start());
        let newest = newest.ok_or_else(|| Failure::new("DNS has no ticket of the server"))?;
        Ok(Found {
            ttl: Some(newest.ttl),
            server: Some(server.name().to_owned()),
            ..found(newest.record)
        })
    }
}

fn read(path: &Path) -> Result<Found, Failure> {
    let mut bytes = Vec::new();
    let shown = format!("reading {}", path.display());
    let input: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).doing(shown.clone())?),
    };
    let read = input.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes);
    read.doing(shown)?;
    if bytes.len() as u64 > FILE_LEN_MAX {
        return Err(Failure::new(format!("{} is longer than any ticket's file", path.display())));
    }
    of_bytes(&bytes).map_err(|failure| failure.and_text(format_args!(" ({})", path.display())))
}

fn of_bytes(bytes: &[u8]) -> Result<Found, Failure> {
    if let Some(rdata) = std::str::from_utf8(bytes).ok().and_then(rdata_of_text) {
        return Ok(found(TicketRecord::from_rdata(&rdata)?));
    }
    // A ticket begins with its format, 1, and RDATA with the priority, two bytes.
    if bytes.first() == Some(&0) {
        return Ok(found(TicketRecord::from_rdata(bytes)?));
    }
    Ok(Found { ticket: Ticket::from_bytes(bytes)?, chain: None, server: None, ttl: None })
}

fn found(record: TicketRecord) -> Found {
    Found {
        ticket: record.ticket().clone(),
        chain: record.chain().map(<[_]>::to_vec),
        server: None,
        ttl: None,
    }
}

/// The data of the first record in the form of RFC 3597: `\# LENGTH HEX …`, in parentheses or not.
fn rdata_of_text(text: &str) -> Option<Vec<u8>> {
    let (_, behind) = text.split_once("\\#")?;
    let mut words = behind.split_whitespace();
    let length: usize = words.next()?.parse().ok()?;
    let mut digits = String::new();
    for word in words.filter(|word| *word != "(") {
        if digits.len() >= length.checked_mul(2)? {
            break;
        }
        digits.push_str(word.trim_end_matches(')'));
    }
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.map(byte).collect();
    bytes.filter(|_| digits.len() == 2 * length)
}

/// Twice the bytes of a record as text.
const FILE_LEN_MAX: u64 = 131_072;
const LOOKUP_TIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::rdata_of_text;

    #[test]
    fn data_of_a_record_is_found_in_its_text() {
        let expected = Some(vec![1, 2, 0xff]);
        for text in [
            "; a comment\n_1._smt.a. 9 IN TYPE64 \\# 3 (\n  0102\n  ff\n  )\nb. 9 IN TYPE64 \\# 1 00\n",
            "_1._smt.a. 9 IN SVCB \\# 3 0102FF",
            "\\# 3 ( 01 02 ff)",
        ] {
            assert_eq!(rdata_of_text(text), expected, "{text}");
        }
        for text in ["", "\\# 3 0102", "\\# 3 0102f", "\\# x 01", "\\# 1 0g"] {
            assert_eq!(rdata_of_text(text), None, "{text}");
        }
    }
}

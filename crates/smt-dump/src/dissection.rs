// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One line for each packet, and below it what a key log brings to light.

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use smt_record::Purpose;
use smt_wire::{
    Control, Data, InnerHeader, Kind, MessageId, PLAINTEXT_VERSION, Packet, ParseError, TAG_LEN,
    VERSION, parse,
};

use crate::datagram::Datagram;
use crate::error::DumpError;
use crate::key_log::Keys;
use crate::messages::{Finding, Messages};
use crate::segments;
use crate::terms::{Direction, Handshakes, Terms};

/// The state of a whole capture.
pub(crate) struct Dissection {
    keys: Option<Keys>,
    directory: Option<PathBuf>,
    handshakes: Handshakes,
    messages: Messages,
    /// Names that were written, and how often: an index is of another session after a restart.
    written: HashMap<String, u32>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    datagrams: u64,
    packets: u64,
    opened: u64,
    failed: u64,
    whole: u64,
    /// DATA whose handshake was not captured.
    assumed: u64,
}

impl Dissection {
    /// Before the first packet. Whole messages are written into `directory`.
    pub(crate) fn new(keys: Option<Keys>, directory: Option<PathBuf>) -> Self {
        Self {
            keys,
            directory,
            handshakes: Handshakes::default(),
            messages: Messages::default(),
            written: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Whether there was no packet.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.packets == 0
    }

    /// A line for people, at the end.
    pub(crate) fn summary(&self) -> String {
        let Counts {
            datagrams,
            packets,
            opened,
            failed,
            whole,
            assumed,
        } = &self.counts;
        let mut text = format!("{packets} SMT packets in {datagrams} datagrams");
        if self.keys.is_some() {
            let incomplete = self.messages.incomplete();
            text += &format!(
                "; {opened} records and tags ok, {failed} FAILED; {whole} messages whole, {incomplete} not"
            );
            if *assumed > 0 {
                text += &format!(
                    "; the handshakes of {assumed} DATA packets were not captured: the usual record sizes are assumed"
                );
            }
        }
        text
    }

    /// Prints a datagram, which may be several.
    pub(crate) fn show(
        &mut self,
        time: Duration,
        datagram: &Datagram<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        let Datagram {
            source,
            target,
            payload,
            missing,
        } = *datagram;
        let head = format!("{} {source} > {target}", time_of_day(time));
        for mut bytes in segments::split(payload) {
            self.counts.datagrams += 1;
            while !bytes.is_empty() {
                let version = if bytes[0] == PLAINTEXT_VERSION {
                    PLAINTEXT_VERSION
                } else {
                    VERSION
                };
                match parse(version, bytes) {
                    Ok((packet, rest)) => {
                        self.counts.packets += 1;
                        write!(output, "{head} {packet}")?;
                        self.show_packet(datagram, &packet, output)?;
                        bytes = rest;
                    }
                    Err(error) => {
                        let cut = if missing > 0 {
                            format!(" (the capture cut {missing} bytes off)")
                        } else {
                            String::new()
                        };
                        writeln!(output, "{head} {error}{cut}")?;
                        bytes = match error {
                            ParseError::UnknownType {
                                length: length @ 1..,
                                ..
                            } => &bytes[length..],
                            _ => &[],
                        };
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows the rest of a packet's line, behind the packet's own words, and the lines below it.
    fn show_packet(
        &mut self,
        datagram: &Datagram<'_>,
        packet: &Packet<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        match packet {
            Packet::Handshake(handshake) => {
                self.handshakes
                    .take(datagram.source, datagram.target, handshake);
            }
            Packet::Control(control) => write!(output, "{}", self.tag(control))?,
            Packet::Data(data) => return self.show_data(datagram, data, output),
            Packet::Cookie(_)
            | Packet::VersionAnswer(_)
            | Packet::Reset(_)
            | Packet::Unavailable(_) => {}
        }
        Ok(writeln!(output)?)
    }

    fn tag(&mut self, control: &Control<'_>) -> &'static str {
        let Some(keys) = &self.keys else { return "" };
        let (index, epoch) = (control.header.session, control.header.epoch);
        let mut candidates = keys.candidates(index, Purpose::Control, epoch).peekable();
        if candidates.peek().is_none() {
            return " [no key]";
        }
        let Some((ciphertext, tag)) = control.sealed.split_last_chunk::<TAG_LEN>() else {
            return "";
        };
        let number = control.header.number.to_u64();
        // CONFIRM has a token under its tag, which is secret.
        let mut token = vec![0; ciphertext.len()];
        if candidates.any(|aead| {
            aead.open(number, control.aad, ciphertext, tag, &mut token)
                .is_ok()
        }) {
            self.counts.opened += 1;
            " [tag ok]"
        } else {
            self.counts.failed += 1;
            " [tag FAILED]"
        }
    }

    fn show_data(
        &mut self,
        datagram: &Datagram<'_>,
        data: &Data<'_>,
        output: &mut dyn Write,
    ) -> Result<(), DumpError> {
        let header = data.header;
        let to = Direction {
            target: datagram.target,
            session: header.session,
        };
        let terms = self.handshakes.terms(to);
        let is_assumed = terms.is_none();
        let terms = terms.unwrap_or(Terms::usual());
        if datagram.missing > 0 {
            write!(output, " (the capture cut {} bytes off)", datagram.missing)?;
        }
        let end = u64::from(header.offset) + data.payload.len() as u64;
        if end > u64::from(terms.geometry.stream_length(header.message_length)) {
            return Ok(writeln!(
                output,
                " [more than the message has: several datagrams of one send call that cannot be told apart; \
                 run the sender with --no-gso]"
            )?);
        }
        let Some(keys) = &self.keys else {
            return Ok(writeln!(output)?);
        };
        if !keys.has(header.session) {
            return Ok(writeln!(output, " [no key]")?);
        }
        writeln!(output)?;
        self.counts.assumed += u64::from(is_assumed);
        for finding in self.messages.take(to, data, terms, keys) {
            let line = self.line(to, header.id, finding)?;
            writeln!(output, "    {line}")?;
        }
        Ok(())
    }

    fn line(
        &mut self,
        to: Direction,
        id: MessageId,
        finding: Finding,
    ) -> Result<String, DumpError> {
        let outcome = |counts: &mut Counts, is_ok: bool| {
            if is_ok {
                counts.opened += 1;
            } else {
                counts.failed += 1;
            }
        };
        Ok(match finding {
            Finding::First(opened) => {
                outcome(&mut self.counts, opened.is_ok());
                match opened {
                    Ok(header) => format!("record 0 ok: {}", header_line(&header)),
                    Err(error) => format!("record 0 FAILED: {error}"),
                }
            }
            Finding::Rest(index, opened) => {
                outcome(&mut self.counts, opened.is_ok());
                match opened {
                    Ok(length) => format!("record {index} ok: {length} bytes"),
                    Err(error) => format!("record {index} FAILED: {error}"),
                }
            }
            Finding::Whole(kind, body) => self.whole(to, id, kind, &body)?,
            Finding::Bundle(Ok(count)) => format!("bundle {id} whole: {count} messages"),
            Finding::Bundle(Err(error)) => format!("bundle {id} FAILED: {error}"),
            Finding::Member(header, body) => {
                let mut line = self.whole(to, header.id, header.kind, &body)?;
                if header.deadline_us > 0 {
                    line += &format!(", deadline {} us", header.deadline_us);
                }
                line
            }
            Finding::Again => format!("message {id} is whole already"),
        })
    }
}

impl Dissection {
    fn whole(
        &mut self,
        to: Direction,
        id: MessageId,
        kind: Kind,
        body: &[u8],
    ) -> Result<String, DumpError> {
        self.counts.whole += 1;
        let whole = format!(
            "message {id} whole: {} of {} bytes",
            kind.name(),
            body.len()
        );
        Ok(match &self.directory {
            Some(directory) => {
                let name = name_of(to, id, kind);
                let count = self.written.entry(name.clone()).or_default();
                let path = write_new(directory, &name, count, body)?;
                format!("{whole}, written to {}", path.display())
            }
            None => whole,
        })
    }
}

/// Writes a decrypted message to a file that only its owner may read: of this name, or with the
/// next number behind it that no file has.
fn write_new(
    directory: &Path,
    name: &str,
    count: &mut u32,
    body: &[u8],
) -> Result<PathBuf, DumpError> {
    loop {
        *count += 1;
        let path = match *count {
            1 => directory.join(name),
            count => directory.join(format!("{name}-{count}")),
        };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => {
                let written = file.and_then(|mut file| file.write_all(body));
                return match written {
                    Ok(()) => Ok(path),
                    Err(error) => Err(DumpError::Message(path, error)),
                };
            }
        }
    }
}

/// The file that a message is written to.
fn name_of(to: Direction, id: MessageId, kind: Kind) -> String {
    let Direction { target, session } = to;
    let (kind, host) = (kind.name().to_lowercase(), target.ip());
    format!("{session}-{id}-{kind}-to-{host}-port-{}", target.port())
}

fn header_line(header: &InnerHeader) -> String {
    let InnerHeader {
        true_length,
        padded_length,
        kind,
        deadline_us,
        reply_unscheduled: _,
        window,
        ack,
    } = header;
    let mut line = format!("{} of {true_length} bytes", kind.name());
    let padding = padded_length - true_length - InnerHeader::LEN as u32;
    if padding > 0 {
        line += &format!(", {padding} of padding");
    }
    if *deadline_us > 0 {
        line += &format!(", deadline {deadline_us} us");
    }
    line += &format!(", window {window}");
    if let Some(ack) = ack {
        line += &format!(", ack base {} bits 0x{:x}", ack.base, ack.bits);
    }
    line
}

/// UTC, to the microsecond.
fn time_of_day(time: Duration) -> String {
    let seconds = time.as_secs() % 86_400;
    format!(
        "{:02}:{:02}:{:02}.{:06}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        time.subsec_micros()
    )
}

#[cfg(test)]
mod tests {
    mod time_of_day {
        use super::super::time_of_day;
        use std::time::Duration;

        #[test]
        fn is_in_utc() {
            let time = Duration::new(86_400 * 3 + 3_600 * 13 + 60 * 7 + 9, 42_000);
            assert_eq!(time_of_day(time), "13:07:09.000042");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Seals and opens packets for another implementation: commands on standard input, packets in hex.
//!
//! One association each way, of the same keys, for any packet:
//!
//!     association suite=SUITE key=HEX [tunnel=SOURCE,DESTINATION] [udp] [extended] [first=N]
//!     seal PACKET [VIRTIO-HEADER]    lines "sealed PACKET"
//!     dummy PACKET                   a line "sealed PACKET", which has nothing for its receiver
//!     open PACKET                    lines "opened PACKET VIRTIO-HEADER", or none yet
//!     flush                          the same lines, of packets that were coalesced
//!
//! Suites are `aes128-gcm`, `aes256-gcm`, `aes128-ccm8` and `null-sha256`. Each command ends with
//! the line "done", "dummy" or "error WHAT".

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use data_encoding::HEXLOWER;
use smt_esp::offload::Offload;
use smt_esp::{
    Action, Arrival, Database, Encapsulation, HEADROOM, InboundAssociation, InboundPath,
    KeyMaterial, Mode, OutboundAssociation, OutboundId, OutboundPath, PacketBuffer, Parameters,
    Policy, Selectors, Suite, TAILROOM, TunnelHeader,
};

const NOW: Duration = Duration::ZERO;
const SPI: u32 = 0xC0FF_EE01;
const MTU: usize = 1500;

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let mut session = None;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let end = run(&line, &mut session, &mut out).unwrap_or_else(|error| {
            let error = error.to_string().replace('\n', " ");
            format!("error {error}")
        });
        writeln!(out, "{end}")?;
        out.flush()?;
    }
    Ok(())
}

struct Session {
    database: Database,
    outbound_id: OutboundId,
    outbound: OutboundPath,
    inbound: InboundPath,
}

fn run(line: &str, session: &mut Option<Session>, out: &mut impl Write) -> Result<String, Failed> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (Some((&command, arguments)), live) = (words.split_first(), session) else {
        return Err("an empty line".into());
    };
    if command == "association" {
        *live = Some(Session::new(arguments)?);
        return Ok("done".into());
    }
    let session = live.as_mut().ok_or("no association yet")?;
    match (command, arguments) {
        ("seal", [packet]) => session.seal(packet, Offload::default(), out),
        ("seal", [packet, header]) => {
            let header = decode(header)?;
            let header = header.try_into().map_err(|_| "a virtio header of 10 bytes")?;
            session.seal(packet, Offload::from_virtio(&header)?, out)
        }
        ("dummy", [packet]) => session.dummy(packet, out),
        ("open", [packet]) => session.open(packet, out),
        ("flush", []) => {
            session.inbound.flush(&mut |packet, offload| {
                show_opened(out, packet, offload);
            });
            Ok("done".into())
        }
        _ => Err("an unknown command".into()),
    }
}

impl Session {
    fn new(arguments: &[&str]) -> Result<Self, Failed> {
        let mut database = Database::new();
        let association = OutboundAssociation::new(parameters(arguments)?, NOW)?;
        let outbound_id = database.add_outbound(association);
        database.add_policy(Policy {
            selectors: Selectors::default(),
            action: Action::Protect(outbound_id),
        });
        database.add_inbound(InboundAssociation::new(parameters(arguments)?, NOW)?)?;
        Ok(Self {
            database,
            outbound_id,
            outbound: OutboundPath::new(MTU, true),
            inbound: InboundPath::new(4),
        })
    }

    fn seal(
        &mut self,
        packet: &str,
        offload: Offload,
        out: &mut impl Write,
    ) -> Result<String, Failed> {
        let packet = decode(packet)?;
        let mut sealed = Vec::new();
        let mut deliver = |packet: &[u8]| sealed.push(HEXLOWER.encode(packet));
        let database = &mut self.database;
        self.outbound.send(database, (&packet, &offload), NOW, &mut deliver)?;
        for packet in sealed {
            writeln!(out, "sealed {packet}")?;
        }
        Ok("done".into())
    }

    fn dummy(&mut self, packet: &str, out: &mut impl Write) -> Result<String, Failed> {
        let packet = decode(packet)?;
        let mut memory = vec![0; HEADROOM + packet.len() + TAILROOM];
        let mut buffer = PacketBuffer::with_copy(&mut memory, &packet).ok_or("no room")?;
        let association = self.database.outbound_mut(self.outbound_id);
        association.ok_or("no association")?.seal_dummy(&mut buffer, NOW)?;
        writeln!(out, "sealed {}", HEXLOWER.encode(buffer.packet()))?;
        Ok("done".into())
    }

    fn open(&mut self, packet: &str, out: &mut impl Write) -> Result<String, Failed> {
        let mut memory = decode(packet)?;
        let range = 0..memory.len();
        let mut buffer = PacketBuffer::new(&mut memory, range).ok_or("no room")?;
        let mut deliver = |packet: &[u8], offload| show_opened(out, packet, offload);
        let database = &mut self.database;
        let arrival = self.inbound.receive(database, &mut buffer, NOW, &mut deliver)?;
        match arrival {
            Arrival::Opened(opened) if opened.dummy => Ok("dummy".into()),
            Arrival::Opened(_) => Ok("done".into()),
            other => Err(format!("not ESP: {other:?}").into()),
        }
    }
}

fn show_opened(out: &mut impl Write, packet: &[u8], offload: Offload) {
    let (packet, header) = (HEXLOWER.encode(packet), HEXLOWER.encode(&offload.to_virtio()));
    writeln!(out, "opened {packet} {header}").expect("standard output is open");
}

fn parameters(arguments: &[&str]) -> Result<Parameters, Failed> {
    let pairs = || arguments.iter().filter_map(|pair| pair.split_once('='));
    let value = |name: &str| pairs().find_map(|(key, value)| (key == name).then_some(value));
    let suite = match value("suite").ok_or("no suite")? {
        "aes128-gcm" => Suite::Aes128Gcm16,
        "aes256-gcm" => Suite::Aes256Gcm16,
        "aes128-ccm8" => Suite::Aes128Ccm8,
        "null-sha256" => Suite::NullHmacSha256,
        other => return Err(format!("unknown suite {other}").into()),
    };
    let mode = match value("tunnel") {
        None => Mode::Transport,
        Some(addresses) => {
            let (source, destination) = addresses.split_once(',').ok_or("one address")?;
            Mode::Tunnel(TunnelHeader::new(source.parse()?, destination.parse()?))
        }
    };
    let key = KeyMaterial::new(suite, &decode(value("key").ok_or("no key")?)?)?;
    let mut parameters = Parameters::new(SPI, key, mode);
    parameters.extended_numbers = arguments.contains(&"extended");
    parameters.encapsulation = arguments.contains(&"udp").then(Encapsulation::default);
    if let Some(first) = value("first") {
        parameters.first_number = first.parse()?;
    }
    Ok(parameters)
}

fn decode(hex: &str) -> Result<Vec<u8>, Failed> {
    Ok(HEXLOWER.decode(hex.as_bytes())?)
}

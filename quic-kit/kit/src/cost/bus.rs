// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bytes over PCIe, and the memory of the table.

use smt_nic::quic::{BYTES_OF_A_CONNECTION, BYTES_OF_AN_ID, IDS_OF_CONNECTION_MAX, Suite};
use smt_report::Table;

/// For one packet in each direction, without offload and with it.
pub(super) fn packets(packet: u32) -> Table {
    let row = |name: &str, without: u32, with: u32| {
        let cells = [without, with].map(|bytes| on_the_bus(bytes).to_string());
        (name.to_owned(), cells.to_vec())
    };
    Table {
        corner: "direction".to_owned(),
        columns: vec!["without offload".to_owned(), "with".to_owned()],
        rows: vec![
            row(
                "received",
                packet + DESCRIPTOR + COMPLETION,
                // The tag stays in the device; handle, number, phase and time come with the packet.
                packet - TAG + DESCRIPTOR + COMPLETION + RECEIVED,
            ),
            row(
                "sent",
                packet + DESCRIPTOR + COMPLETION,
                // The room of the tag goes down with handle and number in it.
                packet + DESCRIPTOR + COMPLETION,
            ),
        ],
    }
}

/// Writes of the host: what a connection's life costs, and the memory of many.
pub(super) fn table() -> Table {
    let suite = Suite::Aes256Gcm;
    let phase = suite.key_bytes() + IV;
    let admitted = 3 * phase + 2 * suite.key_bytes() + NUMBERS + ID;
    let rows = [
        ("a connection with one id", admitted),
        ("one more id", ID),
        ("a key update, both directions", 2 * phase),
        ("removed", NUMBERS),
    ];
    let mut rows: Vec<(String, Vec<String>)> = rows
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), vec![on_the_bus(bytes as u32).to_string()]))
        .collect();
    // Three connections for four places of ids with eight ids each would be refused at nine tenths.
    let ids = IDS_OF_CONNECTION_MAX * BYTES_OF_AN_ID * 10 / 9;
    for connections in [1_000, 100_000, 1_000_000] {
        let megabytes = connections * (BYTES_OF_A_CONNECTION + ids) / 1_000_000;
        let raw = connections * (4 * phase + 2 * suite.key_bytes() + WINDOW + ids) / 1_000_000;
        rows.push((
            format!("memory of {connections} connections"),
            vec![format!(
                "{megabytes} MB; {raw} MB if key schedules are made anew for each packet"
            )],
        ));
    }
    Table { corner: "write".to_owned(), columns: vec!["bytes".to_owned()], rows }
}

/// With the headers of the packets that PCIe cuts them into.
fn on_the_bus(bytes: u32) -> u32 {
    bytes + bytes.div_ceil(PAYLOAD_MAX) * HEADER
}

/// A usual payload of PCIe at most, and what each costs with framing.
const PAYLOAD_MAX: u32 = 256;
const HEADER: u32 = 24;
const DESCRIPTOR: u32 = 16;
const COMPLETION: u32 = 16;
/// Handle, number, phase, time of arrival.
const RECEIVED: u32 = 8 + 8 + 4 + 8;
const TAG: u32 = 16;
const IV: usize = 12;
/// An id with its length and handle.
const ID: usize = 21 + 8;
/// Handle, largest number, count of sealed packets, generation.
const NUMBERS: usize = 8 + 8 + 8 + 4;
/// The largest number, the window, limits.
const WINDOW: usize = 8 + 16 + 16;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Watches every datagram that a node sends.
//!
//! 1. It parses to its end, and is no larger than it may be.
//! 2. A control number is used once (SPEC §3.4).
//! 3. A record stream leaves in order, and a byte that is sent again is the same (SPEC §5.5, §9.1).

use std::collections::{BTreeMap, BTreeSet};

use smt_wire::{Data, Packet, parse};

use super::node::Datagram;

/// The packets that nodes have sent so far.
pub(crate) struct WireWatch {
    version: u8,
    /// Sender, the receiver's index, number.
    controls: BTreeSet<(usize, u64, u64)>,
    /// Record streams as far as sent, by sender, the receiver's index and id.
    streams: BTreeMap<(usize, u64, u64), Vec<u8>>,
}

impl WireWatch {
    pub(crate) fn new(version: u8) -> Self {
        Self { version, controls: BTreeSet::new(), streams: BTreeMap::new() }
    }

    pub(crate) fn look(&mut self, datagram: &Datagram) {
        let mut rest = datagram.bytes.as_slice();
        while !rest.is_empty() {
            let (packet, further) = parse(self.version, rest).expect("a node sends whole packets");
            match packet {
                Packet::Data(data) => self.look_at_data(datagram.from, &data),
                Packet::Control(control) => {
                    let header = control.header;
                    let name = (datagram.from, header.session.0, header.number.to_u64());
                    let is_new = self.controls.insert(name);
                    assert!(is_new, "a control number was used twice: {packet}");
                }
                _ => {}
            }
            rest = further;
        }
    }

    fn look_at_data(&mut self, from: usize, data: &Data<'_>) {
        let header = data.header;
        let name = (from, header.session.0, header.id.0);
        let stream = self.streams.entry(name).or_default();
        let start = header.offset as usize;
        assert!(start <= stream.len(), "bytes leave in order: {data}");
        let known = data.payload.len().min(stream.len() - start);
        let (again, new) = data.payload.split_at(known);
        assert!(stream[start..start + known] == *again, "other bytes under one number: {data}");
        assert!(
            new.is_empty() || !header.retransmit,
            "bytes that are new are said to be sent again: {data}"
        );
        stream.extend_from_slice(new);
    }
}

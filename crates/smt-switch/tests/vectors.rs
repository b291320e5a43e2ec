// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `vectors/in_network.json` has what these functions do, and for each of them packets that it
//! changes and packets that it leaves alone. `integrations/xdp` holds the XDP programs to it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;
use smt_switch::{Balancer, IpPacket, Marking, Recognition, mark, trim};

fn bytes_of(text: &Value) -> Option<Vec<u8>> {
    let text = text.as_str()?;
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    Some((0..text.len()).step_by(2).map(byte).collect())
}

#[test]
fn every_vector_is_what_the_functions_make_of_its_packet() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/in_network.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let balancer = Balancer::new(all["seed"].as_u64().unwrap());
    let paths = all["paths"].as_u64().unwrap() as u32;
    let recognition = Recognition::default();
    let mut changed = [0; 4];
    let vectors = all["vectors"].as_array().unwrap();
    for vector in vectors {
        let name = &vector["name"];
        let packet = bytes_of(&vector["packet"]).unwrap();
        let read = IpPacket::read(&packet, &recognition);
        let header = read.and_then(|read| read.data_header(&packet));
        assert_eq!(header.map(|of| of.id), vector["message"]["id"].as_u64(), "{name}");
        let path = balancer.path_of(&packet, &recognition, paths);
        assert_eq!(path.map(u64::from), vector["path"].as_u64(), "{name}");
        let mut cut = packet.clone();
        let length = trim(&mut cut, &recognition);
        cut.truncate(length.unwrap_or_default());
        assert_eq!(length.map(|_| cut), bytes_of(&vector["trimmed"]), "{name}");
        let mut marked = packet.clone();
        let is_marked = mark(&mut marked, &recognition) == Marking::Marked;
        assert_eq!(is_marked.then_some(marked), bytes_of(&vector["marked"]), "{name}");
        let fields = ["message", "path", "trimmed", "marked"];
        for (count, field) in changed.iter_mut().zip(fields) {
            *count += usize::from(!vector[field].is_null());
        }
    }
    assert!(changed.iter().all(|count| (10..vectors.len() - 10).contains(count)), "{changed:?}");
}

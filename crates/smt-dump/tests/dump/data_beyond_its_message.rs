// SPDX-License-Identifier: Apache-2.0 OR MIT
//! DATA that goes beyond its message is told, and nothing of it is opened.

use smt_dump::{Summary, Wishes, dump};

use crate::conversation::{SERVER, captured, pcap_header};

const NAME: &str = "reply_in_parts_at_client";

/// The capture, with bytes behind the UDP payload of each packet.
fn lengthened(capture: &[u8], by: u16) -> Vec<u8> {
    let (header, mut rest) = capture.split_at(pcap_header(0).len());
    let mut longer = header.to_vec();
    while let Some((header, bytes)) = rest.split_first_chunk::<16>() {
        let length = u32::from_be_bytes(*header.last_chunk().unwrap());
        let (packet, further) = bytes.split_at(length as usize);
        longer.extend(&header[..8]);
        longer.extend((length + u32::from(by)).to_be_bytes().repeat(2));
        let mut packet = packet.to_vec();
        // The lengths of IP and UDP.
        for at in [2, 24] {
            let known = u16::from_be_bytes([packet[at], packet[at + 1]]);
            packet[at..at + 2].copy_from_slice(&(known + by).to_be_bytes());
        }
        longer.extend(packet);
        longer.extend(vec![0; by.into()]);
        rest = further;
    }
    longer
}

fn shown(by: u16) -> (String, Summary) {
    let (capture, keys) = captured(NAME);
    let mut output = Vec::new();
    let wishes = Wishes { port: SERVER, keys: Some(keys), ..Wishes::default() };
    let summary = dump(&lengthened(&capture, by)[..], wishes, &mut output).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

#[test]
fn data_beyond_its_message_is_told_and_not_opened() {
    let (whole, _) = shown(0);
    assert!(whole.contains(" DATA ") && whole.contains("record 0 ok"), "{whole}");
    let (longer, _) = shown(4_000);
    for line in longer.lines().filter(|line| line.contains(" DATA ")) {
        assert!(line.contains("[more than the message has"), "{line}");
    }
    assert!(longer.contains(" DATA ") && !longer.contains("record 0 ok"), "{longer}");
}

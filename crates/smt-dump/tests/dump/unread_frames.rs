// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames that cannot be read are counted and named, and never told as if nothing were there.

use smt_dump::{Summary, Wishes, dump};

use crate::conversation::{SERVER, captured, pcap_header};

const NAME: &str = "reply_in_parts_at_client";

/// The capture of the conversation, with this in front of each packet, and another link type.
fn reframed(link_type: u32, before: &[u8]) -> Vec<u8> {
    let (whole, _) = captured(NAME);
    let mut rest = &whole[pcap_header(0).len()..];
    let mut capture = pcap_header(link_type);
    while let Some((header, bytes)) = rest.split_first_chunk::<16>() {
        let length = u32::from_be_bytes(*header.last_chunk().unwrap());
        let (packet, further) = bytes.split_at(length as usize);
        capture.extend(&header[..8]);
        capture.extend((length + before.len() as u32).to_be_bytes().repeat(2));
        capture.extend(before);
        capture.extend(packet);
        rest = further;
    }
    capture
}

fn shown(capture: &[u8]) -> (String, Summary) {
    let mut output = Vec::new();
    let wishes = Wishes { port: SERVER, ..Wishes::default() };
    let summary = dump(capture, wishes, &mut output).unwrap();
    (String::from_utf8(output).unwrap(), summary)
}

#[test]
fn a_capture_none_of_whose_frames_can_be_read_is_unread_and_names_the_link_type() {
    let (output, summary) = shown(&reframed(147, &[0; 4]));
    assert!(summary.is_unread());
    assert_eq!(summary.packets, 0);
    let told = format!("{} of link type 147 (USER0)", summary.frames);
    assert_eq!(summary.passed_over.to_string(), told);
    assert!(summary.text.ends_with(&format!("; frames passed over: {told}")), "{}", summary.text);
    assert_eq!(output, "");
}

#[test]
fn frames_of_point_to_point_links_show_the_same_packets_as_raw_ip() {
    let (whole, _) = captured(NAME);
    let (expected, _) = shown(&whole);
    for (link_type, before) in [(9, &[0xFF, 3, 0, 0x21][..]), (51, &[0x11, 0, 0, 1, 0, 9, 0, 0x21])]
    {
        let (output, summary) = shown(&reframed(link_type, before));
        assert_eq!(output, expected);
        assert!(!summary.is_unread() && !summary.passed_over.is_any());
    }
}

#[test]
fn frames_of_other_protocols_are_counted_beside_what_was_read() {
    let (whole, _) = captured(NAME);
    let mut other = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1];
    let mut capture = whole;
    for protocol in [6, 47, 47] {
        other[9] = protocol;
        capture.extend([0, 0, 20, 20].map(u32::to_be_bytes).concat());
        capture.extend(&other);
    }
    let (_, summary) = shown(&capture);
    assert!(!summary.is_unread());
    assert_eq!(
        summary.passed_over.to_string(),
        "2 of IP protocol 47 (GRE, not read), 1 of IP protocol 6 (TCP)"
    );
}

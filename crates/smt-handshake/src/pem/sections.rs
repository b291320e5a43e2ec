// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sections of a PEM text by their labels, whether they are read or not.
//!
//! A text of trust or identity is read whole, or refused: a certificate that is passed over in
//! silence shows much later, as a peer that is not believed.

use std::fmt::Write as _;

use rustls_pki_types::pem::Error;

/// Why a part of a text would be passed over.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Defect {
    /// The line has something before its `-----BEGIN`, counted from 1.
    NotAtLineStart { line: usize },
    /// A section of a label that nothing here reads.
    Unread { label: String },
}

/// The first defect of a text.
pub(super) fn check(text: &[u8]) -> Option<Defect> {
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        // A carriage return alone ends a line, too.
        for line in line.split(|byte| *byte == b'\r') {
            match label(line) {
                Some(label) if !is_read(&label) => return Some(Defect::Unread { label }),
                None if line.starts_with(BEGIN_TEXT.as_bytes()) => {
                    let label = "with a malformed label".to_owned();
                    return Some(Defect::Unread { label });
                }
                None if find(line, BEGIN_TEXT.as_bytes()).is_some_and(|place| place > 0) => {
                    return Some(Defect::NotAtLineStart { line: number + 1 });
                }
                _ => {}
            }
        }
    }
    None
}

/// Whether sections of this label are read somewhere here, or are known to have neither
/// certificates nor keys nor lists.
fn is_read(label: &str) -> bool {
    label.ends_with("PRIVATE KEY")
        || matches!(
            label,
            "CERTIFICATE"
                | "CERTIFICATE REQUEST"
                | "DH PARAMETERS"
                | "EC PARAMETERS"
                | "NEW CERTIFICATE REQUEST"
                | "PUBLIC KEY"
                | "X509 CRL"
        )
}

/// Why a section cannot be read, without bytes of it: it may be a key.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { end_marker } => format!(
            "its line -----END {}----- is missing, so the file was cut off, or a part of it is gone",
            line(end_marker)
        ),
        Error::IllegalSectionStart { line: start } => {
            format!("its line {} begins no section as it stands", line(start))
        }
        Error::Base64Decode(_) => {
            "between a BEGIN and its END there is something that is no base64".to_owned()
        }
        other => other.to_string(),
    }
}

/// A line of the text for a message.
fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().escape_debug().take(LINE_SHOWN).collect()
}

/// Takes the byte order marks (of UTF-8) off with which editors begin a text; there are several
/// where such texts were joined. The text keeps its place in memory.
pub(super) fn take_off_byte_order_marks(text: &mut Vec<u8>) {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    let marked = [BYTE_ORDER_MARK, BEGIN_TEXT.as_bytes()].concat();
    while let Some(place) = find(text, &marked) {
        text.drain(place..place + BYTE_ORDER_MARK.len());
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The contents of a text, in words: "1 PRIVATE KEY, 2 CERTIFICATE".
pub(super) fn found(text: &[u8]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Some(label) = label(line) else { continue };
        if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == label) {
            *count += 1;
        } else if counts.len() < FOUND_MAX {
            counts.push((label, 1));
        }
    }
    let mut words = String::new();
    for (label, count) in &counts {
        let comma = if words.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(words, "{comma}{count} {label}");
    }
    match (words.is_empty(), text) {
        (false, _) => words,
        (true, []) => "nothing".to_owned(),
        // An ASN.1 SEQUENCE with a long length: how every certificate and key in DER begins.
        (true, [0x30, 0x81..=0x83, ..]) => {
            "DER, not PEM (convert it, e.g. with `openssl x509 -inform der`)".to_owned()
        }
        (true, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) => {
            "text in UTF-16, and PEM is ASCII (save it as such)".to_owned()
        }
        (true, _) => "no PEM section at all".to_owned(),
    }
}

/// The first section with a private key: its label, and its text from the line that begins it to
/// the one that ends it.
pub(super) fn key_section(text: &str) -> Option<(&str, &str)> {
    let begins = text.match_indices(BEGIN_TEXT);
    let (start, label) = begins
        .filter(|(start, _)| *start == 0 || text.as_bytes()[start - 1] == b'\n')
        .filter_map(|(start, begin)| {
            let (label, _) = text[start + begin.len()..].split_once("-----")?;
            Some((start, label))
        })
        .find(|(_, label)| label.ends_with("PRIVATE KEY"))?;
    let section = &text[start..];
    let end = format!("-----END {label}-----");
    let length = section.find(&end).map_or(section.len(), |place| place + end.len());
    Some((label, &section[..length]))
}

/// The label of a line `-----BEGIN label-----`, if it is one.
fn label(line: &[u8]) -> Option<String> {
    let line = line.strip_prefix(BEGIN_TEXT.as_bytes())?;
    let label = line.trim_ascii_end().strip_suffix(b"-----")?;
    let fits = label.len() <= LABEL_LEN_MAX && label.iter().all(|b| (b' '..=b'~').contains(b));
    fits.then(|| String::from_utf8_lossy(label).into_owned())
}

/// The beginning of the line that begins a section (RFC 7468 §3).
const BEGIN_TEXT: &str = "-----BEGIN ";
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Kinds of sections that a message lists at most: it stays one line.
const FOUND_MAX: usize = 4;
/// Bytes of a section's label that a message repeats at most.
const LABEL_LEN_MAX: usize = 40;
/// Characters of a line that a message shows.
const LINE_SHOWN: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    mod found {
        use super::*;

        #[test]
        fn sections_are_counted_by_label() {
            let text = b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n\
                -----BEGIN CERTIFICATE-----\r\n-----BEGIN EC PRIVATE KEY-----\n";
            assert_eq!(found(text), "2 CERTIFICATE, 1 EC PRIVATE KEY");
        }

        #[test]
        fn der_is_recognised() {
            assert!(found(&[0x30, 0x82, 1, 2]).starts_with("DER"));
        }

        #[test]
        fn empty_and_foreign_text_are_told_apart() {
            assert_eq!(found(b""), "nothing");
            assert_eq!(found(b"hello"), "no PEM section at all");
        }
    }

    mod check {
        use super::*;

        fn section(label: &str) -> String {
            format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n")
        }

        #[test]
        fn sections_that_go_beside_certificates_are_no_defect() {
            for label in ["EC PARAMETERS", "RSA PRIVATE KEY", "X509 CRL", "CERTIFICATE REQUEST"] {
                let text =
                    format!("Bag Attributes\r\n{}{}", section(label), section("CERTIFICATE"));
                assert_eq!(check(text.as_bytes()), None, "{label}");
            }
        }

        #[test]
        fn a_label_that_is_not_read_is_named() {
            for label in ["TRUSTED CERTIFICATE", "X509 CERTIFICATE", "PKCS7", "SOMETHING"] {
                let text = section("CERTIFICATE") + &section(label);
                let unread = Defect::Unread { label: label.to_owned() };
                assert_eq!(check(text.as_bytes()), Some(unread));
            }
        }

        #[test]
        fn a_section_that_begins_behind_a_lone_carriage_return_begins_a_line() {
            let text = format!("Bag Attributes\r{}", section("CERTIFICATE"));
            assert_eq!(check(text.as_bytes()), None);
            let text = format!("Bag Attributes\r{}", section("PKCS7"));
            assert_eq!(check(text.as_bytes()), Some(Defect::Unread { label: "PKCS7".to_owned() }));
        }

        #[test]
        fn a_line_that_begins_a_section_and_has_no_whole_label_is_not_passed_over() {
            for line in ["-----BEGIN CERTIFICATE----", "-----BEGIN CERTIFICATE----- of db7"] {
                let text = format!("{line}\nAAAA\n{}", section("CERTIFICATE"));
                let label = "with a malformed label".to_owned();
                assert_eq!(check(text.as_bytes()), Some(Defect::Unread { label }), "{line}");
            }
        }

        #[test]
        fn a_section_that_is_indented_is_told_by_its_line() {
            for end in ["\n", "\r\n"] {
                let lines = ["key", "", "  -----BEGIN CERTIFICATE-----", "AAAA"].join(end);
                assert_eq!(
                    check(lines.as_bytes()),
                    Some(Defect::NotAtLineStart { line: 3 }),
                    "{end:?}"
                );
            }
        }
    }

    mod take_off_byte_order_marks {
        use super::*;

        #[test]
        fn marks_before_sections_go_and_other_bytes_stay() {
            let mark = "\u{feff}";
            let section = "-----BEGIN CERTIFICATE-----\nAAAA\n";
            let text = format!("{mark}{section}{mark}{section}a{mark}b");
            let mut text = text.into_bytes();
            take_off_byte_order_marks(&mut text);
            assert_eq!(text, format!("{section}{section}a{mark}b").into_bytes());
            let mut alone = mark.as_bytes().to_vec();
            take_off_byte_order_marks(&mut alone);
            assert_eq!(alone, b"");
        }
    }
}

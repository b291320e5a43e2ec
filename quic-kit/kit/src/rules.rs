// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules that say what a sample's time went to.
//!
//! A rule is a class and a regular expression. The frames of a sample's stack are looked at from
//! the innermost outwards; the first frame that a rule matches gives the class, and of the rules
//! the first in the file. A sample without such a frame is not caught, and its innermost symbol is
//! shown. A class with `*` behind it takes all samples below a function: its rules are asked of all
//! frames before the others are.

use std::fs;
use std::path::Path;

use kit_process::{Doing, Failure};
use regex::Regex;

/// The rules of a file, in their order.
pub(crate) struct Rules(Vec<Rule>);

struct Rule {
    class: String,
    is_of_all_below: bool,
    pattern: Regex,
}

impl Rules {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path);
        Self::parse(&text.doing(&format!("reading {}", path.display()))?)
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let mut rules = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("rule in line {}", number + 1);
            let (class, pattern) = line
                .split_once(char::is_whitespace)
                .ok_or_else(|| Failure::new(format!("{place} has no pattern")))?;
            rules.push(Rule {
                class: class.trim_end_matches('*').to_owned(),
                is_of_all_below: class.ends_with('*'),
                pattern: Regex::new(pattern.trim()).doing(&place)?,
            });
        }
        Ok(Self(rules))
    }

    /// The class of a stack, the innermost frame first.
    pub(crate) fn class_of(&self, stack: &[&str]) -> Option<&str> {
        let of_frame = |frame: &str, is_of_all_below: bool| {
            let rules = self.0.iter();
            let mut rules = rules.filter(|rule| rule.is_of_all_below == is_of_all_below);
            rules.find(|rule| rule.pattern.is_match(frame))
        };
        let mut passes = [true, false].into_iter();
        let rule = passes.find_map(|below| stack.iter().find_map(|frame| of_frame(frame, below)));
        rule.map(|rule| &*rule.class)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_innermost_frame_that_a_rule_matches_decides() {
        let text = "# comment\n\nio ^sys_\nack on_ack\ncrypto aes\nother ^main$\n";
        let rules = Rules::parse(text).unwrap();
        let class = |stack: &[&str]| rules.class_of(stack).map(str::to_owned);
        assert_eq!(class(&["memcpy", "on_ack", "main"]), Some("ack".to_owned()));
        assert_eq!(class(&["memcpy", "sys_send", "on_ack"]), Some("io".to_owned()));
        assert_eq!(class(&["main"]), Some("other".to_owned()));
        assert_eq!(class(&["memcpy", "start"]), None);
    }

    #[test]
    fn a_class_with_a_star_takes_what_is_below_its_function() {
        let rules = Rules::parse("crypto aes\ndevice* ^engine$\nother ^main$\n").unwrap();
        let class = |stack: &[&str]| rules.class_of(stack).map(str::to_owned);
        let device = Some("device".to_owned());
        assert_eq!(class(&["aes_block", "engine", "main"]), device);
        assert_eq!(class(&["unknown", "engine"]), device);
        assert_eq!(class(&["aes_block", "main"]), Some("crypto".to_owned()));
    }

    #[test]
    fn a_rule_without_a_pattern_is_refused_with_its_line() {
        let failure = Rules::parse("io x\ncrypto\n").err().unwrap();
        assert!(failure.to_string().contains("line 2"), "{failure}");
        assert!(Rules::parse("io (").is_err());
    }

    #[test]
    fn the_rules_that_are_shipped_can_be_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rules.txt");
        let rules = Rules::read(&path).unwrap();
        let class = |frame: &str| rules.class_of(&[frame]).map(str::to_owned);
        let expected = [
            ("aws_lc_0_45_0_aes_gcm_encrypt_avx512", "aead"),
            ("aesni_ctr32_encrypt_blocks", "aead"),
            ("__x64_sys_sendmsg", "packet-io"),
            ("quinn_proto::connection::Connection::on_ack_received", "ack-reordering"),
            ("quinn_proto::connection::assembler::Assembler::insert", "ack-reordering"),
            ("aioquic.quic.packet:pull_quic_header", "header"),
            ("smt_nic::quic::receive::<impl smt_nic::quic::QuicEngine>::open", "device"),
            (
                "<kit_offload::keys::LinkedPacketKey as quinn_proto::crypto::PacketKey>::decrypt",
                "bookkeeping",
            ),
        ];
        for (frame, of) in expected {
            assert_eq!(class(frame).as_deref(), Some(of), "{frame}");
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt doctor`: offloads and limits that this host offers to SMT, tried out, and advice.
//!
//! 1. `smt_io::probe` tries offloads, buffers and datagram sizes on loopback.
//! 2. The carriers without UDP are tried out, too (`carriers`).
//! 3. Each finding is compared with what SMT makes use of; one that falls short comes with the
//!    command that mends it.

#[cfg(target_os = "linux")]
mod carriers;

use std::io::Write;

use clap::Args;
use serde::Serialize;
use serde_json::json;
use smt_io::Probe;

use crate::failure::{Doing, Failure};
use crate::machine::Machine;
use crate::size::Size;
use crate::standard_output::standard_output;

/// Tell what this host offers to SMT, and what to change
///
/// Exit code 0 also if something could be better: everything works without it.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// One JSON object per line instead of text
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
struct Finding {
    name: &'static str,
    value: String,
    /// Advice if the value could be better.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let probe = smt_io::probe().doing("opening UDP sockets on loopback")?;
    let machine = Machine::here();
    let mut findings = network(&probe);
    findings.push(cipher(machine.has_aes()));
    #[cfg(target_os = "linux")]
    findings.extend(carriers::findings());
    let mut output = standard_output();
    if arguments.json {
        let head = json!({"schema": SCHEMA, "kind": "machine", "machine": machine});
        writeln!(output, "{head}")?;
        for finding in &findings {
            let mut line = serde_json::to_value(finding)?;
            line["schema"] = json!(SCHEMA);
            line["kind"] = json!("finding");
            writeln!(output, "{line}")?;
        }
        return Ok(());
    }
    writeln!(output, "{machine}\n")?;
    for Finding { name, value, advice } in &findings {
        let mark = if advice.is_some() { "!" } else { " " };
        writeln!(output, "{mark} {name:<24} {value}")?;
        for line in advice.iter().flat_map(|advice| advice.lines()) {
            writeln!(output, "    {line}")?;
        }
    }
    let open = findings.iter().filter(|finding| finding.advice.is_some()).count();
    match open {
        0 => writeln!(output, "\nnothing to change")?,
        _ => writeln!(output, "\n{open} to change; SMT works without, but slower")?,
    }
    Ok(())
}

fn network(probe: &Probe) -> Vec<Finding> {
    let finding = |name, value: String, advice: Option<String>| Finding { name, value, advice };
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    vec![
        finding(
            "segments in a send call",
            probe.segments_max.to_string(),
            (probe.segments_max < 2).then(|| {
                "a kernel from 4.18 on sends many datagrams by one call (UDP GSO)".to_owned()
            }),
        ),
        finding(
            "receive offload",
            yes(probe.receive_offload),
            (!probe.receive_offload).then(|| {
                "a kernel from 5.0 on receives many datagrams by one call (UDP GRO)".to_owned()
            }),
        ),
        finding(
            "shards sorted by kernel",
            yes(probe.shard_selector),
            (!probe.shard_selector).then(|| {
                "Linux from 4.5 on sorts datagrams by shard (SO_ATTACH_REUSEPORT_CBPF); some sandboxes forbid it.\n\
                 Shards work without, but pass each other what they receive"
                    .to_owned()
            }),
        ),
        buffer(
            "receive buffer",
            "rmem_max",
            probe.receive_buffer_bytes_max,
            probe.buffer_force,
        ),
        buffer(
            "send buffer",
            "wmem_max",
            probe.send_buffer_bytes_max,
            probe.buffer_force,
        ),
        finding(
            "largest datagram",
            format!(
                "{} bytes on loopback (MTU {})",
                probe.datagram_bytes_max, probe.loopback_mtu
            ),
            (probe.datagram_bytes_max < DATAGRAM_BYTES_WANTED)
                .then(|| "sudo ip link set dev lo mtu 65536".to_owned()),
        ),
        finding(
            "priorities (DSCP)",
            yes(probe.dscp),
            (!probe.dscp).then(|| {
                "something on loopback rewrites the traffic class; see `sudo nft list ruleset`"
                    .to_owned()
            }),
        ),
        // No advice: IPv4 alone is a choice.
        finding("IPv6", yes(probe.ipv6), None),
    ]
}

fn buffer(name: &'static str, setting: &str, granted: usize, is_forced: bool) -> Finding {
    let by = if is_forced { " (CAP_NET_ADMIN)" } else { "" };
    let advice = (granted < BUFFER_BYTES_WANTED).then(|| {
        format!(
            "bursts are lost when it is full; allow {}:\n\
             sudo sysctl -w net.core.{setting}={BUFFER_BYTES_WANTED}\n\
             echo net.core.{setting}={BUFFER_BYTES_WANTED} | sudo tee -a /etc/sysctl.d/90-smt.conf",
            Size(BUFFER_BYTES_WANTED as u64)
        )
    });
    Finding { name, value: format!("up to {}{by}", Size(granted as u64)), advice }
}

fn cipher(has_aes: Option<bool>) -> Finding {
    let (value, advice) = match has_aes {
        Some(true) => ("yes", None),
        Some(false) => (
            "no",
            Some("prefer ChaCha20-Poly1305: Builder::suites([Suite::ChaCha20Poly1305])".to_owned()),
        ),
        None => ("unknown", None),
    };
    Finding { name: "AES in hardware", value: value.to_owned(), advice }
}

/// Version of the JSON lines.
const SCHEMA: u32 = 1;
/// The buffer size that SMT asks for by default.
const BUFFER_BYTES_WANTED: usize = 4 << 20;
/// Jumbo frames less headers: below, loopback is set to something unusual.
const DATAGRAM_BYTES_WANTED: usize = 8_972;

#[cfg(test)]
mod tests {
    use super::*;

    mod buffer {
        use super::*;

        #[test]
        fn a_small_one_comes_with_the_command() {
            let finding = buffer("receive buffer", "rmem_max", 212_992, false);
            let advice = finding.advice.unwrap();
            assert!(advice.contains("sudo sysctl -w net.core.rmem_max=4194304"), "{advice}");
        }

        #[test]
        fn a_large_one_does_not() {
            assert_eq!(buffer("send buffer", "wmem_max", 4 << 20, true).advice, None);
        }
    }

    mod cipher {
        use super::*;

        #[test]
        fn only_a_known_lack_is_advised_about() {
            assert!(cipher(Some(false)).advice.is_some());
            assert!(cipher(Some(true)).advice.is_none());
            assert!(cipher(None).advice.is_none());
        }
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The text of a case: link, hosts, messages, and its faults in the order of their times.

use std::time::Duration;

use serde_json::json;
use smt_record::Padding;
use smt_sim::net::HostId;
use smt_sim::swarm::{Action, Case};

use super::SCHEMA;
use super::fault_text::FaultText;
use crate::size::Size;
use crate::time_span;

/// For people: a line for each thing.
pub(super) fn text(case: &Case) -> String {
    let mut lines = vec![row("seed", &case.seed.to_string()), row("link", &link(case))];
    lines.extend((0..case.hosts()).map(|number| host(case, number)));
    lines.push(row("messages", &Messages::of(case).text()));
    lines.extend(closes(case).map(|text| row("close", &text)));
    lines.push(row("healed", &healed(case)));
    let faults = FaultText::all(case);
    lines.extend(faults.iter().map(|fault| row("fault", &fault.text())));
    if faults.is_empty() {
        lines.push(row("faults", "none"));
    }
    lines.join("\n")
}

/// For programs: the values that can be compared between cases.
pub(super) fn json(case: &Case) -> serde_json::Value {
    let messages = Messages::of(case);
    let may_end = case.may_end.iter().map(|(one, other)| [one.0, other.0]);
    let may_end: Vec<_> = may_end.collect();
    json!({
        "schema": SCHEMA, "kind": "case", "seed": case.seed, "hosts": case.hosts(),
        "link": {
            "bits_per_s": case.link.rate, "delay_ns": case.link.delay.as_nanos() as u64,
            "payload_bytes_max": case.link.payload_max,
        },
        "messages": messages.all, "message_bytes": messages.bytes,
        "heals_ns": case.heals.as_nanos(), "sessions_may_end": may_end,
        "faults": FaultText::all(case),
    })
}

fn link(case: &Case) -> String {
    let text = format!(
        "{} Gb/s, {} each way, datagrams up to {}",
        case.link.rate / 1_000_000_000,
        time_span::display(case.link.delay),
        Size(case.link.payload_max as u64),
    );
    match case.trims_above {
        Some(bytes) => format!("{text}, trimmed above {bytes} B"),
        None => text,
    }
}

/// A host's configuration.
fn host(case: &Case, number: u32) -> String {
    let place = number as usize;
    let config = &case.configs[place];
    let padding = match config.padding {
        Padding::None => "none".to_owned(),
        Padding::Block(block) => format!("to {block} B"),
        Padding::Padme => "Padmé".to_owned(),
    };
    let suite = case.suites[place].first().map(ToString::to_string);
    let text = format!(
        "{} first; records of {} B, first {} B; window {} x {} ids; unscheduled {} B; padding {padding}; memory {}; parts {}",
        suite.unwrap_or_default(),
        config.record_size,
        config.first_record_size,
        1 << config.stripes_log2,
        config.window,
        config.unscheduled,
        Size(config.memory_max as u64),
        Size(config.part_window.into()),
    );
    let text = match case.pulls[place] {
        Some(pulls) => format!(
            "{text}; pulls {} Mb/s, {} B each, {:?}",
            pulls.rate / 1_000_000,
            pulls.window,
            pulls.order
        ),
        None => text,
    };
    row(&format!("host {number}"), &text)
}

/// Sessions that are to be closed.
fn closes(case: &Case) -> impl Iterator<Item = String> {
    case.plan.iter().filter_map(|planned| match planned.action {
        Action::Close(HostId(peer)) => Some(format!(
            "at {} host {} closes its session with host {peer}",
            time_span::display(Duration::from_nanos(planned.at.as_nanos())),
            planned.host.0,
        )),
        Action::Send { .. } => None,
    })
}

fn healed(case: &Case) -> String {
    let at = time_span::display(Duration::from_nanos(case.heals.as_nanos()));
    let hosts = case.hosts() as usize;
    let pairs = case.may_end.iter().map(|(one, other)| format!("{}-{}", one.0, other.0));
    let pairs: Vec<_> = pairs.collect();
    match pairs.len() {
        0 => format!("at {at}; no session may end"),
        all if all == hosts * (hosts - 1) / 2 => format!("at {at}; all sessions may end"),
        _ => format!("at {at}; sessions of hosts {} may end", pairs.join(", ")),
    }
}

/// The messages that are planned.
#[derive(Clone, Copy, Debug, Default)]
struct Messages {
    all: u32,
    bytes: u64,
    longest: u32,
    one_way: u32,
    with_deadline: u32,
    cancelled: u32,
    in_parts: u32,
}

impl Messages {
    fn of(case: &Case) -> Self {
        let mut messages = Self::default();
        for planned in &case.plan {
            let Action::Send { sent, deadline, cancel_after } = &planned.action else {
                continue;
            };
            messages.all += 1;
            messages.bytes += u64::from(sent.content.length);
            messages.longest = messages.longest.max(sent.content.length);
            messages.one_way += u32::from(sent.is_one_way);
            messages.with_deadline += u32::from(deadline.is_some());
            messages.cancelled += u32::from(cancel_after.is_some());
            messages.in_parts += u32::from(sent.parts.has_parts());
        }
        messages
    }

    fn text(self) -> String {
        let Self { all, bytes, longest, one_way, with_deadline, cancelled, in_parts } = self;
        format!(
            "{all} of {bytes} B, the longest {longest} B; {one_way} one-way, {with_deadline} with a deadline, \
             {cancelled} cancelled, {in_parts} calls in parts"
        )
    }
}

fn row(name: &str, text: &str) -> String {
    format!("{name:<9} {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_and_fault_has_a_line() {
        for seed in 0..100 {
            let case = Case::new(seed);
            let text = text(&case);
            let lines = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
            assert_eq!(lines("host "), case.hosts() as usize, "{text}");
            let faults = FaultText::all(&case).len();
            assert_eq!(lines("fault "), faults, "{text}");
            assert_eq!(lines("faults "), usize::from(faults == 0), "{text}");
        }
    }

    #[test]
    fn messages_are_counted() {
        for seed in 0..10 {
            let case = Case::new(seed);
            let messages = Messages::of(&case);
            let closes = closes(&case).count();
            assert_eq!(messages.all as usize + closes, case.plan.len(), "{seed}");
            assert!(messages.one_way < messages.all && messages.longest > 1_000);
        }
    }
}

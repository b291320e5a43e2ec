// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Appendix C of the specification against the constants of the code.

use super::*;
use core::time::Duration;
use smt_wire::EARLY_CALLS_MAX;
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::path::Path;
use std::string::String;
use std::vec::Vec;

const DRAFT: &str = include_str!("../../../../docs/draft-smt-00.md");

/// A constant in a unit, for comparison with a row. Several values for a list.
trait Measure {
    fn in_unit(&self, unit: &str) -> Vec<u128>;
}

impl Measure for Duration {
    fn in_unit(&self, unit: &str) -> Vec<u128> {
        let nanos = match unit {
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => panic!("{unit} is no unit of time"),
        };
        vec![exactly(self.as_nanos(), nanos)]
    }
}

impl<const N: usize> Measure for [usize; N] {
    fn in_unit(&self, _unit: &str) -> Vec<u128> {
        let mut values: Vec<u128> = self.iter().map(|&value| value as u128).collect();
        values.sort_unstable();
        values
    }
}

macro_rules! measure_integers {
    ($($integer:ty),*) => {$(
        impl Measure for $integer {
            fn in_unit(&self, unit: &str) -> Vec<u128> {
                let factor = match unit {
                    "KiB" => 1 << 10,
                    "MiB" => 1 << 20,
                    "GiB" => 1 << 30,
                    "MB" => 1_000_000,
                    _ => 1,
                };
                vec![exactly(u128::try_from(*self).unwrap(), factor)]
            }
        }
    )*};
}
measure_integers!(u8, u16, u32, u64, usize);

fn exactly(value: u128, divisor: u128) -> u128 {
    assert_eq!(value % divisor, 0, "{value} is no multiple of {divisor}");
    value / divisor
}

/// The constants by the last part of their paths, or by the last two where a type stands before
/// them.
macro_rules! constants {
    ($($constant:expr),* $(,)?) => {
        [$((stringify!($constant), &$constant as &dyn Measure)),*]
            .into_iter()
            .map(|(path, value)| {
                let path: String = path.split_whitespace().collect();
                let parts: Vec<&str> = path.split("::").collect();
                let is_of_type = |part: &&&str| part.starts_with(char::is_uppercase);
                let name: Vec<&str> = parts.iter().filter(is_of_type).copied().collect();
                (name.join("::"), value)
            })
            .collect::<BTreeMap<String, &dyn Measure>>()
    };
}

fn constants() -> BTreeMap<String, &'static dyn Measure> {
    let mut all = of_handshakes_and_questions();
    all.extend(of_paths_grants_and_memory());
    all.extend(of_parameters_and_other_crates());
    all
}

fn of_handshakes_and_questions() -> BTreeMap<String, &'static dyn Measure> {
    constants![
        HANDSHAKE_RETRY,
        HANDSHAKE_RETRY_MAX,
        ATTEMPT_QUESTIONS,
        EARLY_CALLS_MAX,
        STALE_HINTS,
        REFUSALS_BELIEVED,
        ACCEPT_LIFE,
        FLIGHTS_MAX,
        FLIGHT_BYTES_MAX,
        FLIGHT_PIECES_MAX,
        AMPLIFICATION,
        ACCEPTS_WITHOUT_COOKIE,
        ACCEPTS_PER_PREFIX,
        ACCEPTS_MAX,
        COOKIE_LIFE_SECS,
        COOKIE_KEY_LIFE_SECS,
        COOKIES_PER_SECOND,
        COOKIES_PER_ADDRESS,
        ANSWERS_PER_SECOND,
        ANSWERS_QUEUED,
        EVICTION_CANDIDATES,
        RESEND_INTERVAL,
        RESEND_INTERVAL_MAX,
        CANCEL_ANSWER_MAX,
        REPLY_INTERVAL_MIN,
        REQUESTS_AGAIN,
        NEED_ACK_INTERVAL,
        NEED_ACK_INTERVAL_SHORT,
        NEED_ACK_INTERVAL_MAX,
        NEED_ACK_TRIES,
        NEED_ACK_TRIES_PRESSED,
        KEPT_FEW,
        RESEND_BYTES_PER_SECOND,
        RESEND_CREDIT_MAX,
        QUESTIONS_PER_PASS,
        TIMER_GRAIN_MAX,
        INCOMPLETE_LIFE,
        SILENCE_MAX,
        CALLER_QUIET_MAX,
        PINGS_UNTIL_DEAD,
        IDLE_LIFE,
        OLD_EPOCH_LIFE,
    ]
}

fn of_paths_grants_and_memory() -> BTreeMap<String, &'static dyn Measure> {
    constants![
        DATAGRAM_FLOOR,
        PROBE_SIZES,
        PROBE_TRIES,
        PROBE_INTERVAL,
        PROBE_AGAIN,
        BLACK_HOLE_QUESTIONS,
        OVERCOMMIT,
        OLDEST_SHARE,
        GRANT_WINDOW_MIN,
        USAGE_INTERVAL,
        QUESTIONS_UNTIL_UNGRANTED,
        INCOMING_MAX,
        TRIMMED_QUEUE_MAX,
        TRIMMED_PER_SESSION,
        TRIMMED_RANGES_MAX,
        TRIMMED_TRIES,
        TRIMMED_COST,
        UNOPENED_MAX,
        UNOPENED_PER_SECOND,
        MEMORY_MAX,
        REPLIES_SHARE,
        REPLIES_MIN,
        SERVED_BYTES,
        SERVED_MAX,
        BUNDLES_MAX,
        BACKLOG_SHARE,
        BACKLOG_MAX,
        REORDERED_BYTES_PER_SESSION,
        REORDERED_BYTES_MAX,
        REORDERED_LIFE,
        CONTROL_QUEUED,
        SESSIONS_MAX,
    ]
}

fn of_parameters_and_other_crates() -> BTreeMap<String, &'static dyn Measure> {
    constants![
        RECORD_SIZE,
        FIRST_RECORD_SIZE,
        WINDOW,
        MESSAGE_LIMIT,
        UNSCHEDULED,
        DATAGRAM_LIMIT,
        smt_record::limits::CONTROLS_PER_RECORD,
        smt_record::limits::RECORDS_PER_KEY_MAX,
        smt_record::limits::FAILED_OPENS_DEFAULT,
        smt_record::limits::CONTROL_WINDOW,
        smt_wire::LIST_MAX,
        smt_wire::COOKIE_MAX,
        smt_wire::KEY_NAME_MAX,
        smt_wire::STRIPES_LOG2_MAX,
        smt_wire::BUNDLE_RECORDS_MAX,
        smt_wire::FAILURE_TEXT_MAX,
        smt_wire::METADATA_MAX,
        smt_wire::METADATA_ENTRIES_MAX,
        smt_wire::Shard::COUNT_MAX,
    ]
}

struct Row {
    constant: String,
    values: Vec<u128>,
    unit: String,
    section: String,
}

/// Rows of the tables of constants in Appendix C.
fn rows() -> Vec<Row> {
    let appendix = DRAFT.split("{#sC}").nth(1).expect("Appendix C has its anchor");
    let mut is_table = false;
    let mut rows = Vec::new();
    for line in appendix.lines() {
        is_table = line.starts_with('|') && (is_table || line.starts_with("| constant |"));
        if !is_table || line.starts_with("| constant |") || line.starts_with("|:") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [constant, values, unit, section, _why] = cells[..] else {
            panic!("{line} has not five cells");
        };
        rows.push(Row {
            constant: constant.to_owned(),
            values: values.split(' ').map(number).collect(),
            unit: unit.to_owned(),
            section: section.to_owned(),
        });
    }
    rows
}

/// `1,024` or `2^23`.
fn number(text: &str) -> u128 {
    let parse = |digits: &str| -> u128 {
        let digits = digits.replace([',', '_'], "");
        digits.parse().unwrap_or_else(|_| panic!("{text} is no number"))
    };
    match text.split_once('^') {
        Some((base, exponent)) => parse(base).pow(u32::try_from(parse(exponent)).unwrap()),
        None => parse(text),
    }
}

/// Values of `const NAME: integer = literal;` in all files below a folder, by name.
fn private_constants(folder: &Path, found: &mut BTreeMap<String, Vec<u128>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            private_constants(&path, found);
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let Some((_, definition)) = line.split_once("const ") else {
                continue;
            };
            let Some((name, rest)) = definition.split_once(": ") else {
                continue;
            };
            let value = rest.split_once(" = ").map_or("", |(_, value)| value);
            let digits = value.trim_end_matches(';');
            if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '_') {
                found.entry(name.to_owned()).or_default().push(number(digits));
            }
        }
    }
}

#[test]
fn every_row_of_appendix_c_has_the_value_of_its_constant() {
    let constants = constants();
    let mut private = BTreeMap::new();
    private_constants(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut private);
    let rows = rows();
    assert!(rows.len() > 90, "only {} rows were found", rows.len());

    for Row { constant, values, unit, .. } in &rows {
        if let Some(value) = constants.get(constant) {
            assert_eq!(values, &value.in_unit(unit), "{constant} in {unit}");
        } else {
            let found = private.get(constant);
            assert_eq!(found, Some(values), "{constant} in {unit}, a constant outside of limits");
        }
    }
}

#[test]
fn every_constant_that_is_compared_has_a_row_in_appendix_c() {
    let rows = rows();
    for name in constants().keys() {
        let count = rows.iter().filter(|row| &row.constant == name).count();
        assert_eq!(count, 1, "rows of {name}");
    }
}

#[test]
fn every_row_of_appendix_c_names_a_section_that_exists() {
    for Row { constant, section, .. } in rows() {
        let anchor = format!("{{#s{}}}", section.replace('.', "-"));
        assert!(DRAFT.contains(&anchor), "{constant} names section {section}");
    }
}

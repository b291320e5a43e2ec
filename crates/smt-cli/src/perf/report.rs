// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs a plan over transports, and tells the results: a table for people or JSON lines for
//! programs.
//!
//! Repetitions are interleaved: each case is measured by each transport in turn before it is
//! measured again, so that whatever changes on the machine meanwhile meets all of them alike.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use serde_json::json;

use super::load::Transport;
use super::measurement::{Measurement, Values};
use super::plan::{Case, Plan};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::size::Size;
use crate::standard_error;
use crate::standard_output::standard_output;

/// Measures everything. `setting` says in words what is not in the plan; the first transport is
/// compared with the others.
pub(super) fn run(
    plan: &Plan,
    setting: &serde_json::Value,
    transports: &[&dyn Transport],
) -> Result<(), Failure> {
    let machine = Machine::here();
    if plan.json {
        let configuration = json!({
            "schema": SCHEMA, "kind": "configuration", "machine": machine, "setting": setting,
            "sizes": plan.sizes.iter().map(|size| size.0).collect::<Vec<_>>(),
            "concurrency": plan.concurrency, "duration_s": plan.duration.as_secs_f64(),
            "repeat": plan.repeat, "spin_us": plan.spin.as_secs_f64() * 1e6,
        });
        say(&configuration.to_string())?;
    } else {
        say(&format!("{machine}\n{}\n{HEADING}", words(setting)))?;
    }
    let cases = plan.cases();
    for (place, &case) in cases.iter().enumerate() {
        let progress = Progress { place: place + 1, places: cases.len() };
        let medians = measure(plan, case, transports, progress)?;
        for median in &medians {
            say(&if plan.json {
                line(median, medians.first())?
            } else {
                row(median, medians.first())
            })?;
        }
    }
    Ok(())
}

/// The number of a case, from 1 on, and how many there are.
#[derive(Clone, Copy)]
struct Progress {
    place: usize,
    places: usize,
}

/// The medians of one case, one for each transport.
fn measure(
    plan: &Plan,
    case: Case,
    transports: &[&dyn Transport],
    progress: Progress,
) -> Result<Vec<Measurement>, Failure> {
    let is_watched = std::io::stderr().is_terminal();
    let mut parts = vec![Vec::new(); transports.len()];
    for repetition in 1..=plan.repeat {
        for (transport, parts) in transports.iter().zip(&mut parts) {
            if is_watched {
                standard_error::tell_part(format_args!(
                    "\r[{}/{}] {} {} x{} ({repetition}/{})   ",
                    progress.place,
                    progress.places,
                    transport.name(),
                    case.size,
                    case.concurrency,
                    plan.repeat
                ));
            }
            parts.push(Measurement::take(*transport, case, plan.duration)?);
        }
    }
    if is_watched {
        standard_error::tell_part(format_args!("\r{:60}\r", ""));
    }
    Ok(parts.iter().filter_map(|parts| Measurement::median(parts)).collect())
}

fn line(measurement: &Measurement, first: Option<&Measurement>) -> Result<String, Failure> {
    let mut value = serde_json::to_value(measurement)?;
    if let (Some(ratio), Some(first)) = (ratio_to(measurement, first), first) {
        value[format!("{}_ratio", first.transport)] = serde_json::to_value(ratio)?;
        value["compared"] = json!(format!("{} to {}", name(first), name(measurement)));
    }
    value["schema"] = json!(SCHEMA);
    value["kind"] = json!("measurement");
    Ok(value.to_string())
}

/// The first transport's row has no ratio: the others are compared with it.
fn row(measurement: &Measurement, first: Option<&Measurement>) -> String {
    let Values {
        p50_us,
        p90_us,
        p99_us,
        p999_us,
        max_us,
        rpc_per_s,
        goodput_mb_per_s,
        client_cpu_us_per_rpc,
        server_cpu_us_per_rpc,
    } = measurement.values;
    let name = name(measurement);
    let ratio = match (ratio_to(measurement, first), first) {
        (Some(ratio), Some(first)) => format!(
            "  {:>6.2}  {:>6.2}  {} to {name}",
            ratio.rpc_per_s,
            ratio.p50,
            self::name(first)
        ),
        _ => String::new(),
    };
    format!(
        "{name:<13} {:>7} {:>5} {p50_us:>9.1} {p90_us:>9.1} {p99_us:>9.1} {p999_us:>9.1} {max_us:>9.1} {rpc_per_s:>9.0} \
         {goodput_mb_per_s:>8.1} {client_cpu_us_per_rpc:>7.1} {server_cpu_us_per_rpc:>7.1}{ratio}",
        Size(measurement.size).to_string(),
        measurement.concurrency,
    )
}

/// Transport and model, as `smt/tokio`.
fn name(measurement: &Measurement) -> String {
    format!("{}/{}", measurement.transport, measurement.api.name())
}

/// The first transport's numbers divided by another's.
#[derive(Clone, Copy, Debug, Serialize)]
struct Ratio {
    rpc_per_s: f64,
    p50: f64,
}

/// `None` for the first transport itself, and for another model: threads and tasks are not alike.
fn ratio_to(other: &Measurement, first: Option<&Measurement>) -> Option<Ratio> {
    let first = first.filter(|first| first.transport != other.transport)?;
    if (first.api, first.concurrency) != (other.api, other.concurrency) {
        return None;
    }
    Some(Ratio {
        rpc_per_s: first.values.rpc_per_s / other.values.rpc_per_s,
        p50: first.values.p50_us / other.values.p50_us,
    })
}

/// `{"a": 1, "b": true}` as `a 1, b true`.
fn words(setting: &serde_json::Value) -> String {
    let Some(fields) = setting.as_object() else {
        return String::new();
    };
    let word = |(name, value): (&String, &serde_json::Value)| match value.as_str() {
        Some(text) => format!("{} {text}", name.replace('_', " ")),
        None => format!("{} {value}", name.replace('_', " ")),
    };
    fields.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn say(line: &str) -> Result<(), Failure> {
    Ok(writeln!(standard_output(), "{line}")?)
}

/// Version of the JSON lines: changed when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

const HEADING: &str = "times in us; goodput in MB/s of requests, as much comes back; CPU in us per RPC; x: SMT's number divided by this row's
transport        size  conc       p50       p90       p99     p99.9       max     RPC/s  goodput  client  server  xRPC/s   x p50  compared";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::api::Api;

    fn measurement(transport: &'static str, api: Api, rpc_per_s: f64) -> Measurement {
        Measurement {
            transport,
            api,
            size: 64,
            concurrency: 100,
            repetitions: 1,
            calls: 1,
            values: Values {
                p50_us: 1.0,
                p90_us: 1.0,
                p99_us: 1.0,
                p999_us: 1.0,
                max_us: 1.0,
                rpc_per_s,
                goodput_mb_per_s: 1.0,
                client_cpu_us_per_rpc: 1.0,
                server_cpu_us_per_rpc: 1.0,
            },
        }
    }

    mod row {
        use super::*;

        #[test]
        fn only_equal_models_are_compared_and_both_are_named() {
            let first = measurement("smt", Api::Tokio, 30.0);
            let alike = measurement("tls", Api::Tokio, 20.0);
            let unlike = measurement("tls", Api::Blocking, 1.0);
            assert!(row(&alike, Some(&first)).ends_with("1.50    1.00  smt/tokio to tls/tokio"));
            assert!(!row(&unlike, Some(&first)).contains("30.00"));
            assert!(ratio_to(&first, Some(&first)).is_none());
        }
    }
}

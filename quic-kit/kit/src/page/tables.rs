// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables of outcomes: medians over the repetitions.

use std::collections::BTreeSet;

use smt_report::{Table, number};

use crate::child::Fields;
use crate::measure::Outcome;
use crate::results::{Group, field};

/// Table 2.
pub(super) fn throughput(groups: &[Group<'_>]) -> Table {
    let rows = groups.iter().map(|group| {
        let [server, client, emulator] = cpu_per_gigabyte(group);
        let cells = vec![
            number(group.median(|of| of.all)),
            number(group.median(|of| of.cpu_percent(&of.server_report))),
            number(group.median(|of| of.cpu_percent(&of.client_report))),
            server,
            client,
            emulator,
            number(group.median(|of| of.handshake_us / 1_000.0)),
        ];
        (group.first().server.clone(), cells)
    });
    table(
        "stack",
        &[
            "Mbit/s",
            "server, % of a core",
            "client, % of a core",
            "server, s/GB",
            "client, s/GB",
            "emulator, s/GB",
            "handshake, ms",
        ],
        rows.collect(),
    )
}

/// Figure 2: a table for each side, a column for each class.
pub(super) fn breakdown(groups: &[Group<'_>]) -> Vec<Table> {
    let side = |name: &str, of: fn(&Outcome) -> Option<&Fields>| {
        let samples: Vec<(String, Fields)> = groups
            .iter()
            .map(|group| (group.first().server.clone(), group.samples(of)))
            .filter(|(_, samples)| !samples.is_empty())
            .collect();
        let classes: BTreeSet<&String> =
            samples.iter().flat_map(|(_, samples)| samples.keys()).collect();
        let mut columns: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
        let rows = samples.iter().map(|(stack, samples)| {
            let mut cells: Vec<String> = columns
                .iter()
                .map(|class| format!("{:.1} %", share(samples, &[class]) * 100.0))
                .collect();
            let crypto = share(samples, &CRYPTO);
            let of_crypto = share(samples, &["aead"]) / crypto.max(f64::MIN_POSITIVE);
            cells.push(format!("{:.0} %", of_crypto * 100.0));
            cells.push(samples.values().sum::<u64>().to_string());
            (stack.clone(), cells)
        });
        let rows = rows.collect();
        columns.extend(["AEAD of crypto", "samples"]);
        table(name, &columns, rows)
    };
    vec![
        side("server", |of| of.server_samples.as_ref()),
        side("client", |of| of.client_samples.as_ref()),
    ]
}

/// Figures 3, 4, 7 and 8.
pub(super) fn disturbed(groups: &[Group<'_>]) -> Table {
    let rows = groups.iter().map(|group| {
        let setting = group.setting();
        let name = format!(
            "{}, {} % held, {} % lost",
            group.first().server,
            setting.reordered,
            setting.loss
        );
        let acknowledging = |of: fn(&Outcome) -> Option<&Fields>| {
            let samples = group.samples(of);
            match samples.is_empty() {
                true => "-".to_owned(),
                false => format!("{:.1} %", share(&samples, &["ack-reordering"]) * 100.0),
            }
        };
        let told = |name: &str| {
            let is_told = group.first().server_report.contains_key(name);
            is_told.then(|| group.median(|of| field(&of.server_report, name)))
        };
        let kernel = group.median(|of| {
            field(&of.emulator_report, "kernel") + field(&of.emulator_report, "overflowed")
        });
        let cells = vec![
            number(group.median(|of| of.all)),
            format!("{:.2} %", group.median(Outcome::lost_percent)),
            told("spurious").map_or_else(|| "-".to_owned(), number),
            told("window").map_or_else(|| "-".to_owned(), |bytes| number(bytes / 1_000.0)),
            acknowledging(|of| of.server_samples.as_ref()),
            acknowledging(|of| of.client_samples.as_ref()),
            number(kernel),
        ];
        (name, cells)
    });
    table(
        "stack",
        &[
            "Mbit/s",
            "taken for lost",
            "of these wrongly",
            "window at the end, kB",
            "ACK and reordering, server",
            "the same, client",
            "dropped without order",
        ],
        rows.collect(),
    )
}

/// Figures 5 and 6.
pub(super) fn connections(groups: &[Group<'_>]) -> Table {
    let rows = groups.iter().map(|group| {
        let [mean, least, most] = group.each();
        let name = format!("{}, {}", group.first().server, group.setting().connections);
        let [server, client, emulator] = cpu_per_gigabyte(group);
        let cells = vec![
            number(mean),
            number(least),
            number(most),
            number(group.median(|of| of.all)),
            server,
            client,
            emulator,
        ];
        (name, cells)
    });
    table(
        "stack, connections",
        &[
            "each, Mbit/s",
            "least",
            "95th percentile",
            "all, Mbit/s",
            "server, s/GB",
            "client, s/GB",
            "emulator, s/GB",
        ],
        rows.collect(),
    )
}

/// Segmentation, pacing and ciphers.
pub(super) fn settings(groups: &[Group<'_>]) -> Table {
    let rows = groups.iter().map(|group| {
        let setting = group.setting();
        let mut name = format!("{}, {}", group.first().server, setting.cipher);
        if !setting.segmentation {
            // quinn's socket joins what it receives in any case.
            let joins = group.first().server == "quinn";
            name.push_str(if joins { ", without GSO" } else { ", without GSO and GRO" });
        }
        if let Some(pacing) = setting.pacing {
            name.push_str(if pacing { ", paced" } else { ", not paced" });
        }
        let [server, client, _] = cpu_per_gigabyte(group);
        let of_io = |of: fn(&Outcome) -> Option<&Fields>, classes: &[&str]| {
            format!("{:.0} %", share(&group.samples(of), classes) * 100.0)
        };
        let cells = vec![
            number(group.median(|of| of.all)),
            server,
            client,
            of_io(|of| of.server_samples.as_ref(), &["packet-io"]),
            of_io(|of| of.client_samples.as_ref(), &["packet-io"]),
            of_io(|of| of.server_samples.as_ref(), &CRYPTO),
            of_io(|of| of.client_samples.as_ref(), &CRYPTO),
        ];
        (name, cells)
    });
    table(
        "stack and setting",
        &[
            "Mbit/s",
            "server, s/GB",
            "client, s/GB",
            "packet I/O, server",
            "packet I/O, client",
            "crypto, server",
            "crypto, client",
        ],
        rows.collect(),
    )
}

/// One side of a measurement of quinn on the engine or without it.
struct Side<'a> {
    name: String,
    group: &'a Group<'a>,
    report: fn(&Outcome) -> &Fields,
    samples: Fields,
    /// Seconds of CPU time for a gigabyte.
    cpu: f64,
}

/// The sides that a measurement is about: that of the two which is not stock quinn, or both.
fn sides<'a>(group: &'a Group<'a>) -> Vec<Side<'a>> {
    let (server, client) = (&group.first().server, &group.first().client);
    let side = |name: String, report: fn(&Outcome) -> &Fields, samples: Fields| Side {
        name,
        group,
        report,
        samples,
        cpu: group.median(|of| of.cpu_per_gigabyte(report(of))),
    };
    let mut sides = Vec::new();
    if client == "quinn" {
        let samples = group.samples(|of| of.server_samples.as_ref());
        sides.push(side(format!("server, {server}"), |of| &of.server_report, samples));
    }
    if server == "quinn" {
        let samples = group.samples(|of| of.client_samples.as_ref());
        sides.push(side(format!("client, {client}"), |of| &of.client_report, samples));
    }
    sides
}

/// quinn on the engine, with the engine's seams and as it is: totals, and what CPU time goes to.
pub(super) fn offload(groups: &[Group<'_>]) -> [Table; 2] {
    let mut sides: Vec<Side<'_>> = groups.iter().flat_map(|of| sides(of)).collect();
    sides.sort_by(|one, other| one.name.cmp(&other.name));
    let totals = sides.iter().map(|side| {
        let group = side.group;
        let count = |name| number(group.median(|of| field((side.report)(of), name)));
        let of_device = share(&side.samples, &["device"]);
        let cells = vec![
            number(group.median(|of| of.all)),
            number(side.cpu),
            number(side.cpu * of_device),
            number(side.cpu * (1.0 - of_device)),
            count("eligible"),
            count("opened"),
            count("sealed"),
        ];
        (side.name.clone(), cells)
    });
    let classes: BTreeSet<&String> = sides.iter().flat_map(|side| side.samples.keys()).collect();
    let split = sides.iter().map(|side| {
        let cells = classes.iter().map(|class| {
            let of_class = share(&side.samples, &[class.as_str()]);
            number(side.cpu * of_class)
        });
        (side.name.clone(), cells.collect())
    });
    let columns: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
    [
        table(
            "side",
            &[
                "Mbit/s",
                "all, s/GB",
                "device's work, s/GB",
                "host's, s/GB",
                "eligible",
                "opened by the engine",
                "sealed by it",
            ],
            totals.collect(),
        ),
        table("s/GB", &columns, split.collect()),
    ]
}

fn cpu_per_gigabyte(group: &Group<'_>) -> [String; 3] {
    let reports: [fn(&Outcome) -> &Fields; 3] =
        [|of| &of.server_report, |of| &of.client_report, |of| &of.emulator_report];
    reports.map(|report| number(group.median(|of| of.cpu_per_gigabyte(report(of)))))
}

/// The share of samples that are of these classes.
fn share(samples: &Fields, classes: &[&str]) -> f64 {
    let all = samples.values().sum::<u64>().max(1) as f64;
    let of_classes: f64 = classes.iter().map(|class| field(samples, class)).sum();
    of_classes / all
}

fn table(corner: &str, columns: &[&str], rows: Vec<(String, Vec<String>)>) -> Table {
    Table {
        corner: corner.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        rows,
    }
}

/// The classes of crypto.
const CRYPTO: [&str; 2] = ["aead", "header-protection"];

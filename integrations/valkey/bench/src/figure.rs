// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tables and plots: all figures, and the paper's Figure 9 beside ours.

use std::collections::BTreeSet;

use smt_report::{Bar, Bars, Figure, Page, Table, number};

use crate::measured::Measured;
use crate::way::Way;

/// All measurements.
pub(crate) fn table(all: &[Measured]) -> Table {
    let row = |measured: &Measured| {
        let name = format!("{:?}, {} B, {}", measured.workload, measured.size, measured.way.name());
        let quantile = |q| number(measured.latency.value_at_quantile(q) as f64);
        let cpu = number(measured.cpu.as_secs_f64() * 1e6);
        (name, vec![number(measured.rate), quantile(0.5), quantile(0.99), cpu])
    };
    Table {
        corner: "workload".to_owned(),
        columns: ["op/s", "p50 us", "p99 us", "server us/op"].map(str::to_owned).to_vec(),
        rows: all.iter().map(row).collect(),
    }
}

/// Our gains over user-space TLS, and the range that the paper tells (§5.3): its Figure 9 has no
/// figures in its text beside that.
pub(crate) fn paper_table(all: &[Measured]) -> Table {
    let cases: BTreeSet<_> = all.iter().map(|one| (one.size, one.workload)).collect();
    let rows = cases.into_iter().map(|(size, workload)| {
        let of = |way| {
            let mut found =
                all.iter().filter(|one| (one.size, one.workload, one.way) == (size, workload, way));
            found.next().map(|one| one.rate)
        };
        let rates = [Way::Tcp, Way::Tls, Way::Smt].map(of);
        let gain = match (rates[1], rates[2]) {
            (Some(tls), Some(smt)) => format!("{:+.0} %", (smt / tls - 1.0) * 100.0),
            _ => String::new(),
        };
        let mut columns: Vec<String> =
            rates.iter().map(|rate| rate.map_or_else(String::new, number)).collect();
        columns.extend([gain, PAPER_GAIN.to_owned()]);
        (format!("{workload:?}, {size} B"), columns)
    });
    Table {
        corner: "workload".to_owned(),
        columns: ["TCP op/s", "TLS op/s", "SMT op/s", "SMT over TLS", "in the paper"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.collect(),
    }
}

/// The figure as a page: bars of each size of value.
pub(crate) fn page(all: &[Measured]) -> String {
    let mut page = Page::new("YCSB", "YCSB on Valkey: TCP, TLS and SMT at one server", 3);
    let sizes: BTreeSet<usize> = all.iter().map(|one| one.size).collect();
    let figures: Vec<Figure> = sizes.into_iter().map(|size| bars(all, size)).collect();
    let caption = "Operations a second, all clients together.";
    page.add_figures("Throughput", Some(caption), &figures);
    page.add_table("Figure 9 of the SMT paper, and ours", &paper_table(all));
    page.add_table("All figures", &table(all));
    page.html()
}

fn bars(all: &[Measured], size: usize) -> Figure {
    let of_size = all.iter().filter(|one| one.size == size);
    let bars = of_size.map(|one| Bar {
        name: format!("{:?} {}", one.workload, one.way.name()),
        color: one.way as usize,
        value: one.rate,
    });
    let bars = Bars {
        title: format!("operations a second with values of {size} B"),
        bars: bars.collect(),
    };
    Figure { caption: Some(format!("Values of {size} B")), svg: bars.svg() }
}

/// §5.3: "SMT without TLS offload outperforms user-space TLS by 5–24%".
const PAPER_GAIN: &str = "+5 to +24 %";

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plots: a line for each stack.

use std::collections::BTreeMap;

use smt_report::{Axis, Line, Plot};

use crate::measure::Setting;
use crate::results::Group;

/// The axes of a plot.
pub(super) struct Shown {
    file: &'static str,
    title: &'static str,
    x: (&'static str, fn(&Setting) -> f64),
    y: (&'static str, fn(&Group<'_>) -> f64),
}

const RATE: (&str, fn(&Group<'_>) -> f64) = ("Mbit/s", |group| group.median(|of| of.all));

/// Figure 3.
pub(super) const REORDERED: Shown = Shown {
    file: "figure-3",
    title: "Throughput of one connection with packets out of order",
    x: ("% of packets held back", |setting| setting.reordered),
    y: RATE,
};
/// Figure 4.
pub(super) const LOST: Shown = Shown {
    file: "figure-4",
    title: "Throughput of one connection with loss",
    x: ("% of packets lost", |setting| setting.loss),
    y: RATE,
};
/// Figure 5.
pub(super) const EACH: Shown = Shown {
    file: "figure-5",
    title: "Throughput of each connection",
    x: ("connections", |setting| setting.connections as f64),
    y: ("Mbit/s", |group| group.each()[0]),
};
/// Figure 6.
pub(super) const ALL: Shown = Shown {
    file: "figure-6",
    title: "Throughput of all connections",
    x: ("connections", |setting| setting.connections as f64),
    y: RATE,
};
/// Figure 7.
pub(super) const REORDERED_MANY: Shown = Shown {
    file: "figure-7",
    title: "Throughput of many connections with packets out of order",
    ..REORDERED
};
/// Figure 8.
pub(super) const LOST_MANY: Shown =
    Shown { file: "figure-8", title: "Throughput of many connections with loss", ..LOST };

/// The plot, and the name of its file.
pub(super) fn lines(groups: &[Group<'_>], shown: &Shown) -> (String, Plot) {
    let mut by_stack: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for group in groups {
        let point = ((shown.x.1)(group.setting()), (shown.y.1)(group));
        by_stack.entry(&group.first().server).or_default().push(point);
    }
    let lines = by_stack.into_iter().enumerate().map(|(color, (name, mut points))| {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line { name: name.to_owned(), color, points }
    });
    let lines: Vec<Line> = lines.collect();
    let most = |of: fn(&(f64, f64)) -> f64| {
        let values = lines.iter().flat_map(|line| line.points.iter().map(of));
        values.fold(1.0, f64::max)
    };
    let plot = Plot {
        title: shown.title.to_owned(),
        x: Axis::linear(shown.x.0, most(|point| point.0)),
        y: Axis::linear(shown.y.0, most(|point| point.1)),
        lines,
    };
    (shown.file.to_owned(), plot)
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A self-contained page: a plot for each view.

use smt_report::{Axis, Bar, Bars, Figure, Line, Page, Plot};

use super::table::{columns, find};
use super::{ROUND_TRIPS, VIEWS, View};
use crate::results::Results;

/// All of it.
pub(crate) fn html(results: &Results) -> String {
    let mut page = Page::new("SMT and its peers", "SMT and its peers", results.order.len());
    page.add_text(&super::heading(results));
    for place in &results.places {
        for view in VIEWS {
            add_section(&mut page, results, &place.name, view);
        }
    }
    page.add_text(&crate::checks::markdown(results));
    page.html()
}

/// The plot of round trips by size at the first place that has it, as a file of its own.
pub(crate) fn round_trips(results: &Results) -> Option<String> {
    let place = place_of_round_trips(results)?;
    let figures = line_plots(results, place, &ROUND_TRIPS, ROUND_TRIPS.x?);
    let colors = results.order.len();
    figures.first().map(|figure| smt_report::svg_file(&figure.svg, colors))
}

/// The first place where round trips were measured.
pub(crate) fn place_of_round_trips(results: &Results) -> Option<&str> {
    let mut names = results.places.iter().map(|place| place.name.as_str());
    names.find(|name| !columns(results, name, &ROUND_TRIPS).is_empty())
}

fn add_section(page: &mut Page, results: &Results, place: &str, view: &View) {
    let columns = columns(results, place, view);
    if columns.is_empty() {
        return;
    }
    let figures = match view.x {
        Some(x) => line_plots(results, place, view, x),
        None => columns.iter().map(|label| bar_plot(results, place, view, label)).collect(),
    };
    page.add_figures(&format!("{} ({place})", view.title), None, &figures);
}

/// One plot for each size, with the sizes of a round trip on the axis of one.
fn line_plots(results: &Results, place: &str, view: &View, x: &str) -> Vec<Figure> {
    let is_by_size = x == "bytes";
    let mut sizes: Vec<u32> = Vec::new();
    let rows = || {
        results.rows.iter().filter(|row| row.place == place && row.case.scenario == view.scenario)
    };
    for row in rows() {
        if !is_by_size && !sizes.contains(&row.case.size) {
            sizes.push(row.case.size);
        }
    }
    if is_by_size {
        sizes.push(0);
    }
    let plot = |size: &u32| {
        let line = |(color, peer): (usize, &String)| {
            let own =
                rows().filter(|row| row.peer == *peer && (is_by_size || row.case.size == *size));
            let points =
                own.filter_map(|row| Some((row.case.x, row.figures.get(view.figure)?.median)));
            Line { color, name: peer.clone(), points: points.collect() }
        };
        let all = results.order.iter().enumerate().map(line);
        let all: Vec<Line> = all.filter(|line| !line.points.is_empty()).collect();
        Figure {
            caption: (!is_by_size).then(|| crate::size::Size(*size).to_string()),
            svg: plot_of(view.title, x, all).svg(),
        }
    };
    sizes.iter().map(plot).collect()
}

/// Lines over two axes by factors: all of what was measured has its place.
fn plot_of(title: &str, x: &str, lines: Vec<Line>) -> Plot {
    let points = || lines.iter().flat_map(|line| &line.points);
    let xs: Vec<f64> = points().map(|point| point.0).collect();
    let positive = points().map(|point| point.1).filter(|value| *value > 0.0);
    let (least, most) = positive
        .fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    Plot {
        title: title.to_owned(),
        x: Axis::logarithmic_over(x, &xs),
        y: Axis::logarithmic("", least.min(most), most),
        lines,
    }
}

fn bar_plot(results: &Results, place: &str, view: &View, label: &str) -> Figure {
    let bar = |(color, peer): (usize, &String)| {
        let row = find(results, place, view, peer, label)?;
        Some(Bar { name: peer.clone(), color, value: row.figures.get(view.figure)?.median })
    };
    let bars = Bars {
        title: view.title.to_owned(),
        bars: results.order.iter().enumerate().filter_map(bar).collect(),
    };
    Figure { caption: Some(label.to_owned()), svg: bars.svg() }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A self-contained page: a plot for each view.

use super::plot::{Line, bars, lines};
use super::table::{columns, find};
use super::{VIEWS, View};
use crate::results::Results;

/// All of it.
pub(crate) fn html(results: &Results) -> String {
    let mut body = format!("<pre>{}</pre>\n", escaped(&super::heading(results)));
    for place in &results.places {
        for view in VIEWS {
            body.push_str(&section(results, &place.name, view));
        }
    }
    let checks = crate::checks::markdown(results);
    body.push_str(&format!("<pre>{}</pre>\n", escaped(&checks)));
    let colors: String = (0..results.order.len())
        .map(|number| {
            format!(
                "path.c{number} {{ stroke: {0} }} rect.c{number} {{ fill: {0} }}\n",
                color(number, results.order.len())
            )
        })
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>SMT and its peers</title>\n<style>\n{STYLE}{colors}</style>\n</head>\n<body>\n\
         <h1>SMT and its peers</h1>\n{body}</body>\n</html>\n"
    )
}

/// Escapes `text` for HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn section(results: &Results, place: &str, view: &View) -> String {
    let columns = columns(results, place, view);
    if columns.is_empty() {
        return String::new();
    }
    let heading = format!(
        "<h2>{} ({})</h2>\n<div class=\"row\">\n",
        escaped(view.title),
        escaped(place)
    );
    let plots = match view.x {
        Some(x) => line_plots(results, place, view, x),
        None => columns
            .iter()
            .map(|label| bar_plot(results, place, view, label))
            .collect(),
    };
    heading + &plots + "</div>\n"
}

/// One plot for each size, with the sizes of a round trip on the axis of one.
fn line_plots(results: &Results, place: &str, view: &View, x: &str) -> String {
    let is_by_size = x == "bytes";
    let mut sizes: Vec<u32> = Vec::new();
    let rows = || {
        results
            .rows
            .iter()
            .filter(|row| row.place == place && row.case.scenario == view.scenario)
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
        let line = |(color, peer): (usize, &&'static str)| {
            let own =
                rows().filter(|row| row.peer == *peer && (is_by_size || row.case.size == *size));
            let points =
                own.filter_map(|row| Some((row.case.x, row.figures.get(view.figure)?.median)));
            Line {
                color,
                name: (*peer).to_owned(),
                points: points.collect(),
            }
        };
        let all = results.order.iter().enumerate().map(line);
        let all: Vec<Line> = all.filter(|line| !line.points.is_empty()).collect();
        let caption = if is_by_size {
            String::new()
        } else {
            format!("<figcaption>{}</figcaption>", crate::size::Size(*size))
        };
        format!(
            "<figure>{caption}\n{}</figure>\n",
            lines(view.title, x, &all)
        )
    };
    sizes.iter().map(plot).collect()
}

fn bar_plot(results: &Results, place: &str, view: &View, label: &str) -> String {
    let bar = |(color, peer): (usize, &&'static str)| {
        let row = find(results, place, view, (peer, label))?;
        Some((
            color,
            (*peer).to_owned(),
            row.figures.get(view.figure)?.median,
        ))
    };
    let all: Vec<_> = results.order.iter().enumerate().filter_map(bar).collect();
    format!(
        "<figure><figcaption>{}</figcaption>\n{}</figure>\n",
        escaped(label),
        bars(view.title, &all)
    )
}

/// Hues around the circle, in two lightnesses so that neighbours differ for those who do not see
/// hues.
fn color(number: usize, count: usize) -> String {
    let lightness = if number.is_multiple_of(2) { 45 } else { 62 };
    format!("hsl({} 65% {lightness}%)", number * 360 / count.max(1))
}

const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --text: #222; --faint: #ddd; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181c; --text: #ddd; --faint: #383c44; } }
body { margin: 1.5rem; background: var(--ground); color: var(--text); font: 15px/1.4 system-ui, sans-serif; }
h1, h2 { font-weight: 600; } h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
pre { white-space: pre-wrap; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1rem; max-width: 120rem; }
figure { margin: 0; max-width: 50rem; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; } svg text { fill: var(--text); font-size: 11px; }
svg path { fill: none; stroke-width: 1.6; } .grid { stroke: var(--faint); stroke-width: 1; }
";

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A figure of a scenario as a table: a row for each peer, a column for each case.

use smt_report::{Table, number};

use super::View;
use crate::results::{Results, Row};

/// As Markdown; `None` if nothing was measured.
pub(super) fn markdown(results: &Results, place: &str, view: &View) -> Option<String> {
    let columns = columns(results, place, view);
    if columns.is_empty() {
        return None;
    }
    let mut notes = Vec::new();
    let row = |peer: &String| {
        let cell = |label: &&str| match find(results, place, view, peer, label) {
            Some(row) => cell(row, view, &mut notes),
            None => "–".to_owned(),
        };
        (peer.clone(), columns.iter().map(cell).collect())
    };
    let table = Table {
        corner: "peer".to_owned(),
        rows: results.order.iter().map(row).collect(),
        columns: columns.iter().map(|label| (*label).to_owned()).collect(),
    };
    let mut text = format!("## {} ({place})\n{}", view.title, table.markdown());
    for (number, note) in notes.iter().enumerate() {
        text.push_str(&format!("\n{}: {note}", number + 1));
    }
    Some(text + "\n")
}

/// The labels of the cases, in the order of measurement.
pub(super) fn columns<'a>(results: &'a Results, place: &str, view: &View) -> Vec<&'a str> {
    let mut columns: Vec<&str> = Vec::new();
    let rows = results.rows.iter();
    for row in rows.filter(|row| row.place == place && row.case.scenario == view.scenario) {
        if !columns.contains(&row.case.label.as_str()) {
            columns.push(&row.case.label);
        }
    }
    columns
}

/// The row of a peer and a case.
pub(super) fn find<'a>(
    results: &'a Results,
    place: &str,
    view: &View,
    peer: &str,
    label: &str,
) -> Option<&'a Row> {
    results.rows.iter().find(|row| {
        row.place == place
            && row.case.scenario == view.scenario
            && row.peer == peer
            && row.case.label == label
    })
}

fn cell(row: &Row, view: &View, notes: &mut Vec<String>) -> String {
    let reason = row.failed.clone().map(|text| format!("failed: {text}"));
    let reason = reason.or_else(|| row.refused.clone());
    let figure = row.figures.get(view.figure);
    let mut text = figure.map_or_else(
        || "–".to_owned(),
        |figure| {
            let number = number(figure.median);
            match row.repetitions {
                0 | 1 => number,
                _ => format!("{number} ±{:.0} %", figure.spread() * 100.0),
            }
        },
    );
    let unfinished = row.figures.get("unfinished").filter(|figure| figure.median > 0.0);
    let unfinished =
        unfinished.map(|figure| format!("{:.0} calls were not finished", figure.median));
    if let Some(reason) = reason.or(unfinished) {
        let known = notes.iter().position(|note| *note == reason);
        let place = known.unwrap_or_else(|| {
            notes.push(reason);
            notes.len() - 1
        });
        text.push_str(&format!(" ({})", place + 1));
    }
    text
}

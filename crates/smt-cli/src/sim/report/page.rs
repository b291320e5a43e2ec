// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page around the plots: a column for each outcome, then tables of figures and parameters.

use smt_report::{Figure, Page, Plot, Table};

use super::figures::{COLORS, PlotRow};
use crate::sim::outcome::{Outcome, Row};
use crate::sim::outcome_text;

/// All of it.
pub(super) fn html(outcomes: &[Outcome]) -> String {
    let titles: Vec<String> = outcomes.iter().map(Outcome::title).collect();
    let title = format!("SMT simulation: {}", titles.join("; "));
    let mut page = Page::new(&title, "SMT simulation", COLORS);
    for outcome in outcomes {
        // Warnings before figures that are not valid, or not of the load that was asked for.
        for why in [&outcome.percentiles_invalid, &outcome.load_missed].into_iter().flatten() {
            page.add_warning(&format!("{}: {why}", outcome.title()));
        }
    }
    for row in PlotRow::all(outcomes) {
        let figure = |(plot, title): (&Plot, &String)| Figure {
            caption: Some(title.clone()),
            svg: plot.svg(),
        };
        let figures: Vec<Figure> = row.plots.iter().zip(&titles).map(figure).collect();
        page.add_figures(row.title, Some(row.caption), &figures);
    }
    for (heading, rows) in [("Figures", figures(outcomes)), ("Parameters", parameters(outcomes))] {
        let table = Table { corner: String::new(), columns: titles.clone(), rows };
        page.add_table(heading, &table);
    }
    page.html()
}

/// Names and a value for each outcome.
type Lines = Vec<(String, Vec<String>)>;

fn figures(outcomes: &[Outcome]) -> Lines {
    let line = |name: &str, of: &dyn Fn(&Outcome) -> String| {
        (name.to_owned(), outcomes.iter().map(of).collect::<Vec<_>>())
    };
    let slowdown = |row: Row| format!("{:.2}, {:.2}, {:.2}", row.p50, row.p99, row.max);
    let mut lines = vec![
        line("messages counted", &|outcome| outcome.figures.messages.to_string()),
        line("unfinished, refused", &|outcome| {
            let figures = &outcome.figures;
            format!("{}, {}", figures.unfinished, figures.refused)
        }),
        line("slowdown of all: p50, p99, max", &|outcome| {
            outcome.all.map_or_else(|| "no message".to_owned(), slowdown)
        }),
        line("links used", &|outcome| format!("{:.1} %", 100.0 * outcome.figures.links_used)),
        line("goodput", &|outcome| {
            let rate = outcome.figures.goodput_bits_per_s / 1e9;
            format!("{rate:.2} Gb/s {}", outcome_text::goodput_of(outcome))
        }),
        line("longest queue", &|outcome| format!("{} B", outcome.figures.queue_bytes_max)),
        line("packets dropped, trimmed, marked", &|outcome| {
            let figures = &outcome.figures;
            format!("{}, {}, {}", figures.dropped, figures.trimmed, figures.marked)
        }),
    ];
    if outcomes.iter().any(|outcome| !outcome.alone.is_empty()) {
        lines.push(line("slowdown 1 is a message alone", &|outcome| {
            outcome_text::alone(outcome).unwrap_or_default()
        }));
    }
    if outcomes.iter().any(|outcome| outcome.shorter_half.is_some()) {
        lines.push(line("slowdown of the shorter half: p50, p99, max", &|outcome| {
            outcome.shorter_half.map(slowdown).unwrap_or_default()
        }));
    }
    if outcomes.iter().any(|outcome| outcome_text::asked(outcome).is_some()) {
        lines.push(line("missing bytes asked for", &|outcome| {
            outcome_text::asked(outcome).unwrap_or_default()
        }));
    }
    if outcomes.iter().any(|outcome| !outcome.rounds.is_empty()) {
        lines.push(line("rounds", &|outcome| outcome_text::rounds(outcome).unwrap_or_default()));
    }
    lines
}

/// Outcomes that were made by the same program have the same names in the same order.
fn parameters(outcomes: &[Outcome]) -> Lines {
    let names = outcomes.iter().flat_map(|outcome| &outcome.parameters);
    let mut known: Vec<&str> = Vec::new();
    for (name, _) in names {
        if !known.contains(&name.as_str()) {
            known.push(name);
        }
    }
    let value = |outcome: &Outcome, name: &str| {
        let found = outcome.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let of = |name: &&str| outcomes.iter().map(|outcome| value(outcome, name)).collect();
    let mut lines: Lines = known.iter().map(|name| ((*name).to_owned(), of(name))).collect();
    let line = |name: &str, of: fn(&Outcome) -> &String| {
        (name.to_owned(), outcomes.iter().map(|outcome| of(outcome).clone()).collect())
    };
    lines.push(line("command", |outcome| &outcome.command));
    lines.push(line("version", |outcome| &outcome.version));
    lines
}

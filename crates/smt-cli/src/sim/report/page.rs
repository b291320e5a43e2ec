// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page around the plots: a column for each outcome, then tables of figures and parameters.

use super::figures::Figure;
use crate::sim::outcome::{Outcome, Row};
use crate::sim::outcome_text;

/// All of it.
pub(super) fn html(outcomes: &[Outcome]) -> String {
    let mut body: String = outcomes.iter().map(warnings).collect();
    for figure in Figure::all(outcomes) {
        body.push_str(&section(&figure, outcomes));
    }
    body.push_str(&format!(
        "<h2>Figures</h2>\n{}",
        table(outcomes, &figures(outcomes))
    ));
    body.push_str(&format!(
        "<h2>Parameters</h2>\n{}",
        table(outcomes, &parameters(outcomes))
    ));
    let titles: Vec<String> = outcomes.iter().map(Outcome::title).collect();
    let title = escaped(&titles.join("; "));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>SMT simulation: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>SMT simulation</h1>\n{body}</body>\n</html>\n"
    )
}

/// So that text is text.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter => out.push(letter),
        }
    }
    out
}

/// Before everything that must not be believed, or not for what it was asked to be.
fn warnings(outcome: &Outcome) -> String {
    let why = [&outcome.percentiles_invalid, &outcome.load_missed];
    let told = why.into_iter().flatten().map(|why| {
        let text = format!("{}: {why}", outcome.title());
        format!("<p><strong>{}</strong></p>\n", escaped(&text))
    });
    told.collect()
}

fn section(figure: &Figure, outcomes: &[Outcome]) -> String {
    let mut section = format!(
        "<h2>{}</h2>\n<p>{}</p>\n<div class=\"row\">\n",
        figure.title, figure.caption
    );
    for (plot, outcome) in figure.plots.iter().zip(outcomes) {
        section.push_str(&format!(
            "<figure>\n<figcaption>{}</figcaption>\n{}</figure>\n",
            escaped(&outcome.title()),
            plot.svg()
        ));
    }
    section + "</div>\n"
}

/// Names and a value for each outcome.
type Lines = Vec<(String, Vec<String>)>;

fn table(outcomes: &[Outcome], lines: &Lines) -> String {
    let cells = |tag: &str, values: &mut dyn Iterator<Item = &String>| {
        let cell = |value: &String| format!("<{tag}>{}</{tag}>", escaped(value));
        values.map(cell).collect::<String>()
    };
    let titles: Vec<String> = outcomes.iter().map(Outcome::title).collect();
    let mut table = format!(
        "<div class=\"table\"><table>\n<tr><td></td>{}</tr>\n",
        cells("th", &mut titles.iter())
    );
    for (name, values) in lines {
        let (name, values) = (escaped(name), cells("td", &mut values.iter()));
        table.push_str(&format!("<tr><th>{name}</th>{values}</tr>\n"));
    }
    table + "</table></div>\n"
}

fn figures(outcomes: &[Outcome]) -> Lines {
    let line = |name: &str, of: &dyn Fn(&Outcome) -> String| {
        (name.to_owned(), outcomes.iter().map(of).collect::<Vec<_>>())
    };
    let slowdown = |row: Row| format!("{:.2}, {:.2}, {:.2}", row.p50, row.p99, row.max);
    let mut lines = vec![
        line("messages counted", &|outcome| {
            outcome.figures.messages.to_string()
        }),
        line("unfinished, refused", &|outcome| {
            let figures = &outcome.figures;
            format!("{}, {}", figures.unfinished, figures.refused)
        }),
        line("slowdown of all: p50, p99, max", &|outcome| {
            outcome
                .all
                .map_or_else(|| "no message".to_owned(), slowdown)
        }),
        line("links used", &|outcome| {
            format!("{:.1} %", 100.0 * outcome.figures.links_used)
        }),
        line("goodput", &|outcome| {
            let rate = outcome.figures.goodput_bits_per_s / 1e9;
            format!("{rate:.2} Gb/s {}", outcome_text::goodput_of(outcome))
        }),
        line("longest queue", &|outcome| {
            format!("{} B", outcome.figures.queue_bytes_max)
        }),
        line("packets dropped, trimmed, marked", &|outcome| {
            let figures = &outcome.figures;
            format!(
                "{}, {}, {}",
                figures.dropped, figures.trimmed, figures.marked
            )
        }),
    ];
    if outcomes.iter().any(|outcome| !outcome.alone.is_empty()) {
        lines.push(line("slowdown 1 is a message alone", &|outcome| {
            outcome_text::alone(outcome).unwrap_or_default()
        }));
    }
    if outcomes
        .iter()
        .any(|outcome| outcome.shorter_half.is_some())
    {
        lines.push(line(
            "slowdown of the shorter half: p50, p99, max",
            &|outcome| outcome.shorter_half.map(slowdown).unwrap_or_default(),
        ));
    }
    if outcomes
        .iter()
        .any(|outcome| outcome_text::asked(outcome).is_some())
    {
        lines.push(line("missing bytes asked for", &|outcome| {
            outcome_text::asked(outcome).unwrap_or_default()
        }));
    }
    if outcomes.iter().any(|outcome| !outcome.rounds.is_empty()) {
        lines.push(line("rounds", &|outcome| {
            outcome_text::rounds(outcome).unwrap_or_default()
        }));
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
    let of = |name: &&str| {
        outcomes
            .iter()
            .map(|outcome| value(outcome, name))
            .collect()
    };
    let mut lines: Lines = known
        .iter()
        .map(|name| ((*name).to_owned(), of(name)))
        .collect();
    let line = |name: &str, of: fn(&Outcome) -> &String| {
        (
            name.to_owned(),
            outcomes.iter().map(|outcome| of(outcome).clone()).collect(),
        )
    };
    lines.push(line("command", |outcome| &outcome.command));
    lines.push(line("version", |outcome| &outcome.version));
    lines
}

/// Dark text on light ground, or the other way round, as the reader's system is set. The two colours differ in
/// lightness too, for those who do not see red.
const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --text: #222; --faint: #ddd; --c0: #c0392b; --c1: #1f77b4; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16181c; --text: #ddd; --faint: #383c44; --c0: #ff8a75; --c1: #6fb7ff; }
}
body { margin: 1.5rem; background: var(--ground); color: var(--text); font: 15px/1.4 system-ui, sans-serif; }
h1, h2 { font-weight: 600; } h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p { max-width: 60rem; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(24rem, 1fr)); gap: 1rem; max-width: 110rem; }
figure { margin: 0; max-width: 44rem; } figcaption { font-weight: 600; margin-bottom: .3rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--text); font-size: 11px; }
svg path { fill: none; } .grid { stroke: var(--faint); } .frame { stroke: var(--text); }
.line { stroke-width: 1.6; stroke-linejoin: round; } .c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); }
.table { overflow-x: auto; } table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--faint); }
td { max-width: 28rem; overflow-wrap: anywhere; }
";

#[cfg(test)]
mod tests {
    #[test]
    fn text_stays_text() {
        assert_eq!(super::escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page of a run: the paper's tables and figures with ours beside, as Markdown and HTML.

mod figures;
mod paper;
mod tables;

use std::fs;
use std::path::Path;

use kit_process::{Doing, Failure};
use smt_report::{Figure, Page, Plot, Table, svg_file};

use crate::results::Results;

/// A part of the page.
struct Section {
    heading: &'static str,
    /// The paper's own figures.
    paper: &'static str,
    tables: Vec<Table>,
    plots: Vec<(String, Plot)>,
}

/// Writes the page anew, from the results in a folder.
pub(crate) fn again(folder: &Path) -> Result<(), Failure> {
    write(&Results::read(folder)?, folder)
}

/// Writes `paper.md`, `paper.html` and a file for each plot.
pub(crate) fn write(results: &Results, folder: &Path) -> Result<(), Failure> {
    let sections = sections(results);
    let what = "writing the page";
    let title = "What QUIC costs: NiQUIC's measurements with the stacks of today";
    let mut page = Page::new(title, title, COLORS);
    let mut text = format!("# {title}\n");
    for line in results.about.iter().chain(&results.missing) {
        page.add_text(line);
        text.push_str(&format!("- {line}\n"));
    }
    for section in &sections {
        page.add_text(section.paper);
        text.push_str(&format!("\n## {}\n**The paper:** {}\n", section.heading, section.paper));
        for table in &section.tables {
            page.add_table(section.heading, table);
            text.push_str(&format!("\n{}", table.markdown()));
        }
        let mut pictures = Vec::new();
        for (name, plot) in &section.plots {
            let svg = plot.svg();
            let file = format!("{name}.svg");
            fs::write(folder.join(&file), svg_file(&svg, COLORS)).doing(what)?;
            text.push_str(&format!("\n![{}]({file})\n", plot.title));
            pictures.push(Figure { caption: Some(plot.title.clone()), svg });
        }
        if !pictures.is_empty() {
            page.add_figures(section.heading, None, &pictures);
        }
    }
    fs::write(folder.join("paper.md"), text).doing(what)?;
    fs::write(folder.join("paper.html"), page.html()).doing(what)
}

fn sections(results: &Results) -> Vec<Section> {
    let section = |heading, paper, tables, plots| Section { heading, paper, tables, plots };
    let by = figures::lines;
    let all = vec![
        section(
            "Table 2: throughput and CPU, one connection, 1 ms delay",
            paper::TABLE_2,
            vec![tables::throughput(&results.groups("t2"))],
            Vec::new(),
        ),
        section(
            "Figure 2: what CPU time goes to",
            paper::FIGURE_2,
            tables::breakdown(&results.groups("t2")),
            Vec::new(),
        ),
        section(
            "Figure 3: packets out of order, one connection",
            paper::FIGURE_3,
            vec![tables::disturbed(&results.groups("f3"))],
            vec![by(&results.groups("f3"), &figures::REORDERED)],
        ),
        section(
            "Figure 4: loss, one connection, and the cost of reordering",
            paper::FIGURE_4,
            vec![tables::disturbed(&results.groups("f4"))],
            vec![by(&results.groups("f4"), &figures::LOST)],
        ),
        section(
            "Figures 5 and 6: many connections",
            paper::FIGURE_5,
            vec![tables::connections(&results.groups("f5"))],
            vec![
                by(&results.groups("f5"), &figures::EACH),
                by(&results.groups("f5"), &figures::ALL),
            ],
        ),
        section(
            "Figure 7: packets out of order, many connections",
            paper::FIGURE_7,
            vec![tables::disturbed(&results.groups("f7"))],
            vec![by(&results.groups("f7"), &figures::REORDERED_MANY)],
        ),
        section(
            "Figure 8: loss, many connections",
            paper::FIGURE_8,
            vec![tables::disturbed(&results.groups("f8"))],
            vec![by(&results.groups("f8"), &figures::LOST_MANY)],
        ),
        section(
            "Beyond the paper: segmentation, pacing and ChaCha20",
            paper::SETTINGS,
            vec![tables::settings(&results.groups("settings"))],
            Vec::new(),
        ),
        section(
            "Beyond the paper: quinn on the engine",
            paper::OFFLOAD,
            tables::offload(&results.groups("offload")).into(),
            Vec::new(),
        ),
    ];
    let is_there = |section: &Section| section.tables.iter().any(|table| !table.rows.is_empty());
    all.into_iter().filter(is_there).collect()
}

/// One for each stack.
const COLORS: usize = 6;

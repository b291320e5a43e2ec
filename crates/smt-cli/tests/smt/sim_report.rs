// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt sim report`: one page about several runs.

use std::fs;

use crate::program::{Files, smt};

/// Runs a scenario for a moment. Returns its results' path.
fn results(files: &Files, name: &str, words: &[&str]) -> String {
    let path = files.path(name);
    let first = ["sim", "run", "smoke", "--duration", "200us", "--results", &path];
    smt(&[&first[..], words].concat()).text();
    path
}

#[test]
fn a_page_has_a_column_for_each_result_and_needs_nothing_else() {
    let files = Files::empty();
    let smt_s = results(&files, "smt.json", &[]);
    let stream_s = results(&files, "stream.json", &["--transport", "stream"]);
    let page = files.path("page.html");
    smt(&["sim", "report", "--out", &page, &smt_s, &stream_s]).text();
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert_eq!(page.matches("<svg ").count(), 6);
    assert_eq!(page.matches("<figcaption>smoke, stream, load 0.8</figcaption>").count(), 3);
    for words in [
        "Slowdown by message size",
        "Queues over time",
        "Goodput over time",
        ">p50<",
        ">p99<",
        "<th>command</th><td>smt sim run smoke --duration 200us --results ",
        "<th>seed</th><td>1</td><td>1</td>",
        "<th>version</th>",
        "<th>slowdown 1 is a message alone</th><td>2 B ",
        "<th>switches</th><td>250 ns, unlimited buffer, no marks, no trimming, paths ByPacket</td><td>250 ns, \
         unlimited buffer, marks above 23070 B, no trimming, paths ByEntropy</td>",
        "prefers-color-scheme: dark",
        "default-src 'none'",
    ] {
        assert!(page.contains(words), "{words:?} is not in:\n{page}");
    }
    for outside in ["http:", "https:", "<script", "<link", "<img", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
}

#[test]
fn lines_stay_inside_and_all_plots_of_a_row_have_one_scale() {
    let files = Files::empty();
    let paths = [
        results(&files, "smt.json", &[]),
        results(&files, "stream.json", &["--transport", "stream"]),
        results(&files, "incast.json", &["--seed", "2"]),
    ];
    let outcome = smt(&["sim", "report", &paths[0], &paths[1], &paths[2]]);
    let plots: Vec<&str> = outcome.text().split("<svg ").skip(1).collect();
    assert_eq!(plots.len(), 9);
    for row in plots.chunks(3) {
        let ticks = |plot: &str| {
            let ends = plot.split("text-anchor=\"end\">").skip(1);
            let names = ends.map(|rest| rest.split('<').next().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(ticks(row[0]), ticks(row[1]));
        assert_eq!(ticks(row[0]), ticks(row[2]));
    }
    for plot in plots {
        let lines = plot.split("class=\"line").skip(1);
        for line in lines {
            let path = line.split("d=\"M").nth(1).unwrap().split('"').next().unwrap();
            for number in path.split([' ', 'L', 'H']) {
                let number: f64 = number.parse().unwrap();
                assert!((0.0..=480.0).contains(&number), "{path}");
            }
        }
    }
}

#[test]
fn the_results_of_several_runs_may_be_in_one_file() {
    let files = Files::empty();
    let text = fs::read_to_string(results(&files, "one.json", &[])).unwrap();
    let both = files.write("both.json", format!("{text}\n{text}"));
    let outcome = smt(&["sim", "report", &both]);
    assert_eq!(outcome.text().matches("<svg ").count(), 6);
}

#[test]
fn runs_that_differ_in_seed_or_duration_alone_have_headings_of_their_own() {
    let files = Files::empty();
    let runs = [results(&files, "one.json", &[]), results(&files, "two.json", &["--seed", "2"])];
    let page = smt(&["sim", "report", &runs[0], &runs[1]]);
    for heading in ["smoke (seed 1), smt, load 0.8", "smoke (seed 2), smt, load 0.8"] {
        assert!(page.text().contains(heading), "{heading}");
    }
}

#[test]
fn a_line_that_is_no_result_is_named() {
    let files = Files::empty();
    let text = fs::read_to_string(results(&files, "one.json", &[])).unwrap();
    let older = text.replace("\"schema\":1", "\"schema\":0");
    for (name, content, said) in [
        ("empty", String::new(), "empty is empty"),
        ("words", "hello".to_owned(), "words:1: this is no result of smt sim run --results: "),
        ("second", format!("{text}{{}}"), "second:2: this is no result"),
        (
            "older",
            older,
            "older:1: this is no result of smt sim run --results: it is \"scenario\" of schema 0",
        ),
        ("many", text.repeat(17), "17 results are more than the 16"),
    ] {
        let path = files.write(name, content);
        smt(&["sim", "report", &path]).fails_with(&[said]);
    }
    smt(&["sim", "report", &files.path("missing")]).fails_with(&["missing", "No such file"]);
}

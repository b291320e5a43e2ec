// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Help, completions and manual pages.

use std::fs;

use crate::program::{Files, smt};

const SUBCOMMANDS: [&str; 11] = [
    "call",
    "completions",
    "demo",
    "doctor",
    "dump",
    "keys",
    "man",
    "perf",
    "serve",
    "sim",
    "ticket",
];

#[test]
fn help_lists_all_subcommands() {
    let outcome = smt(&["--help"]);
    for name in SUBCOMMANDS {
        assert!(outcome.text().contains(&format!("\n  {name} ")), "{name}");
    }
    assert!(smt(&["--version"]).text().starts_with("smt "));
}

#[test]
fn help_has_the_exit_codes() {
    for words in [&["--help"][..], &["call", "--help"]] {
        let outcome = smt(words);
        for line in ["3    the request did not run", "4    the request may have run"] {
            assert!(outcome.text().contains(line), "{}", outcome.text());
        }
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(smt(&["completions", shell]).text().contains("message-limit"), "{shell}");
    }
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let files = Files::empty();
    assert!(smt(&["man"]).text().contains(".TH smt 1"));
    smt(&["man", "--out", &files.path("man")]).text();
    for name in SUBCOMMANDS {
        let page = fs::read_to_string(files.path(&format!("man/smt-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
}

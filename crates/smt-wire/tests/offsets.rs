// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `vectors/smt_wire.h` and `vectors/smt_offsets.json` are those of the code, and a C compiler
//! takes the header.

mod offset_files;

use offset_files::{HEADER, JSON, definitions, header, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

const HINT: &str = "is stale: cargo run -p smt-wire --example make_offsets";

#[test]
fn the_header_is_what_the_example_makes() {
    assert_eq!(std::fs::read_to_string(HEADER).unwrap(), header(), "{HEADER} {HINT}");
}

#[test]
fn the_json_is_what_the_example_makes() {
    assert_eq!(std::fs::read_to_string(JSON).unwrap(), json(), "{JSON} {HINT}");
}

#[test]
fn every_definition_has_a_name_of_its_own() {
    let definitions = definitions();
    let names: BTreeSet<&String> = definitions.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), definitions.len());
    for name in names {
        let is_macro = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        assert!(name.chars().all(is_macro), "{name}");
    }
}

/// Twice, so that the guard counts; each definition as a constant expression with its value.
fn program() -> String {
    let mut text = String::from("#include \"smt_wire.h\"\n#include \"smt_wire.h\"\n");
    for (place, (name, value)) in definitions().iter().enumerate() {
        text += &format!("extern char check{place}[{name} == {value}u ? 1 : -1];\n");
    }
    text
}

/// Whether the compiler takes the program, or nothing where that compiler is missing.
fn compiles(compiler: &str, language: &str, standard: &str) -> Option<bool> {
    let folder = std::path::Path::new(HEADER).parent().expect("it is a file in a folder");
    let mut child = Command::new(compiler)
        .args(["-fsyntax-only", "-Wall", "-Werror", "-pedantic", standard, "-x", language, "-I"])
        .arg(folder)
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(program().as_bytes()).expect("the compiler reads");
    drop(stdin);
    Some(child.wait().expect("it was started").success())
}

#[test]
fn a_c_compiler_takes_the_header() {
    assert_eq!(compiles("cc", "c", "-std=c99"), Some(true), "the workspace needs cc anyway");
}

#[test]
fn a_c_plus_plus_compiler_takes_the_header_where_there_is_one() {
    assert_ne!(compiles("c++", "c++", "-std=c++11"), Some(false));
}

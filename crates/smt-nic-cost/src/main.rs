// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints what a NIC saves a host, beside rows of the SMT paper, and writes plots.
//!
//!     cargo run --release -p smt-nic-cost -- DIR
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use smt_nic_cost::figures::{Transport, page, saved_plot};
use smt_nic_cost::machine::Machine;
use smt_nic_cost::model::HostModel;
use smt_nic_cost::paper::FITTED;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("smt-nic-cost DIR: the folder for the plots is missing");
        return ExitCode::from(2);
    };
    match run(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("smt-nic-cost: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(directory: &PathBuf) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(directory)?;
    let machine = Machine::measured();
    let model = HostModel::fitted(machine, &FITTED)?;
    let transport = Transport::measured(ROUNDS);
    println!("{}", page(&model, &transport));
    for (name, svg) in [
        ("nic-saved-1500.svg", saved_plot(&model, 1_500)),
        ("nic-saved-9000.svg", saved_plot(&model, 9_000)),
        ("nic-transport.svg", transport.plot(&machine)),
    ] {
        std::fs::write(directory.join(name), smt_report::svg_file(&svg, COLORS))?;
    }
    Ok(())
}

/// Rounds of 32 calls for each length and place of the transport.
const ROUNDS: u32 = 300;
const COLORS: usize = 3;

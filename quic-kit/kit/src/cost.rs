// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The cost model of the offload (NiQUIC §3.3): what a host saves for each packet, what crosses
//! PCIe, what memory a table takes, how late an AEAD block makes packets, and which connections are
//! worth an entry. Tables on standard output, and a plot for each question with a curve.

mod admission;
mod bus;
mod host;
mod latency;

use std::fs;
use std::path::PathBuf;

use clap::Args;
use kit_process::{Doing, Failure};
use smt_report::{Plot, svg_file};

/// Options of the model.
#[derive(Args, Clone, Debug)]
pub(crate) struct CostOptions {
    /// The folder for plots.
    #[arg(long, default_value = "target/cost")]
    into: PathBuf,
    /// Bytes of a packet.
    #[arg(long, default_value_t = 1_350)]
    packet: u32,
    /// Gigabits a second that the device is to carry in one direction.
    #[arg(long, default_value_t = 100.0)]
    gigabits: f64,
}

/// Writes all of it.
pub(crate) fn run(options: &CostOptions) -> Result<(), Failure> {
    fs::create_dir_all(&options.into).doing("making the folder of plots")?;
    println!("## The host's time for a packet of {} bytes\n", options.packet);
    println!("{}", host::table(options.packet)?.markdown());
    println!("## Bytes over PCIe for a packet\n");
    println!("{}", bus::packets(options.packet).markdown());
    println!("## Bytes over PCIe for writes to the table, and its memory\n");
    println!("{}", bus::table().markdown());
    let gigabits = options.gigabits;
    println!("## Time added by the AEAD, {gigabits} Gbit/s\n");
    let (table, plot) = latency::of_units(options.packet, gigabits);
    println!("{}", table.markdown());
    draw(options, "aead-latency", &plot)?;
    println!("## Packets of offloaded connections, by the rule of admission\n");
    let (table, plot) = admission::policies()?;
    println!("{}", table.markdown());
    draw(options, "admission", &plot)
}

fn draw(options: &CostOptions, name: &str, plot: &Plot) -> Result<(), Failure> {
    let path = options.into.join(format!("{name}.svg"));
    fs::write(path, svg_file(&plot.svg(), COLORS)).doing("writing a plot")
}

const COLORS: usize = 6;

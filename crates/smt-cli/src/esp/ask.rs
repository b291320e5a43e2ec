// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt esp status`, `add` and `remove`: requests to a tunnel that is up.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use smt_esp_io::Direction;
use smt_esp_io::control::{self, Request};

use crate::failure::Failure;
use crate::standard_output::standard_output;

/// The tunnel that is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct TunnelArguments {
    /// The tunnel's TUN device
    #[arg(long, value_name = "NAME", default_value = "esp0")]
    device: String,
    /// The tunnel's control socket, if its configuration says another than the default
    #[arg(long, value_name = "PATH", conflicts_with = "device")]
    control: Option<PathBuf>,
}

impl TunnelArguments {
    /// The control socket.
    pub(crate) fn control_path(&self) -> PathBuf {
        let of_device = || control::default_control_path(&self.device);
        self.control.clone().unwrap_or_else(of_device)
    }

    /// Asks for something to be done.
    fn ask(&self, request: &Request) -> Result<(), Failure> {
        control::ask(&self.control_path(), request)?;
        Ok(())
    }
}

/// Tell the counts of a tunnel that is up, as ip -s xfrm state and /proc/net/xfrm_stat name them
#[derive(Args, Debug)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    tunnel: TunnelArguments,
    /// In JSON
    #[arg(long)]
    json: bool,
}

/// Add the associations of a file to a tunnel that is up
///
/// The file has [[association]] tables as a configuration has them. An association for packets out
/// takes the place of another of its name from the next packet on. For keys to change without a
/// loss, both ends add the new associations for packets in first, then those for packets out, and
/// remove the old ones for packets in at last.
#[derive(Args, Debug)]
pub(crate) struct AddArguments {
    #[command(flatten)]
    tunnel: TunnelArguments,
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Remove an association of a tunnel that is up: its packets are dropped from then on
#[derive(Args, Debug)]
pub(crate) struct RemoveArguments {
    #[command(flatten)]
    tunnel: TunnelArguments,
    /// Packets out, or packets in
    #[arg(long)]
    direction: Way,
    /// The number of the association, as 4097 or 0x1001
    #[arg(long, value_name = "NUMBER", value_parser = spi)]
    spi: u32,
}

/// The direction of an association.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Way {
    In,
    Out,
}

/// Tells the counts.
pub(crate) fn status(arguments: &StatusArguments) -> Result<(), Failure> {
    let statistics = control::status(&arguments.tunnel.control_path())?;
    let mut output = standard_output();
    match arguments.json {
        true => writeln!(output, "{}", serde_json::to_string(&statistics)?)?,
        false => write!(output, "{statistics}")?,
    }
    Ok(())
}

/// Adds associations.
pub(crate) fn add(arguments: &AddArguments) -> Result<(), Failure> {
    for association in smt_esp_io::read_associations(&arguments.file)? {
        let association = Box::new(association);
        arguments.tunnel.ask(&Request::Add { association })?;
    }
    Ok(())
}

/// Removes an association.
pub(crate) fn remove(arguments: &RemoveArguments) -> Result<(), Failure> {
    let direction = match arguments.direction {
        Way::In => Direction::In,
        Way::Out => Direction::Out,
    };
    let spi = arguments.spi;
    arguments.tunnel.ask(&Request::Remove { direction, spi })
}

fn spi(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "a number such as 4097 or 0x1001".to_owned())
}

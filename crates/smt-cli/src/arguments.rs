// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line: the options of all subcommands, and the list of them.
//!
//! Each subcommand's own arguments stand in its file. Help, completions and manual pages all come
//! from these definitions.

use clap::{Parser, Subcommand};

use crate::log::LogArguments;
use crate::{call, demo, doctor, exit_code, keys, serve};

/// A secure message transport for datacenters: encrypted RPCs over UDP
///
/// Data goes to standard output, talk to standard error. Sizes are written 64, 64K, 64M; times
/// 20us, 5ms, 1s.
#[derive(Debug, Parser)]
#[command(name = "smt", version, propagate_version = true, after_help = exit_code::HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(all(target_os = "linux", feature = "esp"))]
    Adopt(crate::adopt::Arguments),
    Call(call::Arguments),
    #[cfg(feature = "man")]
    Completions(crate::completions::Arguments),
    Demo(demo::Arguments),
    Doctor(doctor::Arguments),
    #[cfg(feature = "dump")]
    Dump(crate::dump::Arguments),
    #[cfg(all(target_os = "linux", feature = "esp"))]
    Esp(crate::esp::Arguments),
    #[cfg(all(target_os = "linux", feature = "esp"))]
    Keyd(crate::keyd::Arguments),
    Keys(keys::Arguments),
    #[cfg(feature = "man")]
    Man(crate::man::Arguments),
    #[cfg(feature = "perf")]
    Perf(crate::perf::Arguments),
    Serve(serve::Arguments),
    #[cfg(feature = "sim")]
    Sim(crate::sim::Arguments),
    #[cfg(feature = "dns")]
    Ticket(crate::ticket::Arguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}

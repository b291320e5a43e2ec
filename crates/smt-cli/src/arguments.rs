// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line: the options of all subcommands, and the list of them.
//!
//! Each subcommand's own arguments stand in its file. Help, completions and manual pages all come
//! from these definitions.

use clap::{ArgAction, Parser, Subcommand};

use crate::{call, completions, demo, doctor, dump, keys, man, perf, serve, sim};

/// A secure message transport for datacenters: encrypted RPCs over UDP
///
/// Data goes to standard output, talk to standard error. Exit codes: 0 success, 1 failure, 2 wrong
/// usage. Sizes are written 64, 64K, 64M; times 20us, 5ms, 1s.
#[derive(Debug, Parser)]
#[command(name = "smt", version, propagate_version = true)]
pub(crate) struct Arguments {
    /// Tell more on standard error; -vv and -vvv even more
    #[arg(short, long, action = ArgAction::Count, global = true, display_order = LAST)]
    pub(crate) verbose: u8,
    /// Tell nothing on standard error but failures
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = LAST)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Call(call::Arguments),
    Completions(completions::Arguments),
    Demo(demo::Arguments),
    Doctor(doctor::Arguments),
    Dump(dump::Arguments),
    Keys(keys::Arguments),
    Man(man::Arguments),
    Perf(perf::Arguments),
    Serve(serve::Arguments),
    Sim(sim::Arguments),
}

/// In help texts these stand behind a subcommand's own options.
const LAST: usize = 900;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn the_definitions_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }
}

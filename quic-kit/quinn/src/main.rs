// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn as a client and a server of the kit, each on one thread of tokio.
#![forbid(unsafe_code)]

mod client;
mod counts;
mod server;
mod transport;

use std::process::ExitCode;

use kit_process::{Command, parse};

fn main() -> ExitCode {
    let ended = match parse() {
        Command::Server(options) => server::run(&options),
        Command::Client(options) => client::run(&options),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kit-quinn: {failure}");
            ExitCode::FAILURE
        }
    }
}

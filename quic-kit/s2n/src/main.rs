// SPDX-License-Identifier: Apache-2.0 OR MIT
//! s2n-quic as a client and a server of the kit, each on one thread of tokio.
#![forbid(unsafe_code)]

mod client;
mod events;
mod server;
mod settings;

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
            eprintln!("kit-s2n: {failure}");
            ExitCode::FAILURE
        }
    }
}

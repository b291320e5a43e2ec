// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program `smt`: all of it is the library `smt_cli`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    smt_cli::main()
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program `smt`: all of it is the library `smt_cli`.

#![deny(unsafe_code)]

fn main() -> std::process::ExitCode {
    smt_cli::main()
}

/// The loader calls it before Rust's runtime, which opens /dev/null in the place of a standard
/// output that is closed.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "safe Rust has nothing that runs before the runtime")]
// SAFETY: the section is an array of such functions (System V ABI). This one makes a system call
// and writes a static: it needs nothing of the runtime, and cannot panic.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = before_main;

#[cfg(target_os = "linux")]
extern "C" fn before_main() {
    smt_cli::before_main();
}

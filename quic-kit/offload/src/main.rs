// SPDX-License-Identifier: Apache-2.0 OR MIT
//! quinn on the engine of smt-nic as a client and a server of the kit.
//!
//! The environment variable `KIT_OFFLOAD` being `off` keeps all connections in software.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use kit_offload::{DeviceConfig, client, server};
use kit_process::{Command, parse};
use smt_nic::quic::AdmissionPolicy;

fn main() -> ExitCode {
    let is_off = std::env::var("KIT_OFFLOAD").is_ok_and(|value| value == "off");
    let device = DeviceConfig {
        connections_max: if is_off { 0 } else { CONNECTIONS_MAX },
        policy: AdmissionPolicy::ALL,
        is_compared: false,
    };
    let ended = match parse() {
        Command::Server(options) => server::run(&options, device),
        Command::Client(options) => client::run(&options, device),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kit-offload: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// More than the kit begins.
const CONNECTIONS_MAX: u32 = 128;

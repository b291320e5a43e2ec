// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Serves the files of a folder over HTTP/3, with quinn on the QUIC engine of smt-nic.
//!
//! It prints `listening ADDRESS`. At the end of its input it prints what the engine has counted.
#![forbid(unsafe_code)]

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use kit_http3::server;
use kit_offload::{Device, DeviceConfig, SharedDevice};
use kit_process::{Doing, Failure, lines};
use smt_nic::quic::AdmissionPolicy;

#[derive(Parser)]
#[command(about = "Files over HTTP/3, with quinn on a QUIC engine")]
struct Options {
    /// Where to listen; port 0 is any.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The server's certificates, PEM.
    #[arg(long)]
    certificate: PathBuf,
    /// The server's private key, PEM.
    #[arg(long)]
    key: PathBuf,
    /// The folder.
    #[arg(long)]
    folder: PathBuf,
    /// Connections that the engine has room for; 0 keeps all in software.
    #[arg(long, default_value_t = 64)]
    entries: u32,
    /// Open each packet by the library too, and compare.
    #[arg(long)]
    compare: bool,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kit-http3: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Failure> {
    let device = SharedDevice::new(Device::new(DeviceConfig {
        connections_max: options.entries,
        policy: AdmissionPolicy::ALL,
        is_compared: options.compare,
    })?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing("beginning the runtime")?;
    runtime.block_on(async {
        let files = (&*options.certificate, &*options.key);
        let endpoint = server::endpoint(options.listen, files, &device)?;
        lines::listening(endpoint.local_addr().doing("asking for the address")?);
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            println!("{:?}", device.counts());
            std::process::exit(0);
        });
        server::serve(endpoint, options.folder.into()).await;
        Ok(())
    })
}

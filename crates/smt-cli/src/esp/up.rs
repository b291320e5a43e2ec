// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt esp up`: a tunnel, until it is interrupted.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use smt_esp_io::control::ControlSocket;
use smt_esp_io::{Config, EventLog, Tunnel, TunnelHandle, TunnelStatistics};

use crate::failure::{Doing, Failure};
use crate::interrupt::Interrupt;
use crate::standard_error;
use crate::standard_output::standard_output;

/// Open a tunnel, and work until interrupted; then tell the counts
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The configuration: device, underlay, offloads, associations and policies in TOML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Tell the counts at the end in JSON
    #[arg(long)]
    json: bool,
    /// Read the configuration, tell whether it is right, and end
    #[arg(long)]
    check: bool,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let config = Config::read(&arguments.config)?;
    if arguments.check {
        writeln!(standard_output(), "{} is right", arguments.config.display())?;
        return Ok(());
    }
    let events = EventLog::new(|event| standard_error::tell(event));
    let tunnel = Tunnel::open(&config, &events)?;
    let path = config.control_path();
    let control = ControlSocket::bind(&path)
        .doing(format_args!("make the control socket {}", path.display()))?;
    let interrupt = Interrupt::on_signals()?;
    let handle = tunnel.handle();
    standard_error::tell(format_args!(
        "the tunnel {} is up: packets of {} bytes, control socket {}",
        config.device_name(),
        tunnel.mtu(),
        path.display()
    ));
    let last = work(tunnel, &handle, &control, interrupt)?;
    let mut output = standard_output();
    match arguments.json {
        true => writeln!(output, "{}", serde_json::to_string(&last)?)?,
        false => write!(output, "{last}")?,
    }
    Ok(())
}

/// Works until the interrupt, and gives the counts at the end.
fn work(
    tunnel: Tunnel,
    handle: &TunnelHandle,
    control: &ControlSocket,
    interrupt: Interrupt,
) -> Result<TunnelStatistics, Failure> {
    std::thread::scope(|scope| {
        scope.spawn(|| control.serve(handle));
        let stopper = handle.clone();
        let waiting = std::thread::spawn(move || {
            interrupt.wait();
            let last = stopper.status();
            stopper.stop();
            last
        });
        let outcome = tunnel.run();
        control.stop();
        outcome.doing("work on packets")?;
        let last = waiting.join();
        last.map_err(|_| Failure::new("the waiting thread has panicked"))?.map_err(Failure::from)
    })
}

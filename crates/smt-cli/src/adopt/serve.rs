// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt adopt serve`: a server that echoes, for clients whose sessions are handed over to it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use smt::{Adopter, Fault};

use crate::failure::{Doing, Failure};
use crate::handover_socket::{Answer, Ask, HandoverStream, HexId, Told};
use crate::moment::wall_time;
use crate::own_process::LISTENING;
use crate::standard_error;

/// Echo the requests of clients whose sessions are handed over
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The address to serve at, as clients reach it; port 0 lets the system choose
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// The socket of smt keyd hand-over listen
    #[arg(long, value_name = "FILE")]
    socket: PathBuf,
}

/// Serves until the process is ended.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let adopter = Adopter::new()?;
    let server = smt::server_by_handover(adopter.clone());
    let server = server.bind_blocking(&arguments.address)?;
    let address = reachable(server.local_address())?;
    let mut output = std::io::stdout();
    let told = writeln!(output, "{LISTENING}{address}").and_then(|()| output.flush());
    told.doing("writing to standard output")?;
    std::thread::spawn(move || {
        while let Some(request) = server.accept_request() {
            let body = request.body().clone();
            // A caller that has given up is no reason to stop.
            let _ = request.reply(body);
        }
    });
    let ask = Ask::Serve { adopter: HexId(adopter.id()), address };
    let mut last = None;
    loop {
        let ended = adopt(arguments, &ask, &adopter);
        let words = match &ended {
            Ok(Ended::KeyDaemon) => "the key daemon has ended; sessions go on".into(),
            Ok(Ended::Replaced) => {
                "another process serves at this key daemon now; sessions go on, and no new ones \
                 come here until this process is started again"
                    .into()
            }
            Err(failure) => failure.line(),
        };
        // Told once, and not at each try.
        if last.as_deref() != Some(&*words) {
            standard_error::complain(format_args!("smt: {words}"));
        }
        last = Some(words.into_owned());
        if matches!(ended, Ok(Ended::Replaced)) {
            break;
        }
        std::thread::sleep(AGAIN);
    }
    // Sessions that are there go on until the process is ended.
    loop {
        std::thread::park();
    }
}

/// The address as it is told to clients of other hosts.
fn reachable(address: SocketAddr) -> Result<SocketAddr, Failure> {
    match address.ip().to_canonical().is_unspecified() {
        true => Err(Failure::usage(format!(
            "{address} is an address of every host, and clients are told it: give the one at which \
             they reach this host"
        ))),
        false => Ok(address),
    }
}

/// Why no session comes any more.
enum Ended {
    KeyDaemon,
    Replaced,
}

/// Adopts what the key daemon hands over, until that ends or hands over to another process.
fn adopt(arguments: &Arguments, ask: &Ask, adopter: &Adopter) -> Result<Ended, Failure> {
    let stream = HandoverStream::connect(&arguments.socket)?;
    stream.write(ask)?;
    while let Some(told) = stream.wait()? {
        let adopted = match told {
            Told::Session { value, .. } => {
                value.read().and_then(|value| Ok(adopter.adopt(&value, wall_time())?))
            }
            Told::Refused { reason, .. } => return Err(Failure::of(Fault::Environment, reason)),
            Told::Replaced {} => return Ok(Ended::Replaced),
        };
        stream.write(&match adopted {
            Ok(()) => Answer::Adopted {},
            Err(failure) => Answer::Refused { reason: failure.line().into_owned() },
        })?;
    }
    Ok(Ended::KeyDaemon)
}

/// Between two tries to reach the key daemon.
const AGAIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_no_address_of_every_host() {
        for address in ["0.0.0.0:17379", "[::]:17379", "[::ffff:0.0.0.0]:17379"] {
            let failure = reachable(address.parse().unwrap()).unwrap_err();
            assert!(failure.text().contains("at which they reach this host"));
        }
        let address = "192.0.2.1:17379".parse().unwrap();
        assert_eq!(reachable(address).unwrap(), address);
    }
}

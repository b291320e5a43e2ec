// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keyd listen`: the end that answers.

use std::collections::BTreeMap;

use clap::Args;
use smt::Request;
use smt_esp_io::agreement::{Answer, Message, Spis};
use smt_esp_io::{Direction, SuiteName, random_spi};

use super::agreement::{Way, key};
use super::tunnel::LocalTunnel;
use crate::credentials::ServerCredentials;
use crate::failure::Failure;
use crate::standard_error;

/// Answer the other end's key daemon
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The address to listen on, such as 0.0.0.0:17379
    #[arg(value_name = "ADDRESS")]
    address: String,
    #[command(flatten)]
    credentials: ServerCredentials,
    #[command(flatten)]
    peer: super::PeerArguments,
}

/// Answers until the process is ended. Sessions and tunnels go on without it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.credentials.chooses_clients() {
        return Err(Failure::usage("give --client-ca or --client-pin: whose keys to take"));
    }
    let server = arguments.credentials.builder()?;
    let server = server.bind_blocking(&arguments.address)?;
    standard_error::tell(format_args!("listening at {}", server.local_address()));
    let mut listener = Listener { tunnel: arguments.peer.tunnel(), offers: BTreeMap::new() };
    while let Some(request) = server.accept_request() {
        let answer = listener.answer(&request).unwrap_or_else(|failure| {
            standard_error::complain(format_args!("smt: {}", failure.line()));
            Answer::Refused { reason: failure.text().to_owned() }
        });
        let bytes = serde_json::to_vec(&answer)?;
        // A peer that is gone asks anew.
        let _ = request.reply(bytes);
    }
    Ok(())
}

/// The offers that wait for their switch, by the SPIs of both ends.
struct Listener {
    tunnel: LocalTunnel,
    offers: BTreeMap<Spis, SuiteName>,
}

impl Listener {
    fn answer(&mut self, request: &Request) -> Result<Answer, Failure> {
        match Message::parse(request.body())? {
            Message::Offer { suite, spi } => {
                let spis = Spis { to_listener: random_spi()?, to_connector: spi };
                let key = key(&request.session(), suite, Way::ToListener, spis)?;
                self.tunnel.add(Direction::In, spis.to_listener, suite, key)?;
                if self.offers.len() >= MOST_OFFERS {
                    self.give_offers_up()?;
                }
                self.offers.insert(spis, suite);
                Ok(Answer::Taken { spi: spis.to_listener })
            }
            Message::Switch { spis } => {
                let Some(suite) = self.offers.remove(&spis) else {
                    return Ok(Answer::Unknown);
                };
                let key = key(&request.session(), suite, Way::ToConnector, spis)?;
                self.tunnel.add(Direction::Out, spis.to_connector, suite, key)?;
                standard_error::tell(format_args!("new keys, SPI {:#x}", spis.to_listener));
                Ok(Answer::Done)
            }
            Message::Retire { spis } => {
                if !self.tunnel.has(spis.to_connector, spis.to_listener)? {
                    return Ok(Answer::Unknown);
                }
                self.tunnel.retire_others(spis.to_listener)?;
                Ok(Answer::Done)
            }
            Message::Check { spis } => {
                let has = self.tunnel.has(spis.to_connector, spis.to_listener)?;
                Ok(if has { Answer::Done } else { Answer::Unknown })
            }
        }
    }

    /// Gives up what was offered and never switched to, and the associations for it: a peer that
    /// fails again and again fills no tunnel.
    fn give_offers_up(&mut self) -> Result<(), Failure> {
        while let Some((spis, _)) = self.offers.pop_first() {
            self.tunnel.remove_inbound(spis.to_listener)?;
        }
        Ok(())
    }
}

/// Offers that wait. A peer has one; more come of peers that began anew.
const MOST_OFFERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use smt_esp_io::ModeName;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    #[test]
    fn offers_that_are_given_up_leave_no_association_behind() {
        let control = std::env::temp_dir().join(format!("smt-keyd-{}", std::process::id()));
        let socket = UnixListener::bind(&control).unwrap();
        let tunnel = std::thread::spawn(move || {
            let (stream, _) = socket.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            (&stream).write_all(b"{\"answer\":\"done\"}\n").unwrap();
            line
        });
        let spis = Spis { to_listener: 4_097, to_connector: 4_098 };
        let mut listener = Listener {
            tunnel: LocalTunnel {
                control: control.clone(),
                peer: [192, 0, 2, 1].into(),
                mode: ModeName::Transport,
            },
            offers: BTreeMap::from([(spis, SuiteName::Aes128Gcm)]),
        };
        let given_up = listener.give_offers_up();
        std::fs::remove_file(&control).unwrap();
        given_up.unwrap();
        assert!(listener.offers.is_empty());
        assert_eq!(
            tunnel.join().unwrap(),
            "{\"command\":\"remove\",\"direction\":\"in\",\"spi\":4097}\n"
        );
    }
}

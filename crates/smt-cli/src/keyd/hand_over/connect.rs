// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keyd hand-over connect`: the end whose data process calls.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use smt::{Builder, Fault, Session, Side, Suite, TlsClient};

use super::terms::{LONGEST_REPLY, Offer, Reply, shown};
use crate::credentials::ClientCredentials;
use crate::failure::Failure;
use crate::handover_socket::{self, Ask, HandoverStream, HexId, HexValue, Told};
use crate::host_and_port::host_and_port;
use crate::moment::wall_time;
use crate::standard_error;

/// Agree with the other host's key daemon on each session that a process here asks for
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The address of the other host's key daemon, such as db7:17380
    #[arg(value_name = "ADDRESS")]
    address: String,
    #[command(flatten)]
    credentials: ClientCredentials,
    /// The socket of the data processes of this host
    #[arg(long, value_name = "FILE")]
    socket: PathBuf,
}

/// Hands over until the process is ended. Sessions go on without it.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (host, _) = host_and_port(&arguments.address)?;
    let credentials = &arguments.credentials;
    let by_id = credentials.server_id.as_ref().map(ToString::to_string);
    let connector = Arc::new(Connector {
        builder: credentials.builder()?,
        address: arguments.address.clone(),
        peer_name: by_id.or_else(|| credentials.name.clone()).unwrap_or_else(|| host.to_owned()),
    });
    let socket = handover_socket::bind(&arguments.socket)?;
    standard_error::tell(format_args!("listening at {}", arguments.socket.display()));
    for stream in socket.incoming().flatten() {
        let connector = Arc::clone(&connector);
        std::thread::spawn(move || {
            if let Err(failure) = connector.serve(stream) {
                standard_error::complain(format_args!("smt: {}", failure.line()));
            }
        });
    }
    Ok(())
}

/// The way to the other key daemon.
struct Connector {
    builder: Builder<TlsClient>,
    address: String,
    peer_name: String,
}

impl Connector {
    /// Answers a data process until it closes its stream.
    fn serve(&self, stream: UnixStream) -> Result<(), Failure> {
        let stream = HandoverStream::of(stream)?;
        while let Some(ask) = stream.wait()? {
            let told = match ask {
                Ask::Session { adopter } => self.hand_over(adopter),
                Ask::Serve { .. } => {
                    let text =
                        "this key daemon connects: serve at that of the host which is called";
                    Err(Failure::of(Fault::Caller, text))
                }
            };
            let told = told.unwrap_or_else(|failure| {
                let reason = shown(&failure.line());
                standard_error::complain(format_args!("smt: {reason}"));
                Told::Refused { reason, is_lasting: failure.is_lasting() }
            });
            stream.write(&told)?;
        }
        Ok(())
    }

    /// Agrees on one session in a session that is for it alone, and ends with it. Each value comes
    /// of the exporter secret, and the adopters' handshake adds no key agreement of its own: the
    /// secret of a session for many would be worth them all.
    fn hand_over(&self, adopter: HexId) -> Result<Told, Failure> {
        let builder = self.builder.clone().connect_deadline(LIMIT);
        let builder = builder.sessions_memory(0).message_limit(LONGEST_REPLY as u32);
        let client = builder.connect_blocking(&self.address)?;
        let connected = client.connect().map_err(Failure::from);
        let told = connected.and_then(|session| self.agree(&session, adopter));
        client.close(Duration::ZERO);
        told
    }

    fn agree(&self, session: &Session, adopter: HexId) -> Result<Told, Failure> {
        let offer = Offer {
            client: adopter,
            suite: Suite::Aes256Gcm.code(),
            valid_until: wall_time().as_secs() + LIFE,
            // The only one of its session.
            number: 0,
        };
        let bytes = serde_json::to_vec(&offer)?;
        let reply = session.call_blocking(bytes).deadline(LIMIT).wait()?;
        match Reply::parse(&reply)? {
            Reply::Adopted { server, address } => {
                let terms = offer.terms(server)?;
                let value = session.hand_over(Side::Client, &terms, &self.peer_name)?;
                Ok(Told::Session { value: HexValue::of(&value), address: Some(address) })
            }
            Reply::Refused { reason } => {
                let text = format!("the other key daemon refuses: {reason}");
                Err(Failure::of(Fault::Peer, text))
            }
        }
    }
}

/// Seconds in which a session must be adopted: some tries of a handshake.
const LIFE: u64 = 60;
/// The data process of the other end answers within five seconds.
const LIMIT: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use super::*;
    use smt::AdopterId;
    use smt::pki::EphemeralCa;
    use std::time::Instant;

    // SMT [7.5-10]
    /// A session whose secrets are learnt later gives one value at most.
    #[test]
    fn each_handover_has_a_session_of_its_own_which_ends_with_it() {
        let authority = EphemeralCa::new().unwrap();
        let server = smt::server(authority.server(&["localhost"]).unwrap());
        let server = server.bind_blocking("127.0.0.1:0").unwrap();
        let connector = Connector {
            builder: smt::client(authority.trust().unwrap()).server_name("localhost"),
            address: server.local_address().to_string(),
            peer_name: "localhost".to_owned(),
        };
        let mut sessions = Vec::new();
        std::thread::scope(|scope| {
            let handed_over = scope.spawn(|| {
                let one = || connector.hand_over(HexId(AdopterId([1; 16])));
                [one().unwrap(), one().unwrap(), one().unwrap()]
            });
            for number in 0..3 {
                let request = server.accept_request().unwrap();
                let offer = Offer::parse(request.body()).unwrap();
                assert!(offer.check_life(wall_time()).is_ok());
                sessions.push(request.session());
                let adopted = Reply::Adopted {
                    server: HexId(AdopterId([number; 16])),
                    address: ([127, 0, 0, 1], 1).into(),
                };
                request.reply(serde_json::to_vec(&adopted).unwrap()).unwrap();
            }
            for told in handed_over.join().unwrap() {
                assert!(matches!(told, Told::Session { .. }), "{told:?}");
            }
        });
        assert_eq!(server.statistics().protocol.sessions_begun, 3);
        // The server hears of the end of the last one while it waits for requests.
        let have_ended = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let is_live = || sessions.iter().any(|session| session.facts().is_some());
                let end = Instant::now() + Duration::from_secs(30);
                while is_live() && Instant::now() < end {
                    std::thread::yield_now();
                }
                let have_ended = !is_live();
                server.close(Duration::ZERO);
                have_ended
            });
            assert!(server.accept_request().is_none());
            watch.join().unwrap()
        });
        assert!(have_ended);
    }
}

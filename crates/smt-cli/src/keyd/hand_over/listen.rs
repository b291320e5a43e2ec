// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `smt keyd hand-over listen`: the end whose data process serves.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use smt::{Fault, Peer, Request, Session, Side};

use super::terms::{Offer, Reply, shown};
use crate::credentials::ServerCredentials;
use crate::failure::Failure;
use crate::fingerprint::fingerprint;
use crate::handover_socket::{self, Answer, Ask, HandoverStream, HexId, HexValue, Told};
use crate::moment::wall_time;
use crate::standard_error;

/// Answer the other host's key daemon, and hand the sessions over to the process that serves here
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The address to listen on, such as 0.0.0.0:17380
    #[arg(value_name = "ADDRESS")]
    address: String,
    #[command(flatten)]
    credentials: ServerCredentials,
    /// The socket of the data process of this host
    #[arg(long, value_name = "FILE")]
    socket: PathBuf,
}

/// Answers until the process is ended. Sessions go on without it.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.credentials.chooses_clients() {
        return Err(Failure::usage(
            "give --client-ca or --client-pin: whose sessions to hand over",
        ));
    }
    let serving = Arc::new(Serving::default());
    let socket = handover_socket::bind(&arguments.socket)?;
    let registered = Arc::clone(&serving);
    std::thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            let registered = Arc::clone(&registered);
            // A process that says nothing keeps nobody else waiting.
            std::thread::spawn(move || registered.register(stream));
        }
    });
    let server = arguments.credentials.builder()?.message_limit(MESSAGE_LIMIT);
    let server = server.bind_blocking(&arguments.address)?;
    standard_error::tell(format_args!("listening at {}", server.local_address()));
    let (ended, sessions) = sync_channel(ENDING_MAX);
    std::thread::spawn(move || end(&sessions));
    while let Some(request) = server.accept_request() {
        let reply = serving.hand_over(&request).unwrap_or_else(|failure| {
            standard_error::complain(format_args!("smt: {}", shown(&failure.line())));
            Reply::refused(&failure)
        });
        let session = request.session();
        let bytes = serde_json::to_vec(&reply)?;
        // A peer that is gone asks anew.
        let _ = request.reply(bytes);
        // The thread ends with this process alone.
        let _ = ended.send((Instant::now() + REPLY_TIME, session));
    }
    Ok(())
}

/// Ends sessions once their reply has had time to arrive: the connecting end closes its own, and
/// one that does not keeps no secret of a value here.
fn end(sessions: &Receiver<(Instant, Session)>) {
    for (due, session) in sessions {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        session.close();
    }
}

/// The process that serves: the one that said so last.
#[derive(Default)]
struct Serving(Mutex<Option<DataProcess>>);

struct DataProcess {
    stream: HandoverStream,
    adopter: HexId,
    address: std::net::SocketAddr,
}

impl Serving {
    fn register(&self, stream: UnixStream) {
        let registered = HandoverStream::of(stream).and_then(|stream| {
            match stream.read()? {
                Some(Ask::Serve { adopter, address }) => {
                    standard_error::tell(format_args!("process {} serves at {address}", adopter.0));
                    let process = DataProcess { stream, adopter, address };
                    self.replace(process);
                }
                Some(Ask::Session { .. }) => stream.write(&Told::Refused {
                    is_lasting: true,
                    reason: "caller: this key daemon listens: ask that of the host which calls"
                        .to_owned(),
                })?,
                None => {}
            }
            Ok(())
        });
        if let Err(failure) = registered {
            standard_error::complain(format_args!("smt: {}", failure.line()));
        }
    }

    /// Tells the process that served before, if it is there.
    fn replace(&self, process: DataProcess) {
        let mut serving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = serving.replace(process) {
            let _ = before.stream.write(&Told::Replaced {});
        }
    }

    fn hand_over(&self, request: &Request) -> Result<Reply, Failure> {
        let offer = Offer::parse(request.body())?;
        offer.check_life(wall_time())?;
        let name = proved_name(request.peer())?;
        let mut serving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let none = || {
            let text = "no data process serves at this key daemon";
            Failure::of(Fault::Environment, text)
        };
        let process = serving.as_ref().ok_or_else(none)?;
        let session = request.session();
        let terms = offer.terms(process.adopter)?;
        let value = session.hand_over(Side::Server, &terms, &name)?;
        let told = Told::Session { value: HexValue::of(&value), address: None };
        let answered = process.stream.write(&told);
        let answered = answered.and_then(|()| process.stream.read());
        let gone = |why: String| {
            let text = format!("the data process that served is not used any more: {why}");
            Failure::of(Fault::Environment, text)
        };
        let reply = match answered {
            Ok(Some(Answer::Adopted {})) => {
                Ok(Reply::Adopted { server: process.adopter, address: process.address })
            }
            Ok(Some(Answer::Refused { reason })) => return Ok(Reply::Refused { reason }),
            Ok(None) => Err(gone("its socket is closed".to_owned())),
            Err(failure) => Err(gone(failure.line().into_owned())),
        };
        if reply.is_err() {
            *serving = None;
        }
        reply
    }
}

/// The name that a client has proved.
fn proved_name(peer: &Peer) -> Result<String, Failure> {
    if let Some(certificate) = peer.certificate() {
        let (dns_names, uris) = (&certificate.dns_names, &certificate.uris);
        return Ok(name_of(dns_names, uris, &certificate.public_key));
    }
    let key = peer.public_key.as_deref().ok_or_else(|| {
        let text = "a client without a certificate and a key has proved no name";
        Failure::of(Fault::Peer, text)
    })?;
    Ok(name_of(&[], &[], key))
}

/// The first of the certificate's alternative names, which authorities check, or else a hash of its
/// key. No two kinds look alike: a URI has a colon, which a DNS name cannot have, and a hash has a
/// space.
fn name_of(dns_names: &[String], uris: &[String], public_key: &[u8]) -> String {
    let is_uri = |uri: &&String| uri.contains(':') && !uri.contains(char::is_whitespace);
    let is_host = |name: &&String| !name.contains([':', ' ']);
    let hosts = dns_names.iter().filter(is_host);
    let mut names = hosts.chain(uris.iter().filter(is_uri));
    names.next().cloned().unwrap_or_else(|| format!("key sha256 {}", fingerprint(public_key)))
}

/// Bytes of a message of the other end, at most; an offer has fewer.
const MESSAGE_LIMIT: u32 = 4 << 10;
/// A reply is repeated so long, if it is lost.
const REPLY_TIME: Duration = Duration::from_secs(2);
/// Sessions that wait for their end, at most: a handover more waits for one of them.
const ENDING_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use smt::pki::EphemeralCa;
    use std::sync::mpsc::channel;

    #[test]
    fn a_client_is_known_by_what_an_authority_has_checked_or_by_its_key() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let of = |dns: &[&str], uris: &[&str]| name_of(&names(dns), &names(uris), b"key");
        let key = of(&[], &[]);
        assert_eq!(
            key,
            "key sha256 2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"
        );
        assert_eq!(of(&["web"], &["spiffe://x/y"]), "web");
        assert_eq!(of(&[], &["spiffe://x/y"]), "spiffe://x/y");
        // One kind of name that looks like another is none.
        assert_eq!(of(&[], &["web"]), key);
        assert_eq!(of(&["spiffe://x/y"], &[]), key);
        assert_eq!(of(&[], &[&key.replace("key", "key:")]), key);
    }

    // SMT [7.5-10]
    /// Also if the connecting end leaves it open.
    #[test]
    fn a_session_ends_here_soon_after_its_handover() {
        let authority = EphemeralCa::new().unwrap();
        let server = smt::server(authority.server(&["localhost"]).unwrap());
        let server = server.bind_blocking("127.0.0.1:0").unwrap();
        let client = smt::client(authority.trust().unwrap()).server_name("localhost");
        let client = client.connect_blocking(server.local_address()).unwrap();
        let at_client = client.connect().unwrap();
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let request = server.accept_request().unwrap();
                sender.send(request.session()).unwrap();
                request.reply("done").unwrap();
            });
            at_client.call_blocking("offer").wait().unwrap();
        });
        let session: Session = receiver.recv().unwrap();
        let (ended, sessions) = sync_channel(1);
        ended.send((Instant::now(), session.clone())).unwrap();
        drop(ended);
        end(&sessions);
        assert!(session.facts().is_none());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The socket by which `smt keyd hand-over` gives sessions to data processes of its host.
//!
//! 1. A data process says what it is: [`Ask`].
//! 2. The key daemon answers it with a session or a refusal, or, if it serves, gives it one
//!    whenever there is one: [`Told`]. Each that is given is answered: [`Answer`].
//!
//! Each is a line of JSON. A value is a secret: the socket is its owner's, and the kernel tells
//! either end the user of the other (SO_PEERCRED); only the same user and root are answered.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smt::{AdopterId, Fault, Handover};
use zeroize::Zeroizing;

use crate::failure::{Doing, Failure};

/// The wish of a data process.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Ask {
    /// Sessions of clients, as they come; the process is reached at this address.
    Serve { adopter: HexId, address: SocketAddr },
    /// One session with the data process of the other end.
    Session { adopter: HexId },
}

/// The key daemon's words.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "told", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Told {
    /// A session: a value, and where the other end is, for the end that calls.
    Session { value: HexValue, address: Option<SocketAddr> },
    /// There is none; a lasting reason is there the next time too.
    Refused {
        reason: String,
        #[serde(default)]
        is_lasting: bool,
    },
    /// Another process has said that it serves, and gets the sessions from here on.
    Replaced {},
}

/// A data process's answer to a session that it was given.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Answer {
    Adopted {},
    Refused { reason: String },
}

/// An adopter's id in hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct HexId(pub(crate) AdopterId);

impl Serialize for HexId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HexId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = from_hex(&text).filter(|bytes| bytes.len() == 16);
        let bytes = bytes.ok_or_else(|| serde::de::Error::custom("no id of 32 hex digits"))?;
        let mut id = [0; 16];
        id.copy_from_slice(&bytes);
        Ok(Self(AdopterId(id)))
    }
}

/// A value in hexadecimal digits, which are wiped.
#[derive(Deserialize, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct HexValue(Zeroizing<String>);

impl HexValue {
    pub(crate) fn of(value: &Handover) -> Self {
        let bytes = value.to_bytes();
        let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
        for byte in bytes.iter() {
            for digit in [byte >> 4, byte & 15] {
                text.extend(char::from_digit(digit.into(), 16));
            }
        }
        Self(text)
    }

    pub(crate) fn read(&self) -> Result<Handover, Failure> {
        let bytes = from_hex(&self.0).unwrap_or_default();
        Ok(Handover::from_bytes(&bytes)?)
    }
}

impl std::fmt::Debug for HexValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HexValue(..)")
    }
}

fn from_hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for [high, low] in pairs {
        bytes.push(((digit(*high)? << 4) | digit(*low)?) as u8);
    }
    rest.is_empty().then_some(bytes)
}

/// Makes the socket. One that no process answers at any more is replaced.
pub(crate) fn bind(path: &Path) -> Result<UnixListener, Failure> {
    let (shown, bound) = (path.display(), smt_esp_io::bind_alone(path));
    if let Err(error) = &bound
        && error.kind() == io::ErrorKind::AddrInUse
    {
        let text = format!("another key daemon answers at {shown}; give --socket another path");
        return Err(Failure::of(Fault::Caller, text));
    }
    bound.doing(format!("making the socket {shown}"))
}

/// One end of a connection, whose other end is a process of this user or of root.
#[derive(Debug)]
pub(crate) struct HandoverStream(UnixStream);

impl HandoverStream {
    /// Reaches the key daemon.
    pub(crate) fn connect(path: &Path) -> Result<Self, Failure> {
        let stream = reach(path, LIMIT).map_err(|error| {
            let why = match is_time(&error) {
                true => format!("it takes no connection in {} s; has it stopped?", LIMIT.as_secs()),
                false => error.to_string(),
            };
            let text = format!("no key daemon answers at {}: {why}", path.display());
            Failure::of(Fault::Environment, text)
        })?;
        Self::of(stream)
    }

    /// Takes a stream if the other end's user may have sessions.
    pub(crate) fn of(stream: UnixStream) -> Result<Self, Failure> {
        let other = sockopt::socket_peercred(&stream)?.uid;
        let own = rustix::process::geteuid();
        if other != own && !other.is_root() {
            let text = format!(
                "sessions are handed over between processes of user {} alone, and user {} is at \
                 the other end of the socket",
                own.as_raw(),
                other.as_raw()
            );
            return Err(Failure::of(Fault::Caller, text));
        }
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Self(stream))
    }

    /// Writes a line.
    pub(crate) fn write(&self, words: &impl Serialize) -> Result<(), Failure> {
        // A vector that grows would leave a copy of the value behind.
        let mut line = Zeroizing::new(Vec::<u8>::with_capacity(LONGEST));
        serde_json::to_writer(&mut *line, words)?;
        line.push(b'\n');
        // Not as a broken pipe of standard output, which is no failure.
        (&self.0).write_all(&line).map_err(|error| match is_time(&error) {
            true => silent(LIMIT),
            false => {
                let text = format!("the other end of the socket of sessions has gone: {error}");
                Failure::of(Fault::Environment, text)
            }
        })
    }

    /// Reads a line within the limit of an answer; `None` at the end.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.read_within(LIMIT)
    }

    /// The same within another limit.
    pub(crate) fn read_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
    ) -> Result<Option<T>, Failure> {
        self.0.set_read_timeout(Some(limit))?;
        self.read_line(limit)
    }

    /// The same, however long it takes.
    pub(crate) fn wait<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.0.set_read_timeout(None)?;
        self.read_line(Duration::MAX)
    }

    /// One end speaks at a time: nothing comes behind a line.
    fn read_line<T: DeserializeOwned>(&self, limit: Duration) -> Result<Option<T>, Failure> {
        let mut line = Zeroizing::new(vec![0; LONGEST]);
        let mut length = 0;
        loop {
            let read = match (&self.0).read(&mut line[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_time(&error) => return Err(silent(limit)),
                read => read?,
            };
            length += read;
            if line[..length].ends_with(b"\n") {
                let words = serde_json::from_slice(&line[..length]);
                return Ok(Some(words.doing("reading from the socket of sessions")?));
            }
            if read == 0 && length == 0 {
                return Ok(None);
            }
            if read == 0 || length == line.len() {
                let text = "the other end of the socket of sessions has sent no line";
                return Err(Failure::of(Fault::Peer, text));
            }
        }
    }
}

/// Connects within a limit: a process that has stopped lets others wait at its socket.
fn reach(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Whether a limit of time has passed.
fn is_time(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn silent(limit: Duration) -> Failure {
    let text = format!(
        "the process at the other end of the socket of sessions has not answered within {limit:?}; \
         look whether it has stopped, or has too much to do"
    );
    Failure::of(Fault::Environment, text)
}

/// Bytes of the longest line: a value has 368, and its digits 736.
const LONGEST: usize = 4 << 10;
/// A process that takes longer for its answer has stopped.
const LIMIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (HandoverStream, UnixStream) {
        let (one, other) = UnixStream::pair().unwrap();
        (HandoverStream::of(one).unwrap(), other)
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let (one, other) = pair();
        let other = HandoverStream::of(other).unwrap();
        let ask = Ask::Serve {
            adopter: HexId(AdopterId([0xA7; 16])),
            address: "[2001:db8::1]:17379".parse().unwrap(),
        };
        one.write(&ask).unwrap();
        assert_eq!(other.read::<Ask>().unwrap(), Some(ask));
        drop(one);
        assert_eq!(other.read::<Ask>().unwrap(), None);
    }

    #[test]
    fn bytes_that_are_no_line_of_the_kind_are_refused() {
        for bytes in [
            &b"{\"ask\":\"session\"}\n"[..],
            b"{\"ask\":\"session\",\"adopter\":\"a7\"}\n",
            b"{\"ask\":\"session\",\"adopter\":\"a7\",\"more\":1}\n",
            b"\xFF\n",
            b"{\"ask\":",
            &[b'['; LONGEST],
        ] {
            let (one, mut other) = pair();
            other.write_all(bytes).unwrap();
            drop(other);
            assert!(one.read::<Ask>().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_value_that_is_none_is_refused() {
        for text in ["", "0", "zz", "534d5448"] {
            let value = HexValue(Zeroizing::new(text.to_owned()));
            assert!(value.read().is_err(), "{text:?}");
        }
    }

    /// Its key daemon was stopped (SIGSTOP), or the data process has too much to do: neither has
    /// ended, and neither is waited for.
    #[test]
    fn an_end_that_says_nothing_is_told_as_such() {
        let (one, _silent) = pair();
        let limit = Duration::from_millis(1);
        let failure = one.read_within::<Ask>(limit).unwrap_err();
        assert!(failure.text().contains("has not answered within 1ms"));
        assert!(failure.text().contains("has stopped"));
        one.0.set_write_timeout(Some(limit)).unwrap();
        let full = std::iter::repeat_with(|| one.write(&"x".repeat(1 << 10))).find_map(Result::err);
        assert!(full.unwrap().text().contains("has not answered"));
    }

    #[test]
    fn a_socket_is_not_taken_from_another_key_daemon_or_file() {
        let name = format!("smt-handover-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listener = bind(&path).unwrap();
        let second = bind(&path).unwrap_err();
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a letter").unwrap();
        let file = bind(&path).unwrap_err();
        let kept = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(second.text().contains("another key daemon answers"));
        assert!(file.text().contains("no socket is there"), "{}", file.text());
        assert_eq!(kept, b"a letter");
    }

    /// As many wait already as can.
    #[test]
    fn a_key_daemon_that_takes_no_connection_is_not_waited_for() {
        let name = format!("smt-handover-full-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let listener = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let limit = Duration::from_millis(1);
        let mut waiting = Vec::new();
        let full = loop {
            match reach(&path, limit) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        std::fs::remove_file(&path).unwrap();
        assert!(is_time(&full), "{full}");
        assert!(!waiting.is_empty());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The control socket of a tunnel: a line of JSON asks, and another answers.
//!
//! The socket is its owner's, and answers the owner and root alone: the kernel tells the asker's
//! user (SO_PEERCRED).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::association::{AssociationSpec, Direction};
use crate::socket_file::bind_alone;
use crate::statistics::TunnelStatistics;
use crate::tunnel::TunnelHandle;

pub use crate::config::default_control_path;

/// A request to a tunnel.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Counts. With braces, since serde lets further fields pass in a variant that has none.
    Status {},
    /// Adds an association; one for packets out takes the place of another of its name.
    Add {
        /// The association.
        association: Box<AssociationSpec>,
    },
    /// Removes an association.
    Remove {
        /// Packets that leave, or packets that come.
        direction: Direction,
        /// The association's number.
        spi: u32,
    },
}

/// The answer of a tunnel.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Response {
    /// It is done.
    Done,
    /// Counts.
    Status(TunnelStatistics),
    /// It is not done, for this reason.
    Refused {
        /// The reason, in words.
        reason: String,
    },
}

/// Why a tunnel was not asked, or has not answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No tunnel answers at the socket.
    #[error("caller: no tunnel answers at {path}")]
    NoTunnel {
        /// The socket.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// The tunnel has ended meanwhile, or answers something else.
    #[error("environment: the tunnel at {path} gives no answer")]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        reason: io::Error,
    },
    /// The tunnel refuses.
    #[error("{0}")]
    Refused(String),
}

/// Asks the tunnel at a socket for its counts.
///
/// # Errors
/// See [`ControlError`].
pub fn status(path: &Path) -> Result<TunnelStatistics, ControlError> {
    match ask(path, &Request::Status {})? {
        Response::Status(statistics) => Ok(statistics),
        _ => Err(ControlError::NoAnswer {
            path: path.to_owned(),
            reason: io::ErrorKind::InvalidData.into(),
        }),
    }
}

/// Asks the tunnel at a socket.
///
/// # Errors
/// See [`ControlError`].
pub fn ask(path: &Path, request: &Request) -> Result<Response, ControlError> {
    let stream = UnixStream::connect(path)
        .map_err(|reason| ControlError::NoTunnel { path: path.to_owned(), reason })?;
    let answered = exchange(&stream, request)
        .map_err(|reason| ControlError::NoAnswer { path: path.to_owned(), reason })?;
    match answered {
        Response::Refused { reason } => Err(ControlError::Refused(reason)),
        response => Ok(response),
    }
}

fn exchange(stream: &UnixStream, request: &Request) -> io::Result<Response> {
    stream.set_read_timeout(Some(CLIENT_LIMIT))?;
    // A vector that grows leaves a copy of the key behind.
    let mut line = Zeroizing::new(Vec::<u8>::with_capacity(LONGEST_REQUEST));
    serde_json::to_writer(&mut *line, request)?;
    line.push(b'\n');
    (&mut &*stream).write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// A socket on which a tunnel answers. It is removed when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    has_stopped: AtomicBool,
}

impl ControlSocket {
    /// Makes the socket. One that no process answers at any more is replaced.
    ///
    /// # Errors
    /// A tunnel answers there already, another file is there, or the folder cannot be written.
    pub fn bind(path: &Path) -> io::Result<Self> {
        Ok(Self {
            listener: bind_alone(path)?,
            path: path.to_owned(),
            has_stopped: AtomicBool::new(false),
        })
    }

    /// Answers, one request after another, until [`Self::stop`].
    pub fn serve(&self, tunnel: &TunnelHandle) {
        for stream in self.listener.incoming() {
            if self.has_stopped.load(Ordering::Acquire) {
                return;
            }
            // A client that has gone away or says nothing is no failure of the tunnel.
            let _ = stream.and_then(|stream| answer(&stream, tunnel));
        }
    }

    /// Lets [`Self::serve`] return.
    pub fn stop(&self) {
        self.has_stopped.store(true, Ordering::Release);
        // A client that says nothing ends the wait for one.
        let _ = UnixStream::connect(&self.path);
    }

    /// The socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Answers one request.
fn answer(stream: &UnixStream, tunnel: &TunnelHandle) -> io::Result<()> {
    stream.set_read_timeout(Some(SERVER_LIMIT))?;
    stream.set_write_timeout(Some(SERVER_LIMIT))?;
    let asker = rustix::net::sockopt::socket_peercred(stream)?;
    let own = rustix::process::geteuid();
    let response = if asker.uid == own || asker.uid.is_root() {
        let line = read_line(stream)?;
        if line.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice::<Request>(&line) {
            Ok(request) => respond(request, tunnel),
            Err(error) => refused(format!("caller: this is no request: {error}")),
        }
    } else {
        let uid = asker.uid.as_raw();
        refused(format!("caller: the tunnel is not of user {uid}"))
    };
    let mut line = serde_json::to_vec(&response)?;
    line.push(b'\n');
    (&mut &*stream).write_all(&line)
}

/// The bytes of a request up to its end, in memory that is wiped: there may be a key among them.
fn read_line(mut stream: &UnixStream) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut line = Zeroizing::new(vec![0; LONGEST_REQUEST]);
    let mut length = 0;
    while length < line.len() {
        let read = match stream.read(&mut line[length..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let end = line[length..length + read].iter().position(|byte| *byte == b'\n');
        length += end.map_or(read, |end| end + 1);
        if read == 0 || end.is_some() {
            break;
        }
    }
    line.truncate(length);
    Ok(line)
}

fn respond(request: Request, tunnel: &TunnelHandle) -> Response {
    let done = match request {
        Request::Status {} => tunnel.status().map(Response::Status),
        Request::Add { association } => tunnel.add(*association).map(|()| Response::Done),
        Request::Remove { direction, spi } => {
            tunnel.remove(direction, spi).map(|()| Response::Done)
        }
    };
    done.unwrap_or_else(|error| refused(error.to_string()))
}

const fn refused(reason: String) -> Response {
    Response::Refused { reason }
}

/// Bytes of the longest request: an association with all its fields has a tenth of it.
const LONGEST_REQUEST: usize = 16 << 10;
/// A client that is slower holds up others.
const SERVER_LIMIT: Duration = Duration::from_secs(2);
/// Longer than a worker may take for its answer.
const CLIENT_LIMIT: Duration = Duration::from_secs(12);

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("smt-esp-control-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// The line that a tunnel without workers answers to these bytes.
    fn answered(bytes: &[u8]) -> String {
        let (client, server) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| answer(&server, &TunnelHandle::without_workers()).unwrap());
            (&client).write_all(bytes).unwrap();
            let mut line = String::new();
            BufReader::new(&client).read_line(&mut line).unwrap();
            line
        })
    }

    #[test]
    fn a_request_for_counts_is_answered() {
        let line = answered(b"{\"command\":\"status\"}\n");
        let response: Response = serde_json::from_str(&line).unwrap();
        assert!(matches!(response, Response::Status(counts) if counts.device == "esp7"));
    }

    #[test]
    fn bytes_that_are_no_request_are_refused() {
        for bytes in [
            &b"{}\n"[..],
            b"\xFF\xFE\n",
            b"{\"command\":\"status\",\"more\":1}\n",
            b"{\"command\":\"remove\",\"direction\":\"up\",\"spi\":1}\n",
            &vec![b'['; LONGEST_REQUEST],
        ] {
            let line = answered(bytes);
            assert!(line.contains("caller: this is no request"), "{line}");
        }
    }

    #[test]
    fn a_socket_is_its_owners_and_one_tunnels() {
        let folder = Folder::new("owner");
        let path = folder.0.join("socket");
        let first = ControlSocket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = ControlSocket::bind(&path).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_without_a_process_behind_it_is_replaced() {
        let folder = Folder::new("left");
        let path = folder.0.join("socket");
        // As a process that was killed leaves it.
        drop(UnixListener::bind(&path).unwrap());
        let again = ControlSocket::bind(&path).unwrap();
        let handle = TunnelHandle::without_workers();
        std::thread::scope(|scope| {
            scope.spawn(|| again.serve(&handle));
            let response = ask(&path, &Request::Status {}).unwrap();
            assert!(matches!(response, Response::Status(_)));
            again.stop();
        });
    }
}

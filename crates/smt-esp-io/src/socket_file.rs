// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A Unix socket at a path, where one process answers.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Makes the socket, which is its owner's. One that no process answers at any more is replaced.
///
/// # Errors
/// `AddrInUse` if a process has a socket there, `AlreadyExists` if another file is there, or the
/// answer of the system: the folder cannot be written.
pub fn bind_alone(path: &Path) -> io::Result<UnixListener> {
    match std::fs::symlink_metadata(path) {
        Ok(facts) if !facts.file_type().is_socket() => {
            let text = "a file that is no socket is there; give another path, or remove it";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(_) if is_left_behind(path)? => std::fs::remove_file(path)?,
        Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Whether no process has the socket: the system refuses connections to such a one alone. A process
/// that has stopped takes none either, but lets them wait, so this does not wait.
fn is_left_behind(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    Ok(connect(&socket, &SocketAddrUnix::new(path)?) == Err(Errno::CONNREFUSED))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path in the folder for temporary files, which is free again in the end.
    struct Place(std::path::PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("smt-socket-{}-{name}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn refused(place: &Place) -> io::ErrorKind {
        bind_alone(&place.0).unwrap_err().kind()
    }

    #[test]
    fn a_socket_is_its_owners_and_one_that_was_left_behind_is_replaced() {
        let place = Place::new("left");
        // As a process that was killed leaves it.
        drop(UnixListener::bind(&place.0).unwrap());
        let _listener = bind_alone(&place.0).unwrap();
        let mode = std::fs::metadata(&place.0).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(refused(&place), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let place = Place::new("file");
        std::fs::write(&place.0, "a letter").unwrap();
        assert_eq!(refused(&place), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&place.0).unwrap(), b"a letter");
        let link = Place::new("link");
        std::os::unix::fs::symlink("/nowhere", &link.0).unwrap();
        assert_eq!(refused(&link), io::ErrorKind::AlreadyExists);
    }

    /// It has stopped, and as many wait for it as can.
    #[test]
    fn a_socket_whose_process_takes_no_more_connections_stays() {
        let place = Place::new("full");
        let address = SocketAddrUnix::new(&place.0).unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let listener = socket();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            let one = socket();
            match connect(&one, &address) {
                Ok(()) => waiting.push(one),
                Err(error) => break error,
            }
        };
        assert_eq!(full, Errno::AGAIN);
        assert_eq!(refused(&place), io::ErrorKind::AddrInUse);
        assert!(place.0.exists());
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where local clients connect: a TCP port of this host, or a Unix socket.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A listener.
#[derive(Debug)]
pub(crate) enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A Unix socket, which its user alone may use.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at `HOST:PORT` or `unix:PATH`. All who reach the listener act by the tunnel's
    /// certificate, hence hosts are those of the loopback, unless `is_public`.
    pub(crate) async fn open(place: &str, is_public: bool) -> io::Result<Self> {
        if let Some(path) = place.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            return Ok(Self::Unix(bind_unix(&path).await?, path));
        }
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(place).await?.collect();
        if !is_public && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "caller: all who reach it would act by this certificate: choose an address of the \
                 loopback or a Unix socket, or say --public",
            ));
        }
        Ok(Self::Tcp(TcpListener::bind(&addresses[..]).await?))
    }

    /// The next client and its name.
    pub(crate) async fn accept(&self) -> io::Result<(Box<dyn Local>, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), address.to_string()))
            }
            Self::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), path.display().to_string()))
            }
        }
    }

    /// The place, with the port that the system has chosen.
    pub(crate) fn place(&self) -> io::Result<String> {
        match self {
            Self::Tcp(listener) => Ok(listener.local_addr()?.to_string()),
            Self::Unix(_, path) => Ok(format!("unix:{}", path.display())),
        }
    }
}

/// Binds in a folder that nobody else may enter, and moves the socket to its place when its rights
/// are set. A socket that a dead tunnel has left is replaced.
async fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if UnixStream::connect(path).await.is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let folder = PathBuf::from(name);
    DirBuilder::new().mode(0o700).create(&folder)?;
    let socket = folder.join("s");
    let bound = UnixListener::bind(&socket).and_then(|listener| {
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        match fs::symlink_metadata(path) {
            Ok(found) if !std::os::unix::fs::FileTypeExt::is_socket(&found.file_type()) => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            _ => fs::rename(&socket, path)?,
        }
        Ok(listener)
    });
    // The folder takes along what a bind that has failed leaves.
    fs::remove_dir_all(&folder)?;
    bound
}

/// A local client's connection.
pub(crate) trait Local: AsyncRead + AsyncWrite + Send + Unpin {
    /// Lets the client see a connection that was cut, and no end, when this is dropped.
    fn cut(&self);
}

impl Local for TcpStream {
    fn cut(&self) {
        // Without it the client sees an end, which a command's half would tell too.
        let _ = self.set_zero_linger();
    }
}

impl Local for UnixStream {
    fn cut(&self) {
        // Unix sockets have no reset: the client sees an end.
    }
}

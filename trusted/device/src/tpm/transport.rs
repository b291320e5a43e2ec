// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way to a TPM: a device of the kernel, or a socket of a TPM in software.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use zeroize::Zeroizing;

use super::TpmError;

/// The longest response that is taken.
const RESPONSE_LEN_MAX: usize = 4096;
/// Bytes of tag, size and response code.
const HEADER_LEN: usize = 10;
/// A TPM in hardware takes seconds to make a key.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// A way to a TPM.
#[derive(Debug)]
pub enum Transport {
    /// `/dev/tpmrm0`, which gives each open file a space of its own.
    Device(File),
    /// A socket of `swtpm socket --server type=tcp`.
    Tcp(TcpStream),
    /// A socket of `swtpm socket --server type=unixio`.
    Unix(UnixStream),
}

impl Transport {
    /// Opens `/dev/tpmrm0` or another path, or connects to `host:port`.
    ///
    /// # Errors
    /// [`TpmError::Missing`].
    pub fn open(place: &str) -> Result<Self, TpmError> {
        Self::connect(place).map_err(|source| TpmError::Missing { path: place.to_owned(), source })
    }

    fn connect(place: &str) -> io::Result<Self> {
        if !place.contains('/') && place.contains(':') {
            let socket = TcpStream::connect(place)?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
            return Ok(Self::Tcp(socket));
        }
        if std::fs::metadata(place)?.file_type().is_socket() {
            let socket = UnixStream::connect(place)?;
            socket.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
            return Ok(Self::Unix(socket));
        }
        Ok(Self::Device(OpenOptions::new().read(true).write(true).open(place)?))
    }

    /// The descriptor that commands go through.
    pub(crate) fn descriptor(&self) -> RawFd {
        match self {
            Self::Device(file) => file.as_raw_fd(),
            Self::Tcp(socket) => socket.as_raw_fd(),
            Self::Unix(socket) => socket.as_raw_fd(),
        }
    }

    /// Sends a command and returns the response, whose header says its size.
    pub(super) fn exchange(&mut self, command: &[u8]) -> Result<Zeroizing<Vec<u8>>, TpmError> {
        let mut response = Zeroizing::new(vec![0; RESPONSE_LEN_MAX]);
        let length = match self {
            // The kernel hands out a response as a whole.
            Self::Device(file) => {
                file.write_all(command)?;
                file.read(&mut response)?
            }
            Self::Tcp(socket) => exchange_by_stream(socket, command, &mut response)?,
            Self::Unix(socket) => exchange_by_stream(socket, command, &mut response)?,
        };
        response.truncate(length);
        Ok(response)
    }
}

fn exchange_by_stream(
    socket: &mut (impl Read + Write),
    command: &[u8],
    response: &mut [u8],
) -> io::Result<usize> {
    socket.write_all(command)?;
    socket.read_exact(&mut response[..HEADER_LEN])?;
    let [_, _, a, b, c, d, ..] = *response else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let size = u32::from_be_bytes([a, b, c, d]) as usize;
    let rest = response.get_mut(HEADER_LEN..size).ok_or(io::ErrorKind::InvalidData)?;
    socket.read_exact(rest)?;
    Ok(size)
}

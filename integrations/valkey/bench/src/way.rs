// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ways to a server: TCP, TLS over TCP by rustls, SMT by one socket or by a socket each.

use std::io;
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::certificates::Certificates;
use crate::server::Ports;

/// A way to a server.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Way {
    /// TCP, not encrypted.
    Tcp,
    /// TLS 1.3 over TCP.
    Tls,
    /// SMT, all connections by one socket.
    Smt,
    /// SMT, each connection by a socket of its own, as if each were a process.
    SmtAlone,
}

impl Way {
    /// Connects.
    pub(crate) async fn connect(
        self,
        ports: Ports,
        certificates: &Certificates,
    ) -> io::Result<Box<dyn Duplex>> {
        let tcp = async |port| {
            let stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(stream)
        };
        Ok(match self {
            Self::Tcp => Box::new(tcp(ports.tcp).await?),
            Self::Tls => Box::new(certificates.over_tls(tcp(ports.tls).await?).await?),
            Self::Smt => Box::new(certificates.smt.stream(("127.0.0.1", ports.smt)).await?),
            Self::SmtAlone => {
                let alone = &certificates.smt_alone;
                Box::new(alone.stream(("127.0.0.1", ports.smt)).await?)
            }
        })
    }

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Tls => "TLS/TCP",
            Self::Smt => "SMT",
            Self::SmtAlone => "SMT, a socket each",
        }
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "tls" => Ok(Self::Tls),
            "smt" => Ok(Self::Smt),
            "smt-alone" => Ok(Self::SmtAlone),
            other => Err(format!("caller: there is no way {other}: tcp, tls, smt or smt-alone")),
        }
    }
}

/// A connection by any way.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

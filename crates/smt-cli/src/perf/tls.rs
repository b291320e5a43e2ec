// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.3 over TCP as it is compared with SMT: the best that blocking sockets and rustls give
//! (`tls_tasks.rs` has tokio's).
//!
//! AES-128-GCM alone, certificates verified, TCP_NODELAY, and reads of 64 KB from the socket:
//! rustls asks for 4 KB at a time, which would cost 16 times the calls. A message is its length
//! (u32) and its bytes, written at once.

use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ConnectionCommon, RootCertStore, ServerConfig, SideData, Stream};

use crate::credentials::ServerCredentials;
use crate::failure::{Doing, Failure};
use crate::scratch::EphemeralFiles;

/// A server's configuration.
pub(super) fn server_config(credentials: &ServerCredentials) -> Result<Arc<ServerConfig>, Failure> {
    let key = credentials.passphrase.key(&credentials.key)?.private_key()?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates(&credentials.cert)?, key)?;
    Ok(Arc::new(config))
}

/// A client's configuration.
pub(super) fn client_config(authority: &Path) -> Result<Arc<ClientConfig>, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate)?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The configurations of both sides.
pub(super) struct Configs {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

/// Configurations that have one key exchange group, with client certificates or without.
pub(super) fn configs_of(
    files: &EphemeralFiles,
    group: &'static dyn SupportedKxGroup,
    is_mutual: bool,
) -> Result<Configs, Failure> {
    let provider = Arc::new(CryptoProvider { kx_groups: vec![group], ..(*provider()).clone() });
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.authority)? {
        roots.add(certificate)?;
    }
    let roots = Arc::new(roots);
    let key = |path: &Path| {
        PrivateKeyDer::from_pem_file(path).doing(format!("reading {}", path.display()))
    };
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(Arc::clone(&roots));
    let mut client = match is_mutual {
        true => client
            .with_client_auth_cert(certificates(&files.client.cert)?, key(&files.client.key)?)?,
        false => client.with_no_client_auth(),
    };
    client.resumption = Resumption::disabled();
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?;
    let server = match is_mutual {
        true => {
            let clients = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let clients = clients.map_err(|error| Failure::new(error.to_string()))?;
            server.with_client_cert_verifier(clients)
        }
        false => server.with_no_client_auth(),
    };
    let mut server =
        server.with_single_cert(certificates(&files.server.cert)?, key(&files.server.key)?)?;
    server.send_tls13_tickets = 0;
    Ok(Configs { client: Arc::new(client), server: Arc::new(server) })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        ..aws_lc_rs::default_provider()
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .doing(format!("reading {}", path.display()))
}

/// A connection that carries whole messages.
pub(super) struct Messages<C> {
    connection: C,
    socket: BigReads,
    /// The message to be written, with its length before it.
    frame: Vec<u8>,
}

impl<C, S> Messages<C>
where
    C: Deref<Target = ConnectionCommon<S>> + DerefMut,
    S: SideData,
{
    /// Over a connected socket.
    pub(super) fn new(mut connection: C, socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        // A message is sealed whole and leaves by as few calls as the socket takes.
        connection.set_buffer_limit(None);
        Ok(Self {
            connection,
            socket: BigReads(BufReader::with_capacity(READ_BYTES, socket)),
            frame: Vec::new(),
        })
    }

    /// Writes one message.
    pub(super) fn write(&mut self, message: &[u8]) -> io::Result<()> {
        let length = u32::try_from(message.len()).map_err(io::Error::other)?;
        self.frame.clear();
        self.frame.extend_from_slice(&length.to_be_bytes());
        self.frame.extend_from_slice(message);
        let mut stream = Stream::new(&mut self.connection, &mut self.socket);
        stream.write_all(&self.frame)?;
        stream.flush()
    }

    /// Reads one message over the last one's bytes.
    pub(super) fn read(&mut self, message: &mut Vec<u8>) -> io::Result<()> {
        let mut stream = Stream::new(&mut self.connection, &mut self.socket);
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        message.resize(u32::from_be_bytes(length) as usize, 0);
        stream.read_exact(message)
    }
}

/// Reads much at once, writes directly.
struct BigReads(BufReader<TcpStream>);

impl Read for BigReads {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for BigReads {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.get_mut().write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

/// Bytes of one system call.
pub(super) const READ_BYTES: usize = 65_536;

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS 1.3 by rustls for all peers that take a configuration: AES-128-GCM, X25519, certificates
//! verified, aws-lc-rs, no resumption and no tickets, so that every handshake is a full one.

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::certificates::{SERVER_NAME, authority, certificate, key};
use crate::failure::{Doing, Failure};

/// A server's configuration. `alpn`: empty for none.
pub(crate) fn server_config(directory: &Path, alpn: &[u8]) -> Result<ServerConfig, Failure> {
    let chain = certificates(&certificate(directory))?;
    let key = PrivateKeyDer::from_pem_file(key(directory)).doing("reading the server's key")?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.send_tls13_tickets = 0;
    config.alpn_protocols = alpn_list(alpn);
    Ok(config)
}

/// A client's configuration.
pub(crate) fn client_config(directory: &Path, alpn: &[u8]) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&authority(directory))? {
        roots.add(certificate)?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.alpn_protocols = alpn_list(alpn);
    Ok(config)
}

/// The name that servers must prove.
pub(crate) fn server_name() -> Result<ServerName<'static>, Failure> {
    Ok(ServerName::try_from(SERVER_NAME)?)
}

/// One suite, one group.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    CertificateDer::pem_file_iter(path).and_then(Iterator::collect).doing("reading certificates")
}

fn alpn_list(alpn: &[u8]) -> Vec<Vec<u8>> {
    if alpn.is_empty() {
        return Vec::new();
    }
    vec![alpn.to_vec()]
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use rustls::{ClientConnection, HandshakeKind, ServerConnection};

    use super::*;
    use crate::certificates::Directory;

    /// Lets both say what they have to say.
    fn exchange(client: &mut ClientConnection, server: &mut ServerConnection) {
        while client.wants_write() || server.wants_write() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            wire.clear();
            server.write_tls(&mut wire).unwrap();
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets().unwrap();
        }
    }

    #[test]
    fn every_handshake_is_a_full_one() {
        let directory = Directory::make().unwrap();
        let client = Arc::new(client_config(&directory.0, b"h2").unwrap());
        let server = Arc::new(server_config(&directory.0, b"h2").unwrap());
        for _ in 0..3 {
            let name = server_name().unwrap();
            let mut client = ClientConnection::new(Arc::clone(&client), name).unwrap();
            let mut server = ServerConnection::new(Arc::clone(&server)).unwrap();
            exchange(&mut client, &mut server);
            // Tickets come with what follows the handshake.
            server.writer().write_all(b"reply").unwrap();
            exchange(&mut client, &mut server);
            client.reader().read_exact(&mut [0; 5]).unwrap();
            assert_eq!(client.handshake_kind(), Some(HandshakeKind::Full));
            assert_eq!(client.tls13_tickets_received(), 0);
            assert_eq!(client.alpn_protocol(), Some(&b"h2"[..]));
        }
    }
}

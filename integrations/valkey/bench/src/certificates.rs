// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One client certificate for both encrypted ways.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use smt::{Identity, Trust};
use smt_valkey::{Connector, Options};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The certificate that a client shows, and the authority that it trusts.
pub(crate) struct Certificates {
    tls: TlsConnector,
    /// One socket for all connections, as a program has it.
    pub(crate) smt: Connector,
    /// A socket for each.
    pub(crate) smt_alone: Options,
}

impl Certificates {
    /// Those of a folder that `integrations/valkey/keys` has made.
    pub(crate) async fn load(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let file = |name: &str| -> PathBuf { folder.join(name) };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(file("ca.pem"))?)?;
        let certificate = CertificateDer::from_pem_file(file("client.pem"))?;
        let key = PrivateKeyDer::from_pem_file(file("client.key"))?;
        let tls = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![certificate], key)?;
        let trust = Trust::roots_from_pem_files(&[file("ca.pem")])?;
        let identity = Identity::from_pem_files(file("client.pem"), file("client.key"))?;
        let options = Options::new(trust).identity(identity);
        Ok(Self {
            tls: TlsConnector::from(Arc::new(tls)),
            smt: options.open().await?,
            smt_alone: options,
        })
    }

    /// TLS over a connection.
    pub(crate) async fn over_tls(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        self.tls.connect(name, stream).await
    }
}

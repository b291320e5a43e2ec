// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options about who this side is and whom it believes, shared by `serve`, `call` and `perf`.

use std::path::{Path, PathBuf};

use clap::Args;
use smt::pki::SubjectName;
use smt::{Builder, ClientAuth, Identity, RevocationLists, SpiffeId, TlsClient, TlsServer, Trust};

use crate::failure::Failure;
use crate::private_key::Passphrase;
use crate::usage;

/// A server's certificate, and which clients it lets in.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerCredentials {
    /// The server's certificate, and the chain behind it (PEM); or a public key alone
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: PathBuf,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    #[command(flatten)]
    pub(crate) passphrase: Passphrase,
    /// Let only clients in whose certificate this authority has signed (PEM)
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Let only clients in whose certificate, or public key alone, is in this file (PEM), whatever
    /// it says: as many as there are clients, and no authority is needed
    #[arg(long, value_name = "FILE", conflicts_with = "client_ca")]
    client_pin: Option<PathBuf>,
    /// With --client-ca, refuse clients whose certificate this revocation list has (PEM or DER),
    /// and those of authorities without a list; a list that has expired lets nobody in. May be
    /// given several times
    #[arg(long, value_name = "FILE", requires = "client_ca", conflicts_with = "client_pin")]
    crl: Vec<PathBuf>,
}

impl ServerCredentials {
    /// Whether only clients with a certificate are let in.
    pub(crate) fn chooses_clients(&self) -> bool {
        self.client_ca.is_some() || self.client_pin.is_some()
    }

    /// The certificate and its key, which may be encrypted.
    pub(crate) fn identity(&self) -> Result<Identity, Failure> {
        self.passphrase.identity(&self.cert, &self.key)
    }

    /// Begins a server with them.
    pub(crate) fn builder(&self) -> Result<Builder<TlsServer>, Failure> {
        let builder = smt::server(self.identity()?);
        Ok(builder.client_auth(self.client_auth()?))
    }

    /// Reads the authority or the certificates of the clients, if there are any.
    pub(crate) fn client_auth(&self) -> Result<ClientAuth, Failure> {
        let trust = match (&self.client_ca, &self.client_pin) {
            (Some(authority), _) => {
                with_lists(Trust::roots_from_pem_files(&[authority])?, &self.crl)?
            }
            (None, Some(pinned)) => Trust::pinned_from_pem_file(pinned)?,
            (None, None) => return Ok(ClientAuth::None),
        };
        Ok(ClientAuth::Required(trust))
    }

    /// The file of the clients' authorities.
    pub(crate) fn client_authorities(&self) -> Option<&Path> {
        self.client_ca.as_deref()
    }

    /// The files of revocation lists.
    pub(crate) fn revocation_lists(&self) -> &[PathBuf] {
        &self.crl
    }

    /// One that cannot be read a second time, or whose reading may wait for ever: a pipe.
    pub(crate) fn unreadable_again(&self) -> Option<&Path> {
        let clients = [self.client_ca.as_ref(), self.client_pin.as_ref()];
        let own = [Some(&self.cert), Some(&self.key)];
        let lists = self.crl.iter().map(Some);
        let files = own.into_iter().chain(clients).chain(lists);
        // A file that is missing now is told as such when it is read.
        let is_other = |path: &&PathBuf| path.metadata().is_ok_and(|facts| !facts.is_file());
        let other = files.flatten().find(is_other);
        other.map(PathBuf::as_path)
    }
}

/// Which servers a client believes, and who it is itself.
#[derive(Args, Debug)]
pub(crate) struct ClientCredentials {
    #[command(flatten)]
    pub(crate) anchors: Anchors,
    /// With --ca, refuse servers whose certificate this revocation list has (PEM or DER), and those
    /// of authorities without a list; a list that has expired accepts no server. May be given
    /// several times
    #[arg(long, value_name = "FILE", requires = "ca")]
    crl: Vec<PathBuf>,
    /// The client's certificate, for servers that ask for one (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    #[command(flatten)]
    passphrase: Passphrase,
    /// The name that the server must prove; by default the host part of the address
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) name: Option<String>,
    /// The SPIFFE ID that the server must prove, in the place of a name
    #[arg(long, value_name = "URI", conflicts_with = "name", value_parser = spiffe_id)]
    pub(crate) server_id: Option<SpiffeId>,
}

/// Exactly one of the two ways to believe a server.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Anchors {
    /// Believe servers whose certificate this authority has signed (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Believe exactly the certificates, or public keys alone, in this file (PEM), whatever they
    /// say: also those that `openssl req -x509` makes, which are an authority's
    #[arg(long, value_name = "FILE")]
    pin: Option<PathBuf>,
}

impl ClientCredentials {
    /// Begins a client with them.
    pub(crate) fn builder(&self) -> Result<Builder<TlsClient>, Failure> {
        let mut builder = smt::client(self.trust()?);
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            builder = builder.identity(self.passphrase.identity(cert, key)?);
        }
        if let Some(name) = &self.name {
            builder = builder.server_name(name);
        }
        if let Some(id) = &self.server_id {
            builder = builder.server_id(id);
        }
        Ok(builder)
    }

    /// Which servers it believes.
    pub(crate) fn trust(&self) -> Result<Trust, Failure> {
        with_lists(self.anchors.trust()?, &self.crl)
    }
}

/// Understands the name of a server; a value parser for clap.
fn server_name(text: &str) -> Result<String, String> {
    let name = SubjectName::parse(text).map(|_| text.to_owned());
    name.map_err(|_| "give a DNS name, an IP address or a SPIFFE ID".to_owned())
}

/// The same for a SPIFFE ID.
fn spiffe_id(text: &str) -> Result<SpiffeId, String> {
    SpiffeId::parse(text).map_err(usage::without_fault)
}

/// Adds revocation lists to a trust, if there are some.
fn with_lists(trust: Trust, files: &[PathBuf]) -> Result<Trust, Failure> {
    match files {
        [] => Ok(trust),
        files => Ok(trust.with_revocation_lists(RevocationLists::from_files(files)?)),
    }
}

impl Anchors {
    /// The trust that they stand for.
    pub(crate) fn trust(&self) -> Result<Trust, Failure> {
        match (&self.ca, &self.pin) {
            (Some(authority), _) => Ok(Trust::roots_from_pem_files(&[authority])?),
            (None, Some(pinned)) => Ok(Trust::pinned_from_pem_file(pinned)?),
            (None, None) => Err(Failure::new("give --ca or --pin: whom to believe")),
        }
    }
}

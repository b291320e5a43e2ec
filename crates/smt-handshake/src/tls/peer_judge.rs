// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Judges the peers of live sessions again, when the trust by which they were accepted was
//! replaced.
//!
//! Flow: 1. a session keeps what its peer has proved ([`PeerIdentity`])  2. the trust of today's
//! configuration judges that as a handshake would, but for the signature over the handshake, which
//! was verified then.
//! Not here: what becomes of a session whose peer is accepted no more. Its owner decides.

use std::sync::Arc;

use rustls::Error;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::time_provider::TimeProvider;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use smt_proto::WallTime;
use smt_proto::key_exchange::{HandshakeFailure, PeerIdentity};
use smt_record::Side;

use crate::failure::{caller, environment};
use crate::spiffe_id::SpiffeId;
use crate::tls::client_side::name_for;
use crate::tls::failure::from_tls;
use crate::tls::verifiers::{server_id_verifier, server_verifier};
use crate::told_time::ToldTime;
use crate::trust::Trust;

/// The trust of an endpoint's TLS at one moment, to judge the peers of live sessions by.
pub struct PeerJudge {
    /// Judges clients, if the endpoint answers some and asks who they are.
    pub(super) clients: Option<Arc<dyn ClientCertVerifier>>,
    /// Whom its clients trust, if the endpoint calls servers.
    pub(super) servers: Option<Trust>,
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) time: Arc<ToldTime>,
}

impl PeerJudge {
    /// Judges what a peer has proved, by the date `wall`; by the host's clock if that is `None`.
    /// Peers with registered keys are not judged: no certificate stands for them.
    ///
    /// # Errors
    /// [`HandshakeFailure`] says why a handshake would not accept it now.
    pub fn check(
        &self,
        peer: &PeerIdentity,
        wall: Option<WallTime>,
    ) -> Result<(), HandshakeFailure> {
        if peer.key_name.is_some() {
            return Ok(());
        }
        self.time.set(wall);
        let now = self.time.current_time();
        let now = now.ok_or_else(|| environment("this host has no clock".to_owned()))?;
        match peer.server_name.as_deref() {
            Some(name) => self.check_server(name, peer, now),
            None => self.check_client(peer, now),
        }
    }

    fn check_client(&self, peer: &PeerIdentity, now: UnixTime) -> Result<(), HandshakeFailure> {
        let Some(clients) = &self.clients else {
            return Ok(());
        };
        let accepted = match shown(peer).split_first() {
            Some((leaf, intermediates)) => {
                clients.verify_client_cert(leaf, intermediates, now).map(|_| ())
            }
            None if clients.client_auth_mandatory() => Err(Error::NoCertificatesPresented),
            None => Ok(()),
        };
        accepted.map_err(|error| from_tls(&error, Side::Server))
    }

    fn check_server(
        &self,
        name: &str,
        peer: &PeerIdentity,
        now: UnixTime,
    ) -> Result<(), HandshakeFailure> {
        let Some(trust) = &self.servers else {
            return Ok(());
        };
        let (verifier, name) = self.server_verifier(trust, name)?;
        let accepted = match shown(peer).split_first() {
            Some((leaf, intermediates)) => {
                verifier.verify_server_cert(leaf, intermediates, &name, &[], now).map(|_| ())
            }
            None => Err(Error::NoCertificatesPresented),
        };
        accepted.map_err(|error| from_tls(&error, Side::Client))
    }

    fn server_verifier(
        &self,
        trust: &Trust,
        name: &str,
    ) -> Result<(Arc<dyn ServerCertVerifier>, ServerName<'static>), HandshakeFailure> {
        let unusable = |error: &dyn std::fmt::Display| caller(format!("{name:?}: {error}"));
        if SpiffeId::is_meant(name) {
            let id = SpiffeId::parse(name).map_err(|error| unusable(&error))?;
            let name = name_for(&id);
            let verifier = server_id_verifier(trust, id, &self.provider);
            return Ok((verifier.map_err(|error| unusable(&error))?, name));
        }
        let verifier = server_verifier(trust.clone(), &self.provider);
        let verifier = verifier.map_err(|error| unusable(&error))?;
        let name = ServerName::try_from(name.to_owned()).map_err(|error| unusable(&error))?;
        Ok((verifier, name))
    }
}

/// The certificates that a peer has shown, leaf first, or its public key in their place, as TLS
/// carries both (RFC 7250 §3).
fn shown(peer: &PeerIdentity) -> Vec<CertificateDer<'_>> {
    let certificates = peer.certificates.iter().map(|der| CertificateDer::from(der.as_slice()));
    let public_key = peer.public_key.iter().map(|key| CertificateDer::from(&**key));
    certificates.chain(public_key).collect()
}

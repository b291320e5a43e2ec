// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Accepts servers by their SPIFFE ID, in the place of a DNS name or an address (SPEC §6.1).
//!
//! 1. The chain is judged as that of every server, or the certificate is a pinned one. 2. The
//!    certificate has exactly one URI among its names, which is the ID that was asked for
//!    (X.509-SVID §2).

use std::fmt;
use std::sync::Arc;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::{CertRevocationListError, CertificateError, Error, OtherError, RootCertStore};
use rustls_pki_types::{ServerName, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use crate::peer_certificate::PeerCertificate;
use crate::revocation::RevocationLists;
use crate::spiffe_id::SpiffeId;
use crate::tls::verify::{ServerCheck, Shown};
use crate::tls::verify_chain::ChainSignature;
use crate::tls::verify_pinned::Pinned;

/// Accepts the servers of one ID.
#[derive(Debug)]
pub(crate) struct ServerOfId {
    pub(crate) id: SpiffeId,
    pub(crate) issuers: Issuers,
}

/// Which certificates may prove an ID.
#[derive(Debug)]
pub(crate) enum Issuers {
    Roots {
        roots: Arc<RootCertStore>,
        revocation: Option<RevocationLists>,
        algorithms: WebPkiSupportedAlgorithms,
    },
    Pinned(Pinned),
}

impl ServerCheck for ServerOfId {
    fn check_server(
        &self,
        shown: Shown<'_>,
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<(), Error> {
        match &self.issuers {
            Issuers::Pinned(pinned) => pinned.check_server(shown, name, ocsp_response, now)?,
            Issuers::Roots { .. } => self.issuers.check_chain(shown, now).map_err(of_webpki)?,
        }
        let certificate = PeerCertificate::from_der(shown.leaf);
        let certificate = certificate.map_err(|_| CertificateError::BadEncoding)?;
        if certificate.spiffe_id() == Some(self.id.as_str()) {
            return Ok(());
        }
        let wrong = WrongId { expected: self.id.clone(), presented: certificate.uris };
        Err(CertificateError::Other(OtherError(Arc::new(wrong))).into())
    }
}

impl Issuers {
    fn check_chain(&self, shown: Shown<'_>, now: UnixTime) -> Result<(), webpki::Error> {
        let Self::Roots { roots, revocation, algorithms } = self else {
            return Err(webpki::Error::UnknownIssuer);
        };
        let lists = revocation.as_ref().map_or_else(Vec::new, RevocationLists::parsed);
        let options = revocation.as_ref().and_then(|revocation| revocation.options(&lists));
        EndEntityCert::try_from(shown.leaf)?.verify_for_usage(
            algorithms.all,
            &roots.roots,
            shown.intermediates,
            now,
            KeyUsage::server_auth(),
            options,
            None,
        )?;
        Ok(())
    }
}

/// The error as TLS's library has it, which tells the peer by an alert.
fn of_webpki(error: webpki::Error) -> Error {
    use webpki::Error as E;
    let error = match error {
        E::CertExpired { time, not_after } => CertificateError::ExpiredContext { time, not_after },
        E::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        E::UnknownIssuer => CertificateError::UnknownIssuer,
        E::CertRevoked => CertificateError::Revoked,
        E::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        E::CrlExpired { time, next_update } => {
            CertificateError::ExpiredRevocationListContext { time, next_update }
        }
        E::InvalidCrlSignatureForPublicKey => {
            return CertRevocationListError::BadSignature.into();
        }
        E::InvalidSignatureForPublicKey => {
            return ChainSignature::mark(CertificateError::BadSignature.into());
        }
        E::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    };
    error.into()
}

/// The certificate proves another ID, or none.
#[derive(Debug)]
pub(crate) struct WrongId {
    pub(crate) expected: SpiffeId,
    /// The URIs that it has.
    pub(crate) presented: Vec<String>,
}

impl fmt::Display for WrongId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate is not for {}", self.expected)
    }
}

impl std::error::Error for WrongId {}

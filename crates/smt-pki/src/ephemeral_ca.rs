// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Certificates that live as long as the process: for tests, examples and a quick start.
//!
//! Flow: 1. [`EphemeralCa::new`] makes an authority whose key nothing stores  2. it issues server
//! and client identities  3. both sides take [`EphemeralCa::trust`].
//! Not for production: the authority dies with the process, so no other process can trust it
//! unless it is given the certificate. See `authority.rs` for authorities that are kept.

use smt_handshake::{Identity, Trust};

use crate::authority::CertificateAuthority;
use crate::error::MakeCertificateError;
use crate::plan::{CertificatePlan, DAYS_DEFAULT, KeyKind, Validity};

/// An authority and the certificates that it issues, all in memory.
#[derive(Debug)]
pub struct EphemeralCa {
    authority: CertificateAuthority,
    key_kind: KeyKind,
}

impl EphemeralCa {
    /// Makes the authority, with keys that every implementation accepts.
    ///
    /// # Errors
    /// [`MakeCertificateError`] only if the system has no randomness or a broken clock.
    pub fn new() -> Result<Self, MakeCertificateError> {
        Self::with_keys(KeyKind::default())
    }

    /// Makes the authority. Its key, and those of its servers and clients, are of this kind.
    ///
    /// # Errors
    /// [`MakeCertificateError`] only if the system has no randomness or a broken clock.
    pub fn with_keys(key_kind: KeyKind) -> Result<Self, MakeCertificateError> {
        // Longer than any leaf, which may not outlive its authority.
        let validity = Validity::days(2 * DAYS_DEFAULT)?;
        // A name of its own: else peers of two of them would report a bad signature, which sounds
        // like damage, and not an unknown issuer.
        let mut random = [0; 4];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| rcgen::Error::RingUnspecified)?;
        let name = format!("throw-away authority {:08x}", u32::from_be_bytes(random));
        let authority = CertificateAuthority::new(&name, validity, key_kind)?;
        Ok(Self { authority, key_kind })
    }

    /// An identity for a server that clients call by these names (DNS, IP addresses or URIs).
    ///
    /// # Errors
    /// [`MakeCertificateError`] if there is no name, or one is none.
    pub fn server(&self, names: &[&str]) -> Result<Identity, MakeCertificateError> {
        let key_kind = self.key_kind;
        let plan = CertificatePlan::server(names)?;
        self.identity(&CertificatePlan { key_kind, ..plan })
    }

    /// An identity for a client with this name as subject. A name that is a URI, a SPIFFE ID for
    /// example, becomes a subject alternative name too. The same holds for an IP address, and for
    /// a name that a host may have.
    ///
    /// The identity has its certificate in DER alone. For PEM, which
    /// [`CertificateAuthority::revoke`] takes, issue the certificate by [`Self::authority`].
    ///
    /// # Errors
    /// [`MakeCertificateError`] only if the system has no randomness or a broken clock.
    pub fn client(&self, common_name: &str) -> Result<Identity, MakeCertificateError> {
        let key_kind = self.key_kind;
        let plan = CertificatePlan::client(common_name)?;
        self.identity(&CertificatePlan { key_kind, ..plan })
    }

    /// An identity as planned.
    ///
    /// # Errors
    /// [`MakeCertificateError`] as [`CertificateAuthority::issue`].
    pub fn identity(&self, plan: &CertificatePlan) -> Result<Identity, MakeCertificateError> {
        let issued = self.authority.issue(plan)?;
        let identity =
            Identity::from_pem(issued.certificate_pem.as_bytes(), issued.key_pem.as_bytes())?;
        Ok(identity)
    }

    /// Trust in this authority, for the peers of endpoints with its certificates.
    ///
    /// # Errors
    /// The certificate was made here, hence there are none in practice.
    pub fn trust(&self) -> Result<Trust, MakeCertificateError> {
        Ok(Trust::roots_from_pem(self.authority.certificate_pem().as_bytes())?)
    }

    /// The authority itself, to issue PEM or to write its certificate to a file.
    pub fn authority(&self) -> &CertificateAuthority {
        &self.authority
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Revocation lists of an authority (CRLs, RFC 5280 §5).
//!
//! Not here: how peers judge by them (`smt_handshake::RevocationLists`).

use std::time::SystemTime;

use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevocationReason, RevokedCertParams, SerialNumber,
};
use smt_handshake::{CredentialError, Pem};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::authority::CertificateAuthority;
use crate::error::MakeCertificateError;
use crate::plan::{Validity, unix_s};

impl CertificateAuthority {
    /// Makes a list of the certificates that this authority has issued and that count no more, in
    /// PEM. It is whole: a certificate that an earlier list had is to be given again, until its
    /// last day. Peers refuse all certificates once `validity` has ended, and need the next list
    /// before.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if a certificate cannot be read, or names another issuer.
    pub fn revocation_list(
        &self,
        revoked: &[Pem],
        validity: Validity,
    ) -> Result<String, MakeCertificateError> {
        let issuer = self.issuer()?;
        let (this_update, next_update) = validity.bounds();
        let mut revoked_certs = Vec::new();
        for pem in revoked {
            // The leaf comes first; those behind it are its authorities'.
            let der = pem.certificates()?.swap_remove(0);
            revoked_certs.push(RevokedCertParams {
                serial_number: self.serial_of(&der, pem.place())?,
                revocation_time: this_update.into(),
                reason_code: Some(RevocationReason::Unspecified),
                invalidity_date: None,
            });
        }
        // Each list has a larger number than those before (RFC 5280 §5.2.3).
        let number = u64::try_from(unix_s(SystemTime::now())).unwrap_or_default();
        let list = CertificateRevocationListParams {
            this_update: this_update.into(),
            next_update: next_update.into(),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: None,
            revoked_certs,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(list.signed_by(&issuer)?.pem()?)
    }

    /// The serial number of a certificate that this authority has issued.
    fn serial_of(&self, der: &[u8], place: &str) -> Result<SerialNumber, MakeCertificateError> {
        let bad =
            |reason: String| CredentialError::BadCertificate { place: place.to_owned(), reason };
        let parse = |der| X509Certificate::from_der(der).map(|(_, certificate)| certificate);
        let certificate = parse(der).map_err(|error| bad(error.to_string()))?;
        let own = parse(self.certificate_der()).map_err(|error| bad(error.to_string()))?;
        if certificate.issuer().as_raw() != own.subject().as_raw() {
            let issuer = certificate.issuer().to_string();
            return Err(bad(format!("its issuer is {:?}, and not this authority", issuer)).into());
        }
        Ok(SerialNumber::from_slice(certificate.raw_serial()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CertificatePlan, KeyKind};

    fn authority() -> CertificateAuthority {
        CertificateAuthority::new("test", Validity::days(800).unwrap(), KeyKind::default()).unwrap()
    }

    fn certificate(of: &CertificateAuthority) -> Pem {
        let plan = CertificatePlan::client("gone").unwrap();
        Pem::text("gone.pem", of.issue(&plan).unwrap().certificate_pem.as_bytes())
    }

    #[test]
    fn a_list_has_the_certificates_that_were_given() {
        let authority = authority();
        let gone = [certificate(&authority), certificate(&authority)];
        let list = authority.revocation_list(&gone, Validity::days(7).unwrap());
        let pem = Pem::text("list", list.unwrap().as_bytes());
        let der = pem.revocation_lists().unwrap().remove(0);
        let parsed = x509_parser::revocation_list::CertificateRevocationList::from_der(&der);
        let (_, parsed) = parsed.unwrap();
        let serials: Vec<_> =
            parsed.iter_revoked_certificates().map(|one| one.raw_serial()).collect();
        assert_eq!(serials.len(), 2);
        for (pem, serial) in gone.iter().zip(serials) {
            let der = pem.certificates().unwrap().remove(0);
            let (_, certificate) = X509Certificate::from_der(&der).unwrap();
            assert_eq!(certificate.raw_serial(), serial);
        }
    }

    #[test]
    fn a_certificate_of_another_authority_is_refused() {
        let validity = Validity::days(800).unwrap();
        let other = CertificateAuthority::new("other", validity, KeyKind::default()).unwrap();
        let foreign = [certificate(&other)];
        let error = authority().revocation_list(&foreign, Validity::days(7).unwrap());
        let error = error.unwrap_err().to_string();
        assert_eq!(
            error,
            "the certificate in gone.pem cannot be used: its issuer is \"CN=other\", and not this authority"
        );
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Revocation lists of an authority (CRLs, RFC 5280 §5).
//!
//! Not here: how peers judge by them (`smt_handshake::RevocationLists`).

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevocationReason, RevokedCertParams, SerialNumber,
};
use smt_handshake::{CredentialError, Pem};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::{CertificateRevocationList, RevokedCertificate};

use crate::authority::CertificateAuthority;
use crate::error::MakeCertificateError;
use crate::plan::{Validity, unix_s};
use crate::serial::CertificateSerial;

/// The certificates of one authority that count no more.
#[derive(Debug, Default)]
pub struct RevokedCertificates {
    entries: BTreeMap<CertificateSerial, Entry>,
    /// The number of the list that had them.
    number: u64,
}

/// Since when a certificate counts no more, in Unix seconds, and why (RFC 5280 §5.3.1).
#[derive(Debug)]
struct Entry {
    since_s: i64,
    reason: RevocationReason,
}

impl RevokedCertificates {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Takes the certificate with this serial number out: it counts again. Returns whether it was
    /// there.
    pub fn restore_serial(&mut self, serial: &CertificateSerial) -> bool {
        self.entries.remove(serial).is_some()
    }

    /// Adds a certificate, from now on. Returns whether it was not there before.
    fn add(&mut self, serial: CertificateSerial) -> bool {
        let since_s = unix_s(SystemTime::now());
        let entry = Entry { since_s, reason: RevocationReason::Unspecified };
        let is_new = !self.entries.contains_key(&serial);
        self.entries.entry(serial).or_insert(entry);
        is_new
    }
}

impl CertificateAuthority {
    /// The certificates of an earlier list of this authority, to be in the next one as well.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if there is not exactly one list, or it is another authority's.
    pub fn revoked_in(&self, list: &Pem) -> Result<RevokedCertificates, MakeCertificateError> {
        let bad = |reason: String| {
            let place = list.place().to_owned();
            MakeCertificateError::from(CredentialError::BadRevocationList { place, reason })
        };
        let lists = list.revocation_lists()?;
        let [der] = &lists[..] else {
            return Err(bad(format!("there are {} in the file, and one is wanted", lists.len())));
        };
        let (_, parsed) =
            CertificateRevocationList::from_der(der).map_err(|error| bad(error.to_string()))?;
        let own = self.parsed()?;
        if parsed.issuer().as_raw() != own.subject().as_raw() {
            let issuer = parsed.issuer().to_string();
            return Err(bad(format!("its authority is {issuer:?}, and not this one")));
        }
        // Somebody who can write the file, without the key, must not take a certificate out of the
        // next list.
        if !self.has_signed(&parsed) {
            return Err(bad("this authority's key has not signed it".to_owned()));
        }
        let number = parsed.crl_number().map_or(Ok(0), u64::try_from);
        let number =
            number.map_err(|_| bad("no larger number than its own fits 64 bits".into()))?;
        let entry = |one: &RevokedCertificate<'_>| {
            let serial = CertificateSerial::from_der_integer(one.raw_serial());
            Some((serial?, Entry::of(one)))
        };
        let entries = parsed.iter_revoked_certificates().map(entry).collect::<Option<_>>();
        let entries = entries.ok_or_else(|| bad(NO_SERIAL.to_owned()))?;
        Ok(RevokedCertificates { entries, number })
    }

    /// Adds a certificate that this authority has issued. Returns whether it was not there before.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if the certificate cannot be read, or names another issuer.
    pub fn revoke(
        &self,
        certificate: &Pem,
        revoked: &mut RevokedCertificates,
    ) -> Result<bool, MakeCertificateError> {
        Ok(revoked.add(self.serial_of(certificate)?))
    }

    /// Adds the certificate with this serial number, whose file is gone. Returns whether it was not
    /// there before. Whether this authority has issued such a certificate is not known to it.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if the number is that of the authority's own certificate.
    pub fn revoke_serial(
        &self,
        serial: CertificateSerial,
        revoked: &mut RevokedCertificates,
    ) -> Result<bool, MakeCertificateError> {
        let own = self.parsed()?;
        let is_own = own.subject().as_raw() == own.issuer().as_raw()
            && CertificateSerial::from_der_integer(own.raw_serial()).as_ref() == Some(&serial);
        if is_own {
            return Err(MakeCertificateError::OwnSerial { serial });
        }
        Ok(revoked.add(serial))
    }

    /// Takes a certificate out that this authority has issued: it counts again. Returns whether it
    /// was there.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if the certificate cannot be read, or names another issuer.
    pub fn restore(
        &self,
        certificate: &Pem,
        revoked: &mut RevokedCertificates,
    ) -> Result<bool, MakeCertificateError> {
        Ok(revoked.restore_serial(&self.serial_of(certificate)?))
    }

    /// Makes the list of these certificates, in PEM. Peers refuse all certificates once `validity`
    /// has ended, and need the next list before.
    ///
    /// # Errors
    /// [`MakeCertificateError`] if the list cannot be made.
    pub fn revocation_list(
        &self,
        revoked: &RevokedCertificates,
        validity: Validity,
    ) -> Result<String, MakeCertificateError> {
        let issuer = self.issuer()?;
        let (this_update, next_update) = validity.bounds();
        let entry = |(serial, entry): (&CertificateSerial, &Entry)| RevokedCertParams {
            serial_number: SerialNumber::from_slice(serial.magnitude()),
            revocation_time: entry.since().into(),
            reason_code: Some(entry.reason),
            invalidity_date: None,
        };
        // Each list has a larger number than those before (RFC 5280 §5.2.3).
        let now = u64::try_from(unix_s(SystemTime::now())).unwrap_or_default();
        let list = CertificateRevocationListParams {
            this_update: this_update.into(),
            next_update: next_update.into(),
            crl_number: SerialNumber::from(now.max(revoked.number.saturating_add(1))),
            issuing_distribution_point: None,
            revoked_certs: revoked.entries.iter().map(entry).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(list.signed_by(&issuer)?.pem()?)
    }

    /// Whether a list has this authority's signature.
    fn has_signed(&self, list: &CertificateRevocationList<'_>) -> bool {
        let (message, signature) = (list.tbs_cert_list.as_ref(), &list.signature_value.data);
        let by_others = || {
            let own = self.parsed();
            own.is_ok_and(|own| list.verify_signature(own.public_key()).is_ok())
        };
        self.key().ml_dsa_has_signed(message, signature).unwrap_or_else(by_others)
    }

    fn parsed(&self) -> Result<X509Certificate<'_>, MakeCertificateError> {
        let parsed = X509Certificate::from_der(self.certificate_der());
        let (_, parsed) = parsed.map_err(|error| CredentialError::BadCertificate {
            place: "the authority's certificate".to_owned(),
            reason: error.to_string(),
        })?;
        Ok(parsed)
    }

    /// The serial number of a certificate that this authority has issued.
    fn serial_of(&self, pem: &Pem) -> Result<CertificateSerial, MakeCertificateError> {
        let bad = |reason: String| {
            let place = pem.place().to_owned();
            MakeCertificateError::from(CredentialError::BadCertificate { place, reason })
        };
        // The leaf comes first; those behind it are its authorities'.
        let der = pem.certificates()?.swap_remove(0);
        let (_, certificate) =
            X509Certificate::from_der(&der).map_err(|error| bad(error.to_string()))?;
        if certificate.issuer().as_raw() != self.parsed()?.subject().as_raw() {
            let issuer = certificate.issuer().to_string();
            return Err(bad(format!("its issuer is {issuer:?}, and not this authority")));
        }
        if certificate.public_key() == self.parsed()?.public_key() {
            return Err(bad(OWN_CERTIFICATE.to_owned()));
        }
        let serial = CertificateSerial::from_der_integer(certificate.raw_serial());
        serial.ok_or_else(|| bad(NO_SERIAL.to_owned()))
    }
}

impl Entry {
    fn of(one: &RevokedCertificate<'_>) -> Self {
        let reason = one.reason_code().map_or(0, |(_, code)| code.0);
        Self { since_s: one.revocation_date.timestamp(), reason: reason_of(reason) }
    }

    fn since(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(u64::try_from(self.since_s).unwrap_or(0))
    }
}

const OWN_CERTIFICATE: &str =
    "it is the authority's own, which its list cannot revoke: let no host trust it";
const NO_SERIAL: &str = "a serial number is negative or longer than 20 bytes, which no list may have (RFC 5280 4.1.2.2)";

fn reason_of(code: u8) -> RevocationReason {
    use RevocationReason as R;
    match code {
        1 => R::KeyCompromise,
        2 => R::CaCompromise,
        3 => R::AffiliationChanged,
        4 => R::Superseded,
        5 => R::CessationOfOperation,
        6 => R::CertificateHold,
        8 => R::RemoveFromCrl,
        9 => R::PrivilegeWithdrawn,
        10 => R::AaCompromise,
        _ => R::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{CertificatePlan, KeyKind};
    use crate::text::CertificateText;

    fn authority() -> CertificateAuthority {
        CertificateAuthority::new("test", Validity::days(800).unwrap(), KeyKind::default()).unwrap()
    }

    fn certificate(of: &CertificateAuthority) -> Pem {
        let plan = CertificatePlan::client("gone").unwrap();
        Pem::text("gone.pem", of.issue(&plan).unwrap().certificate_pem.as_bytes())
    }

    fn list(authority: &CertificateAuthority, revoked: &RevokedCertificates) -> Pem {
        let list = authority.revocation_list(revoked, Validity::days(7).unwrap());
        Pem::text("list", list.unwrap().as_bytes())
    }

    #[test]
    fn a_next_list_has_the_certificates_of_the_one_before_and_a_larger_number() {
        let authority = authority();
        let [first, second] = [certificate(&authority), certificate(&authority)];
        let mut revoked = RevokedCertificates::default();
        assert!(authority.revoke(&first, &mut revoked).unwrap());
        assert!(!authority.revoke(&first, &mut revoked).unwrap());
        // As if it had been long ago, for a reason.
        let entry = revoked.entries.values_mut().next().unwrap();
        (entry.since_s, entry.reason) = (1_700_000_000, RevocationReason::KeyCompromise);
        let mut again = authority.revoked_in(&list(&authority, &revoked)).unwrap();
        assert!(authority.revoke(&second, &mut again).unwrap());
        assert!(!authority.revoke(&first, &mut again).unwrap(), "it is revoked since long ago");
        let last = authority.revoked_in(&list(&authority, &again)).unwrap();
        assert_eq!(last.count(), 2);
        assert!(last.number > again.number && again.number > 0);
        let kept = last.entries.values().filter(|entry| {
            entry.since_s == 1_700_000_000 && entry.reason == RevocationReason::KeyCompromise
        });
        assert_eq!(kept.count(), 1);
        assert!(authority.restore(&first, &mut again).unwrap());
        assert!(!authority.restore(&first, &mut again).unwrap());
        assert_eq!(authority.revoked_in(&list(&authority, &again)).unwrap().count(), 1);
    }

    #[test]
    fn a_list_that_this_authority_has_not_signed_is_not_taken_up() {
        for kind in KeyKind::ALL {
            let validity = Validity::days(800).unwrap();
            let new = |kind| CertificateAuthority::new("test", validity, kind).unwrap();
            let (authority, of_the_same_name) = (new(kind), new(KeyKind::default()));
            let revoked = RevokedCertificates::default();
            assert!(authority.revoked_in(&list(&authority, &revoked)).is_ok(), "{kind:?}");
            let error = authority.revoked_in(&list(&of_the_same_name, &revoked)).unwrap_err();
            assert!(error.to_string().contains("has not signed it"), "{kind:?}: {error}");
        }
    }

    #[test]
    fn lists_and_certificates_of_another_authority_are_refused() {
        let validity = Validity::days(800).unwrap();
        let other = CertificateAuthority::new("other", validity, KeyKind::default()).unwrap();
        let mut revoked = RevokedCertificates::default();
        let error = authority().revoke(&certificate(&other), &mut revoked).unwrap_err().to_string();
        assert_eq!(
            error,
            "the certificate in gone.pem cannot be used: its issuer is \"CN=other\", and not this authority"
        );
        assert_eq!(revoked.count(), 0);
        let error = authority().revoked_in(&list(&other, &revoked)).unwrap_err().to_string();
        assert_eq!(
            error,
            "the revocation list in list cannot be used: its authority is \"CN=other\", and not this one"
        );
    }

    #[test]
    fn a_certificate_whose_file_is_gone_is_revoked_by_its_serial_number() {
        let authority = authority();
        let gone = certificate(&authority);
        let der = gone.certificates().unwrap().remove(0);
        let serial = CertificateText::from_der(&der).unwrap().serial.parse().unwrap();
        let mut revoked = RevokedCertificates::default();
        assert!(authority.revoke_serial(serial, &mut revoked).unwrap());
        assert!(!authority.revoke(&gone, &mut revoked).unwrap());
        let mut again = authority.revoked_in(&list(&authority, &revoked)).unwrap();
        assert!(authority.restore(&gone, &mut again).unwrap());
        assert_eq!(again.count(), 0);
    }

    #[test]
    fn an_authority_does_not_revoke_itself() {
        let validity = Validity::days(9).unwrap();
        let authority = CertificateAuthority::new("it", validity, KeyKind::default()).unwrap();
        let own = Pem::text("ca.pem", authority.certificate_pem().as_bytes());
        let error = authority.revoke(&own, &mut RevokedCertificates::default()).unwrap_err();
        assert!(error.to_string().contains("it is the authority's own"), "{error}");
        let text = CertificateText::from_der(authority.certificate_der()).unwrap();
        let serial = text.serial.parse().unwrap();
        let error = authority.revoke_serial(serial, &mut RevokedCertificates::default());
        assert!(matches!(error, Err(MakeCertificateError::OwnSerial { .. })), "{error:?}");
    }
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PEM text: where it comes from, and what it holds.
//!
//! Flow: 1. read a file, or take text  2. refuse it by name if a part of it would be passed over
//! (`sections`)  3. take the sections wanted out of it  4. if there are none, say what there is
//! instead: a key where certificates belong, an encrypted key, DER.
//! Not here: what certificates and keys mean (see `identity.rs`, `trust.rs`), opening encrypted
//! keys (`smt-pki`).

mod sections;

use std::io::Read as _;
use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, SubjectPublicKeyInfoDer,
};
use zeroize::Zeroizing;

use crate::credential_error::CredentialError;
use crate::limits::PEM_FILE_LEN_MAX;
use sections::{Defect, found, key_section};

/// PEM text together with the name of its place, for messages. Zeroized on drop: it may be a key.
pub struct Pem {
    place: String,
    text: Zeroizing<Vec<u8>>,
}

impl Pem {
    /// Reads a file.
    ///
    /// # Errors
    /// [`CredentialError::Unreadable`], or [`CredentialError::TooLarge`].
    pub fn read(path: &Path) -> Result<Self, CredentialError> {
        let unreadable = |source| CredentialError::Unreadable { path: path.to_path_buf(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        // The size first, so that the buffer never moves and leaves copies of a key behind.
        let size = file.metadata().map_err(unreadable)?.len().min(PEM_FILE_LEN_MAX);
        let mut text = Zeroizing::new(Vec::with_capacity(size as usize + 1));
        file.take(PEM_FILE_LEN_MAX + 1).read_to_end(&mut text).map_err(unreadable)?;
        if text.len() as u64 > PEM_FILE_LEN_MAX {
            return Err(CredentialError::TooLarge { path: path.to_path_buf() });
        }
        sections::take_off_byte_order_marks(&mut text);
        Ok(Self { place: path.display().to_string(), text })
    }

    /// Takes text that the application holds; `place` names it in messages.
    pub fn text(place: &str, text: &[u8]) -> Self {
        let mut text = Zeroizing::new(text.to_vec());
        sections::take_off_byte_order_marks(&mut text);
        Self { place: place.to_owned(), text }
    }

    /// Where the text came from.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// All certificates, in order; at least one.
    ///
    /// # Errors
    /// [`CredentialError::NotPem`], [`CredentialError::UnreadSection`] names a part that is not
    /// read, or [`CredentialError::Missing`] says what there is instead.
    pub fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
        self.check()?;
        let certificates = CertificateDer::pem_slice_iter(&self.text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.not_pem(&error))?;
        if certificates.is_empty() {
            return Err(self.missing("certificate"));
        }
        Ok(certificates)
    }

    /// All public keys, in order; `None` if there is none.
    ///
    /// # Errors
    /// [`CredentialError::NotPem`], [`CredentialError::UnreadSection`], or
    /// [`CredentialError::KeysAndCertificates`] if there are certificates beside them.
    pub fn public_keys(
        &self,
    ) -> Result<Option<Vec<SubjectPublicKeyInfoDer<'static>>>, CredentialError> {
        self.check()?;
        let keys = SubjectPublicKeyInfoDer::pem_slice_iter(&self.text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.not_pem(&error))?;
        if keys.is_empty() {
            return Ok(None);
        }
        if CertificateDer::pem_slice_iter(&self.text).next().is_some() {
            return Err(CredentialError::KeysAndCertificates { place: self.place.clone() });
        }
        Ok(Some(keys))
    }

    /// All revocation lists, in order; at least one. Bytes in DER are one list.
    ///
    /// # Errors
    /// [`CredentialError::NotPem`], [`CredentialError::UnreadSection`], or
    /// [`CredentialError::Missing`] says what there is instead.
    pub fn revocation_lists(
        &self,
    ) -> Result<Vec<CertificateRevocationListDer<'static>>, CredentialError> {
        // An ASN.1 SEQUENCE, as no PEM begins.
        if self.text.first() == Some(&0x30) {
            return Ok(vec![self.text.to_vec().into()]);
        }
        self.check()?;
        let lists = CertificateRevocationListDer::pem_slice_iter(&self.text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| self.not_pem(&error))?;
        if lists.is_empty() {
            return Err(self.missing("revocation list"));
        }
        Ok(lists)
    }

    /// The private key, if it is not encrypted.
    ///
    /// # Errors
    /// [`CredentialError::NotPem`], [`CredentialError::UnreadSection`],
    /// [`CredentialError::EncryptedKey`] or [`CredentialError::TraditionalEncryption`] if a
    /// passphrase is needed first, [`CredentialError::SeveralKeys`], or
    /// [`CredentialError::Missing`] says what there is instead.
    pub fn private_key(&self) -> Result<PrivateKeyDer<'static>, CredentialError> {
        self.check()?;
        let place = || self.place.clone();
        match self.encryption() {
            None => {}
            Some(KeyEncryption::Pkcs8(_)) => {
                return Err(CredentialError::EncryptedKey { place: place() });
            }
            Some(KeyEncryption::Traditional) => {
                return Err(CredentialError::TraditionalEncryption { place: place() });
            }
        }
        let mut keys = PrivateKeyDer::pem_slice_iter(&self.text);
        match (keys.next(), keys.next()) {
            (Some(Ok(_)), Some(_)) => Err(CredentialError::SeveralKeys { place: place() }),
            (Some(Ok(key)), None) => Ok(key),
            (Some(Err(error)), _) => Err(self.not_pem(&error)),
            (None, _) => Err(self.missing("private key")),
        }
    }

    /// How the private key is encrypted; `None` if there is a key that is not, or none at all.
    pub fn encryption(&self) -> Option<KeyEncryption<'_>> {
        let text = std::str::from_utf8(&self.text).ok()?;
        let (label, section) = key_section(text)?;
        match label {
            "ENCRYPTED PRIVATE KEY" => Some(KeyEncryption::Pkcs8(section)),
            _ if section.contains(TRADITIONAL_HEADER) => Some(KeyEncryption::Traditional),
            _ => None,
        }
    }

    /// Refuses a text of which a part would be passed over without a word.
    fn check(&self) -> Result<(), CredentialError> {
        let place = || self.place.clone();
        match sections::check(&self.text) {
            None => Ok(()),
            Some(Defect::NotAtLineStart { line }) => Err(CredentialError::NotPem {
                place: place(),
                reason: format!(
                    "line {line} has blanks or another section's end in front of its -----BEGIN: begin a line there"
                ),
            }),
            Some(Defect::Unread { label }) => {
                Err(CredentialError::UnreadSection { place: place(), label })
            }
        }
    }

    fn not_pem(&self, error: &rustls_pki_types::pem::Error) -> CredentialError {
        CredentialError::NotPem { place: self.place.clone(), reason: sections::reason(error) }
    }

    fn missing(&self, wanted: &'static str) -> CredentialError {
        CredentialError::Missing { wanted, place: self.place.clone(), found: found(&self.text) }
    }
}

/// The forms of encrypted private keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyEncryption<'a> {
    /// PKCS#8's: the PEM section `ENCRYPTED PRIVATE KEY`.
    Pkcs8(&'a str),
    /// Openssl's own, with the header `DEK-Info`.
    Traditional,
}

/// The first header of a section that openssl's traditional form encrypts (RFC 1421).
const TRADITIONAL_HEADER: &str = "Proc-Type: 4,ENCRYPTED";

#[cfg(test)]
mod tests {
    use super::*;

    mod read {
        use super::*;

        #[test]
        fn a_missing_file_is_named() {
            let error = Pem::read(Path::new("/nowhere/leaf.pem")).err().unwrap();
            assert!(error.to_string().starts_with("cannot read /nowhere/leaf.pem: "), "{error}");
        }
    }

    mod private_key {
        use super::*;

        fn error(text: &str) -> CredentialError {
            Pem::text("db7.key", text.as_bytes()).private_key().unwrap_err()
        }

        #[test]
        fn an_encrypted_key_is_said_to_need_its_passphrase() {
            let text = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n\
                -----END ENCRYPTED PRIVATE KEY-----\n";
            let error = error(text);
            assert!(matches!(error, CredentialError::EncryptedKey { .. }), "{error}");
        }

        #[test]
        fn a_key_of_the_traditional_form_is_said_to_need_conversion() {
            let text = "-----BEGIN EC PARAMETERS-----\nAAAA\n-----END EC PARAMETERS-----\n\
                -----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                DEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
            let text = error(text).to_string();
            assert!(
                text.ends_with("convert it: `openssl pkcs8 -topk8 -in db7.key -out FILE`"),
                "{text}"
            );
        }

        #[test]
        fn the_first_key_counts() {
            let plain = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
            let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n";
            let of = |text: &str| Pem::text("", text.as_bytes()).encryption().is_some();
            assert!(!of(plain) && of(encrypted));
            assert!(!of(&[plain, encrypted].concat()));
            assert!(of(&[encrypted, plain].concat()));
        }
    }

    mod certificates {
        use super::*;

        #[test]
        fn a_broken_section_is_named() {
            let pem = Pem::text("roots.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n");
            let error = pem.certificates().unwrap_err().to_string();
            assert_eq!(
                error,
                "roots.pem is broken PEM: its line -----END CERTIFICATE----- is missing, so the \
                file was cut off, or a part of it is gone"
            );
        }

        #[test]
        fn what_is_no_base64_is_told_without_its_bytes() {
            for (body, told) in [
                ("AA%A\n", "between a BEGIN and its END there is something that is no base64"),
                ("A\n", "between a BEGIN and its END there is something that is no base64"),
            ] {
                let text =
                    format!("-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n");
                let error = Pem::text("roots.pem", text.as_bytes()).certificates().unwrap_err();
                assert_eq!(error.to_string(), format!("roots.pem is broken PEM: {told}"));
            }
        }

        #[test]
        fn a_key_instead_is_named() {
            let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
            let error = Pem::text("roots.pem", key).certificates().unwrap_err().to_string();
            assert_eq!(error, "no certificate in roots.pem: it holds 1 PRIVATE KEY");
        }
    }
}

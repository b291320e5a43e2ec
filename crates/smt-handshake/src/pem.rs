// SPDX-License-Identifier: Apache-2.0 OR MIT
//! PEM text: where it comes from, and what it holds.
//!
//! Flow: 1. read a file, or take text  2. refuse it by name if a part of it would be passed over
//! (`sections`)  3. take the sections wanted out of it  4. if there are none, say what there is
//! instead: a key where certificates belong, an encrypted key, DER.
//! Not here: what certificates and keys mean (see `identity.rs`, `trust.rs`), opening encrypted
//! keys (`smt-pki`).

mod sections;

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, SubjectPublicKeyInfoDer,
};
use zeroize::Zeroizing;

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
        CredentialError::NotPem { place: self.place.clone(), reason: error.to_string() }
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

/// Why a certificate, key or root could not be used. All of it is local: a wrong path or file.
#[non_exhaustive]
#[derive(thiserror::Error)]
pub enum CredentialError {
    /// The operating system refused the file: check the path and its permissions.
    #[error("cannot read {}: {source}; check the path and its permissions", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The file is larger than any chain or bundle of roots: probably the wrong file.
    #[error(
        "{} has more than {PEM_FILE_LEN_MAX} bytes, so it is no PEM file; check the path",
        .path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A PEM section is broken: get the file again.
    #[error("{place} is broken PEM: {reason}")]
    NotPem {
        /// The file, or the name of the given text.
        place: String,
        /// The defect.
        reason: String,
    },
    /// A section is of a kind that is not read, and may be part of what is wanted: convert it.
    #[error(
        "{place} has a section {label}, which is not read here; {}", sections::advice(.label, .place)
    )]
    UnreadSection {
        /// The file, or the name of the given text.
        place: String,
        /// The section's label.
        label: String,
    },
    /// Which of several private keys is meant is not known: give one.
    #[error(
        "{place} has several private keys; give a file with the one that belongs to the certificate"
    )]
    SeveralKeys {
        /// The file, or the name of the given text.
        place: String,
    },
    /// The place holds something, but not what is wanted: give the file that does.
    #[error("no {wanted} in {place}: it holds {found}")]
    Missing {
        /// "certificate", "revocation list" or "private key".
        wanted: &'static str,
        /// The file, or the name of the given text.
        place: String,
        /// The contents that were found instead.
        found: String,
    },
    /// There are public keys and certificates in one place: give either.
    #[error("{place} has public keys and certificates; give either")]
    KeysAndCertificates {
        /// The file, or the name of the given text.
        place: String,
    },
    /// A certificate cannot be parsed or used.
    #[error("the certificate in {place} cannot be used: {reason}")]
    BadCertificate {
        /// The file, or the name of the given text.
        place: String,
        /// Why not.
        reason: String,
    },
    /// A revocation list cannot be parsed or used: give the list as its authority made it.
    #[error("the revocation list in {place} cannot be used: {reason}")]
    BadRevocationList {
        /// The file, or the name of the given text.
        place: String,
        /// Why not.
        reason: String,
    },
    /// Two revocation lists are of one authority: give the newer one alone.
    #[error(
        "{place} has a second revocation list of an authority beside that in {first}, and only one would be looked at: give one list that has all"
    )]
    TwoRevocationLists {
        /// The file of the second one, or the name of the given text.
        place: String,
        /// The file of the first one.
        first: String,
    },
    /// A private key cannot be parsed or is of a kind that TLS 1.3 here does not sign with.
    #[error(
        "the private key in {place} cannot be used: {reason}; ECDSA P-256, P-384, P-521, Ed25519 \
        and RSA of 2048 to 8192 bits work"
    )]
    BadKey {
        /// The file, or the name of the given text.
        place: String,
        /// Why not.
        reason: String,
    },
    /// The private key is encrypted (PKCS#8): find out its passphrase, and open it.
    #[error(
        "the private key in {place} is encrypted; give its passphrase (--passphrase-file, \
        `smt::pki::decrypt_key`), or take the encryption off: `openssl pkey -in {place} -out FILE`"
    )]
    EncryptedKey {
        /// The file, or the name of the given text.
        place: String,
    },
    /// The private key is encrypted in openssl's own form: convert it.
    #[error(
        "the private key in {place} is encrypted in openssl's traditional form (DEK-Info), which \
        protects it badly and is not read here; convert it: `openssl pkcs8 -topk8 -in {place} \
        -out FILE`"
    )]
    TraditionalEncryption {
        /// The file, or the name of the given text.
        place: String,
    },
    /// The private key is encrypted by a cipher or a key derivation that is not known here: convert
    /// it.
    #[error(
        "the private key in {place} is encrypted in a form that is not read here ({algorithms}); \
        convert it: `openssl pkey -in {place} -aes256 -out FILE`"
    )]
    UnknownEncryption {
        /// The file, or the name of the given text.
        place: String,
        /// Names or object identifiers of key derivation and cipher.
        algorithms: String,
    },
    /// The passphrase is another one, or the encrypted key is damaged.
    #[error("the passphrase does not open the private key in {place}, or the key is damaged")]
    WrongPassphrase {
        /// The file, or the name of the given text.
        place: String,
    },
    /// The key belongs to another certificate: give the pair that was made together.
    #[error(
        "the private key in {key_place} does not belong to the first certificate in \
        {certificate_place}"
    )]
    KeyMismatch {
        /// Where the certificate came from.
        certificate_place: String,
        /// Where the key came from.
        key_place: String,
    },
}

/// Its text, since that is what a `main` shows that returns it.
impl fmt::Debug for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
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
            assert!(error.starts_with("roots.pem is broken PEM: "), "{error}");
        }

        #[test]
        fn a_key_instead_is_named() {
            let key = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
            let error = Pem::text("roots.pem", key).certificates().unwrap_err().to_string();
            assert_eq!(error, "no certificate in roots.pem: it holds 1 PRIVATE KEY");
        }
    }
}

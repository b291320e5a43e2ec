// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why certificates, keys and revocation lists could not be used.

use std::fmt;
use std::path::PathBuf;

use crate::limits::PEM_FILE_LEN_MAX;

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
        "{place} has a section {label}, which is not read here; {}", advice(.label, .place)
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

/// How a section of this label in this place becomes one that is read.
fn advice(label: &str, place: &str) -> String {
    match label {
        "TRUSTED CERTIFICATE" => format!(
            "it may limit what its certificate is trusted for; if it is to be trusted for all, \
            `openssl x509 -in {place} -out FILE` converts it"
        ),
        "X509 CERTIFICATE" => format!("`openssl x509 -in {place} -out FILE` converts it"),
        "PKCS7" => {
            format!("`openssl pkcs7 -in {place} -print_certs -out FILE` takes its certificates out")
        }
        _ => "take it out of the file, or convert it".to_owned(),
    }
}

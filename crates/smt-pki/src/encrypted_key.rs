// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Private keys that a passphrase encrypts: PKCS#8's `ENCRYPTED PRIVATE KEY`, as `openssl genpkey`
//! and `openssl pkcs8 -topk8` write it (PBES2 with PBKDF2 or scrypt, and AES).
//!
//! Flow: 1. [`Pem::encryption`] tells that a key is encrypted  2. the application finds out the
//! passphrase  3. [`decrypt_key`] opens it.
//! Not here: openssl's traditional form (`DEK-Info`), which stretches a passphrase by one round of
//! MD5; older ciphers (3DES, RC2); asking anybody for a passphrase.

use pkcs8::pkcs5;
use pkcs8::{EncryptedPrivateKeyInfoRef, LineEnding, SecretDocument};
use smt_handshake::{CredentialError, KeyEncryption, Pem};

/// The private key in `pem`, opened; in a copy of its own, which has the same place for messages.
/// A key that is not encrypted is given as it is. Key and copies are zeroized.
///
/// # Errors
/// [`CredentialError::WrongPassphrase`], or [`CredentialError::UnknownEncryption`] if the form is
/// none that is opened here.
///
/// ```
/// # use smt_handshake::{Identity, Pem};
/// # fn of_files() -> Result<Identity, smt_handshake::CredentialError> {
/// let key = smt_pki::decrypt_key(Pem::read("db7.key".as_ref())?, b"open sesame")?;
/// Identity::from_pems(&Pem::read("db7.pem".as_ref())?, &key)
/// # }
/// ```
pub fn decrypt_key(pem: Pem, passphrase: &[u8]) -> Result<Pem, CredentialError> {
    let section = match pem.encryption() {
        None => return Ok(pem),
        Some(KeyEncryption::Traditional) => {
            return Err(CredentialError::TraditionalEncryption { place: pem.place().to_owned() });
        }
        Some(KeyEncryption::Pkcs8(section)) => section,
    };
    let place = || pem.place().to_owned();
    let key = open(section, passphrase).map_err(|refusal| match refusal {
        Refusal::NotPem(reason) => CredentialError::NotPem { place: place(), reason },
        Refusal::Passphrase => CredentialError::WrongPassphrase { place: place() },
        Refusal::Form => CredentialError::UnknownEncryption { place: place() },
    })?;
    let text = key.to_pem("PRIVATE KEY", LineEnding::LF);
    let text = text.map_err(|_| CredentialError::WrongPassphrase { place: place() })?;
    Ok(Pem::text(pem.place(), text.as_bytes()))
}

/// Why a key is not opened.
enum Refusal {
    Form,
    NotPem(String),
    Passphrase,
}

fn open(section: &str, passphrase: &[u8]) -> Result<SecretDocument, Refusal> {
    let (_, document) =
        SecretDocument::from_pem(section).map_err(|error| Refusal::NotPem(error.to_string()))?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes());
    // Forms that PKCS#5 version 2 does not know cannot be parsed.
    let encrypted = encrypted.map_err(|_| Refusal::Form)?;
    encrypted.decrypt(passphrase).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(
            pkcs5::Error::UnsupportedAlgorithm { .. } | pkcs5::Error::NoPbes1CryptSupport,
        ) => Refusal::Form,
        _ => Refusal::Passphrase,
    })
}

#[cfg(test)]
mod tests {
    mod decrypt_key {
        use super::super::*;

        /// A key of P-256 that `openssl pkcs8 -topk8` has encrypted by "open sesame".
        const KEY: &str = include_str!("../tests/encrypted.key");

        fn decrypt(text: &str, passphrase: &str) -> Result<Pem, CredentialError> {
            decrypt_key(Pem::text("db7.key", text.as_bytes()), passphrase.as_bytes())
        }

        #[test]
        fn the_right_passphrase_opens_a_key_among_other_sections() {
            let other =
                "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
            for text in [KEY.to_owned(), [other, KEY].concat(), KEY.replace('\n', "\r\n")] {
                let key = decrypt(&text, "open sesame").unwrap();
                assert_eq!(key.place(), "db7.key");
                key.private_key().unwrap();
            }
        }

        #[test]
        fn wrong_passphrases_are_told() {
            for passphrase in ["", "open sesam", "open sesame\n"] {
                let error = decrypt(KEY, passphrase).err().unwrap();
                assert!(matches!(error, CredentialError::WrongPassphrase { .. }), "{error}");
            }
        }

        #[test]
        fn a_key_cut_short_or_changed_is_no_panic() {
            let begun = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n";
            assert!(decrypt(begun, "x").is_err());
            let is_refused = |text: &str| {
                // A broken label leaves no key at all.
                let key = decrypt(text, "x").and_then(|key| key.private_key());
                assert!(key.is_err(), "{text}");
            };
            for place in 0..KEY.len() {
                let mut text = KEY.to_owned();
                text.replace_range(place..=place, "!");
                is_refused(&text);
                is_refused(&KEY[..place]);
            }
        }

        #[test]
        fn a_key_that_is_not_encrypted_stays() {
            let text = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
            decrypt(text, "").unwrap();
        }
    }
}

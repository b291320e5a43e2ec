// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Private keys that a passphrase encrypts: PKCS#8's `ENCRYPTED PRIVATE KEY`, as `openssl genpkey`
//! and `openssl pkcs8 -topk8` write it (PBES2 with PBKDF2 or scrypt, and AES).
//!
//! Flow: 1. [`Pem::encryption`] tells that a key is encrypted  2. the application finds out the
//! passphrase  3. [`decrypt_key`] opens it.
//! A pseudo-random function without the NULL that RFC 8018 B.1.2 puts behind it, as GnuTLS's
//! certtool writes it, is taken as one with it.
//! Not here: openssl's traditional form (`DEK-Info`), which stretches a passphrase by one round of
//! MD5; older ciphers (3DES, RC2); asking anybody for a passphrase.

use pkcs8::der::asn1::{Any, Null};
use pkcs8::der::{Decode, Encode};
use pkcs8::{EncryptedPrivateKeyInfoRef, LineEnding, ObjectIdentifier, SecretDocument, pkcs5};
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
        Refusal::Form(algorithms) => {
            CredentialError::UnknownEncryption { place: place(), algorithms }
        }
    })?;
    let text = key.to_pem("PRIVATE KEY", LineEnding::LF);
    let text = text.map_err(|_| CredentialError::WrongPassphrase { place: place() })?;
    Ok(Pem::text(pem.place(), text.as_bytes()))
}

/// Why a key is not opened.
enum Refusal {
    /// Algorithms that are not known, or do not go together.
    Form(String),
    NotPem(String),
    Passphrase,
}

fn open(section: &str, passphrase: &[u8]) -> Result<SecretDocument, Refusal> {
    let (_, document) =
        SecretDocument::from_pem(section).map_err(|error| Refusal::NotPem(error.to_string()))?;
    let document = document.as_bytes();
    let form = || Refusal::Form(algorithms(document));
    let completed = with_parameters_of_prf(document);
    let document = completed.as_deref().unwrap_or(document);
    // Forms that PKCS#5 version 2 does not know cannot be parsed.
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document).map_err(|_| form())?;
    encrypted.decrypt(passphrase).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(
            pkcs5::Error::UnsupportedAlgorithm { .. } | pkcs5::Error::NoPbes1CryptSupport,
        ) => form(),
        _ => Refusal::Passphrase,
    })
}

/// The same key with NULL behind the pseudo-random function, if that has no parameters (RFC 8018
/// appendices A.2 and B.1.2).
fn with_parameters_of_prf(document: &[u8]) -> Option<Vec<u8>> {
    let mut info = Vec::<Any>::from_der(document).ok()?;
    let mut scheme: Vec<Any> = info.first()?.decode_as().ok()?;
    let mut pbes2: Vec<Any> = scheme.get(1)?.decode_as().ok()?;
    let mut derivation: Vec<Any> = pbes2.first()?.decode_as().ok()?;
    let mut parameters: Vec<Any> = derivation.get(1)?.decode_as().ok()?;
    let mut prf: Vec<Any> = parameters.last()?.decode_as().ok()?;
    if prf.len() != 1 {
        return None;
    }
    prf.push(Any::encode_from(&Null).ok()?);
    *parameters.last_mut()? = Any::encode_from(&prf).ok()?;
    *derivation.get_mut(1)? = Any::encode_from(&parameters).ok()?;
    *pbes2.first_mut()? = Any::encode_from(&derivation).ok()?;
    *scheme.get_mut(1)? = Any::encode_from(&pbes2).ok()?;
    *info.first_mut()? = Any::encode_from(&scheme).ok()?;
    info.to_der().ok()
}

/// Names or object identifiers in the algorithm of an encrypted key.
fn algorithms(document: &[u8]) -> String {
    let scheme = Vec::<Any>::from_der(document).ok().and_then(|info| info.into_iter().next());
    let mut found = Vec::new();
    if let Some(scheme) = scheme {
        collect_ids(&scheme, &mut found);
    }
    let names: Vec<String> = found.iter().take(IDS_MAX).map(name).collect();
    if names.is_empty() { "without any algorithm".to_owned() } else { names.join(", ") }
}

/// Object identifiers in sequences in sequences: as deep as PBES2 has them.
fn collect_ids(element: &Any, found: &mut Vec<ObjectIdentifier>) {
    let mut waiting = vec![element.clone()];
    while let Some(element) = waiting.pop() {
        if let Ok(id) = element.decode_as::<ObjectIdentifier>() {
            found.push(id);
        } else if let Ok(members) = element.decode_as::<Vec<Any>>() {
            waiting.extend(members.into_iter().rev());
        }
    }
}

fn name(id: &ObjectIdentifier) -> String {
    let text = id.to_string();
    let name = match text.as_str() {
        "1.2.840.113549.1.5.3" => "MD5 and DES",
        "1.2.840.113549.1.5.12" => "PBKDF2",
        "1.2.840.113549.1.5.13" => "PBES2",
        "1.2.840.113549.1.12.1.1" => "PKCS#12's RC4",
        "1.2.840.113549.1.12.1.3" => "PKCS#12's 3DES",
        "1.2.840.113549.1.12.1.6" => "PKCS#12's RC2",
        "1.2.840.113549.3.2" => "RC2",
        "1.2.840.113549.3.7" => "3DES",
        "1.2.840.113549.2.7" => "HMAC with SHA-1",
        "1.2.840.113549.2.9" => "HMAC with SHA-256",
        "1.3.14.3.2.7" => "DES",
        "1.3.6.1.4.1.11591.4.11" => "scrypt",
        _ => return text,
    };
    name.to_owned()
}

/// A text stays one line.
const IDS_MAX: usize = 8;

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

        /// As certtool writes it: without the NULL behind the pseudo-random function.
        fn without_parameters_of_prf(key: &str) -> String {
            let (_, document) = SecretDocument::from_pem(key).unwrap();
            let decode = |element: &Any| element.decode_as::<Vec<Any>>().unwrap();
            let encode = |members: &Vec<Any>| Any::encode_from(members).unwrap();
            let mut levels = vec![Vec::<Any>::from_der(document.as_bytes()).unwrap()];
            for place in [0, 1, 0, 1] {
                let inner = decode(&levels.last().unwrap()[place]);
                levels.push(inner);
            }
            let last = levels.last_mut().unwrap().last_mut().unwrap();
            let mut prf = decode(last);
            assert_eq!(prf.len(), 2);
            prf.pop();
            *last = encode(&prf);
            for (depth, place) in [(3, 1), (2, 0), (1, 1), (0, 0)] {
                levels[depth][place] = encode(&levels[depth + 1]);
            }
            let document = SecretDocument::try_from(levels[0].to_der().unwrap()).unwrap();
            document.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF).unwrap().to_string()
        }

        #[test]
        fn a_pseudo_random_function_needs_no_parameters() {
            let text = without_parameters_of_prf(KEY);
            assert_ne!(text, KEY);
            decrypt(&text, "open sesame").unwrap().private_key().unwrap();
            let error = decrypt(&text, "open").err().unwrap();
            assert!(matches!(error, CredentialError::WrongPassphrase { .. }), "{error}");
        }

        #[test]
        fn an_unknown_form_is_told_by_its_algorithms() {
            let id = |text: &str| Any::encode_from(&ObjectIdentifier::new(text).unwrap()).unwrap();
            let scheme = Any::encode_from(&vec![id("1.2.840.113549.1.12.1.3")]).unwrap();
            let info = vec![scheme, Any::new(pkcs8::der::Tag::OctetString, vec![1]).unwrap()];
            let document = SecretDocument::try_from(info.to_der().unwrap()).unwrap();
            let text = document.to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF).unwrap();
            let error = decrypt(&text, "x").err().unwrap().to_string();
            assert!(error.contains("not read here (PKCS#12's 3DES)"), "{error}");
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

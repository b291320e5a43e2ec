// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kind of a private key in words, for the message about one that TLS does not sign with.

use rustls_pki_types::PrivateKeyDer;

use crate::der::{Elements, INTEGER, OBJECT_ID, OCTETS, SEQUENCE, first, object_id_text};

/// Algorithm, and size or curve, as far as the key's form tells.
pub(crate) fn text(key: &PrivateKeyDer<'_>) -> Option<String> {
    match key {
        PrivateKeyDer::Pkcs1(key) => rsa(key.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(key) => {
            let content = first(key.secret_sec1_der(), SEQUENCE)?;
            Some(curve(first(first(content, PARAMETERS)?, OBJECT_ID)?))
        }
        PrivateKeyDer::Pkcs8(key) => pkcs8(key.secret_pkcs8_der()),
        _ => None,
    }
}

/// PrivateKeyInfo (RFC 5208 §5).
fn pkcs8(key: &[u8]) -> Option<String> {
    let content = first(key, SEQUENCE)?;
    let algorithm = first(content, SEQUENCE)?;
    let mut ids = Elements(algorithm).filter(|(tag, _)| *tag == OBJECT_ID).map(|(_, id)| id);
    let id = object_id_text(ids.next()?);
    Some(match id.as_str() {
        "1.2.840.113549.1.1.1" => return rsa(first(content, OCTETS)?),
        "1.2.840.113549.1.1.10" => "RSA-PSS, and one of plain RSA is wanted".to_owned(),
        "1.2.840.10040.4.1" => "DSA".to_owned(),
        "1.2.840.10045.2.1" => return Some(curve(ids.next()?)),
        "1.3.101.110" => "X25519, which does not sign".to_owned(),
        "1.3.101.111" => "X448, which does not sign".to_owned(),
        "1.3.101.112" => "Ed25519".to_owned(),
        "1.3.101.113" => "Ed448".to_owned(),
        _ => format!("the algorithm {id}"),
    })
}

/// RSAPrivateKey (RFC 8017 appendix A.1.2).
fn rsa(key: &[u8]) -> Option<String> {
    let mut numbers = Elements(first(key, SEQUENCE)?).filter(|(tag, _)| *tag == INTEGER);
    let (_, modulus) = numbers.nth(1)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let significant = modulus.get(zeros..)?;
    let bits = significant.len() * 8 - significant.first()?.leading_zeros() as usize;
    Some(format!("RSA with {bits} bits"))
}

fn curve(id: &[u8]) -> String {
    let id = object_id_text(id);
    let name = match id.as_str() {
        "1.2.840.10045.3.1.1" => "P-192",
        "1.2.840.10045.3.1.7" => "P-256",
        "1.3.132.0.10" => "secp256k1",
        "1.3.132.0.33" => "P-224",
        "1.3.132.0.34" => "P-384",
        "1.3.132.0.35" => "P-521",
        _ => return format!("the curve {id}"),
    };
    format!("the curve {name}")
}

/// `parameters [0]` of an ECPrivateKey (RFC 5915 §3).
const PARAMETERS: u8 = 0xA0;

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

    fn element(tag: u8, content: &[&[u8]]) -> Vec<u8> {
        let content = content.concat();
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82], &length[..], &content].concat()
    }

    fn pkcs1(modulus: &[u8]) -> Vec<u8> {
        element(SEQUENCE, &[&element(INTEGER, &[&[0]]), &element(INTEGER, &[modulus])])
    }

    fn pkcs8_of(ids: &[&[u8]], key: &[u8]) -> PrivateKeyDer<'static> {
        let ids: Vec<u8> = ids.iter().flat_map(|id| element(OBJECT_ID, &[id])).collect();
        let (version, algorithm) = (element(INTEGER, &[&[0]]), element(SEQUENCE, &[&ids]));
        let key = element(OCTETS, &[key]);
        PrivatePkcs8KeyDer::from(element(SEQUENCE, &[&version, &algorithm, &key])).into()
    }

    const RSA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1];
    const RSA_PSS: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 10];
    const EC: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1];
    const SECP256K1: &[u8] = &[0x2B, 0x81, 0x04, 0, 10];

    #[test]
    fn keys_are_told_by_algorithm_and_size_or_curve() {
        let mut modulus = vec![0x80; 129];
        modulus[0] = 0;
        let small = pkcs1(&modulus);
        for (key, told) in [
            (PrivatePkcs1KeyDer::from(small.clone()).into(), "RSA with 1024 bits"),
            (pkcs8_of(&[RSA], &small), "RSA with 1024 bits"),
            (pkcs8_of(&[RSA_PSS], &small), "RSA-PSS, and one of plain RSA is wanted"),
            (pkcs8_of(&[EC, SECP256K1], &[]), "the curve secp256k1"),
            (pkcs8_of(&[&[0x2B, 101, 113]], &[]), "Ed448"),
            (pkcs8_of(&[&[0x2A, 3, 4]], &[]), "the algorithm 1.2.3.4"),
            (pkcs8_of(&[EC, &[0x2A, 3, 4]], &[]), "the curve 1.2.3.4"),
        ] {
            assert_eq!(text(&key).as_deref(), Some(told));
        }
        let parameters = element(PARAMETERS, &[&element(OBJECT_ID, &[SECP256K1])]);
        let sec1 = element(
            SEQUENCE,
            &[&element(INTEGER, &[&[1]]), &element(OCTETS, &[&[7]]), &parameters],
        );
        let sec1 = PrivateSec1KeyDer::from(sec1).into();
        assert_eq!(text(&sec1).as_deref(), Some("the curve secp256k1"));
    }

    #[test]
    fn a_key_that_is_cut_short_has_no_kind_and_does_no_harm() {
        let PrivateKeyDer::Pkcs8(whole) = pkcs8_of(&[RSA], &pkcs1(&[0x80; 128])) else {
            panic!("PKCS#8")
        };
        for end in 0..whole.secret_pkcs8_der().len() {
            let cut = PrivatePkcs8KeyDer::from(whole.secret_pkcs8_der()[..end].to_vec()).into();
            assert_eq!(text(&cut), None, "{end}");
        }
    }
}

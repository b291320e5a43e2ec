// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Signatures by the key of a certificate, in the form of TLS 1.3 (RFC 8446 §4.4.3) with contexts
//! of our own: 64 spaces, the context, a zero byte, what is signed.

use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;

/// The purpose of a signature. One for another purpose never verifies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Context {
    /// A server's ticket.
    Ticket,
    /// A client's proof in flight 1.
    Client,
}

/// A signature and the scheme that it was made by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Signature {
    pub(super) scheme: u16,
    pub(super) bytes: Vec<u8>,
}

impl Context {
    pub(super) fn message(self, content: &[u8]) -> Vec<u8> {
        let context: &[u8] = match self {
            Self::Ticket => b"SMT ticket v1",
            Self::Client => b"SMT ticket client",
        };
        [&[b' '; 64], context, &[0], content].concat()
    }
}

/// Signs with the key of a certificate.
///
/// # Errors
/// In words: the key has no scheme of TLS 1.3, or the library fails.
pub(super) fn sign(
    key: &CertifiedKey,
    context: Context,
    content: &[u8],
) -> Result<Signature, String> {
    let signer = key
        .key
        .choose_scheme(&SCHEMES)
        .ok_or("the certificate's key has no signature scheme of TLS 1.3")?;
    let bytes = signer.sign(&context.message(content));
    Ok(Signature {
        scheme: signer.scheme().into(),
        bytes: bytes.map_err(|error| error.to_string())?,
    })
}

/// Whether the key of a certificate made a signature.
pub(super) fn is_valid(
    algorithms: &WebPkiSupportedAlgorithms,
    certificate: &CertificateDer<'_>,
    context: Context,
    content: &[u8],
    signature: &Signature,
) -> bool {
    let scheme = SignatureScheme::from(signature.scheme);
    if !SCHEMES.contains(&scheme) {
        return false;
    }
    let Ok(leaf) = webpki::EndEntityCert::try_from(certificate) else {
        return false;
    };
    // TLS 1.3 ties each scheme to one curve: the first that the library lists.
    let of_scheme = algorithms.mapping.iter().find(|(of, _)| *of == scheme);
    let algorithm = of_scheme.and_then(|(_, algorithms)| algorithms.first());
    algorithm.is_some_and(|algorithm| {
        let message = context.message(content);
        let verified = leaf.verify_signature(*algorithm, &message, &signature.bytes);
        verified.is_ok()
    })
}

/// The schemes that TLS 1.3 permits for signatures over a handshake (RFC 8446 §4.2.3; ML-DSA by
/// its registered code points), as far as the library has them.
const SCHEMES: [SignatureScheme; 9] = [
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::ML_DSA_44,
    SignatureScheme::ML_DSA_65,
    SignatureScheme::ML_DSA_87,
];

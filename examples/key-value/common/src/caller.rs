// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The identity of a caller.

use x509_parser::parse_x509_certificate;

/// The common name of a certificate (DER); empty if there is none.
#[must_use]
pub fn common_name(certificate: &[u8]) -> String {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else {
        return String::new();
    };
    let name = certificate.subject().iter_common_name().next();
    name.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned()
}

// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The extensions of a certificate (RFC 5280 §4.2), and which of them keep it from being used.

use crate::der::{Elements, OBJECT_ID, OCTETS, SEQUENCE, first, object_id_text};

/// One extension.
pub(crate) struct Extension<'a> {
    /// The object identifier, in DER.
    pub(crate) id: &'a [u8],
    is_critical: bool,
    /// The extension's own DER.
    pub(crate) value: &'a [u8],
}

/// All extensions of a certificate in DER; `None` if it has none, or is no certificate.
pub(crate) fn extensions(certificate: &[u8]) -> Option<impl Iterator<Item = Extension<'_>>> {
    let to_be_signed = first(first(certificate, SEQUENCE)?, SEQUENCE)?;
    let all = first(first(to_be_signed, EXTENSIONS)?, SEQUENCE)?;
    Some(Elements(all).filter_map(|(_, extension)| {
        Some(Extension {
            id: first(extension, OBJECT_ID)?,
            is_critical: first(extension, BOOLEAN).is_some_and(|value| value != [0]),
            value: first(extension, OCTETS)?,
        })
    }))
}

/// The critical extensions that are not known here, in words: a certificate that has one must not
/// be used (RFC 5280 §4.2).
pub(crate) fn unknown_critical(certificate: &[u8]) -> Vec<String> {
    let unknown = extensions(certificate)
        .into_iter()
        .flatten()
        .filter(|extension| extension.is_critical && !is_known(extension.id));
    unknown.take(SHOWN_MAX).map(|extension| text(extension.id)).collect()
}

/// Whether webpki acts on it.
fn is_known(id: &[u8]) -> bool {
    // Key usage, alternative names, basic constraints, name constraints, distribution points of
    // revocation lists, extended key usage.
    matches!(id, [0x55, 0x1D, 15 | 17 | 19 | 30 | 31 | 37])
}

fn text(id: &[u8]) -> String {
    let name = match id {
        [0x55, 0x1D, 32] => "certificate policies, ",
        [0x55, 0x1D, 33] => "policy mappings, ",
        [0x55, 0x1D, 36] => "policy constraints, ",
        [0x55, 0x1D, 54] => "inhibit any policy, ",
        [0x2B, 6, 1, 5, 5, 7, 1, 24] => "TLS feature, ",
        _ => "",
    };
    format!("{name}{}", object_id_text(id))
}

const BOOLEAN: u8 = 0x01;
/// `extensions [3]` of a certificate.
const EXTENSIONS: u8 = 0xA3;
/// A text stays one line.
const SHOWN_MAX: usize = 8;

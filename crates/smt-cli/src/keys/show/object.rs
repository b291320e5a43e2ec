// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON objects of `smt keys show --json` (docs/CERTIFICATES.md).

use std::path::Path;

use serde_json::{Value, json};
use smt::pki::{CertificateText, PublicKeyText, RevocationListText, RevokedText};

/// A certificate that is valid for so many days more.
pub(super) fn certificate(path: &Path, place: usize, text: &CertificateText, days: i64) -> Value {
    json!({
        "schema": SCHEMA,
        "kind": "certificate",
        "file": path.display().to_string(),
        "place": place,
        "subject": text.subject,
        "issuer": text.issuer,
        "serial": text.serial,
        "names": text.names,
        "spiffe_id": text.spiffe_id,
        "not_before_s": text.not_before_s,
        "not_after_s": text.not_after_s,
        "days_left": days,
        "is_authority": text.is_authority,
        "purposes": text.purposes,
        "unknown_critical": text.unknown_critical,
        "key": text.key_kind,
        "fingerprint_sha256": text.fingerprint,
    })
}

/// A revocation list that is good for so many days more.
pub(super) fn list(path: &Path, place: usize, text: &RevocationListText, days: i64) -> Value {
    json!({
        "schema": SCHEMA,
        "kind": "revocation_list",
        "file": path.display().to_string(),
        "place": place,
        "issuer": text.issuer,
        "revoked": text.revoked.len(),
        "serials": text.revoked.iter().map(serial).collect::<Vec<_>>(),
        "next_update_s": text.next_update_s,
        "days_left": days,
    })
}

/// A public key without a certificate.
pub(super) fn key(path: &Path, place: usize, text: &PublicKeyText) -> Value {
    json!({
        "schema": SCHEMA,
        "kind": "public_key",
        "file": path.display().to_string(),
        "place": place,
        "key": text.key_kind,
        "fingerprint_sha256": text.fingerprint,
    })
}

fn serial(revoked: &RevokedText) -> Value {
    json!({ "serial": revoked.serial, "since_s": revoked.since_s })
}

/// Version of the JSON lines: changed when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

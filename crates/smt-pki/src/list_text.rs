// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The content of a revocation list, in words.

use std::fmt;

use smt_handshake::{CredentialError, Pem};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::{CertificateRevocationList, RevokedCertificate};

use crate::plan::DAY_S;
use crate::text::serial_text;

/// The content of a revocation list (RFC 5280 §5).
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RevocationListText {
    /// The authority whose certificates it is about.
    pub issuer: String,
    /// When it was made, UTC.
    pub this_update: String,
    /// The same in Unix seconds.
    pub this_update_s: i64,
    /// When the next list is due, UTC: from then on it lets nobody in.
    pub next_update: String,
    /// The same in Unix seconds; `None`: the list does not say, and is refused.
    pub next_update_s: Option<i64>,
    /// The certificates that it has, in its order.
    pub revoked: Vec<RevokedText>,
}

/// A certificate in a revocation list.
#[non_exhaustive]
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RevokedText {
    /// Its serial number in hexadecimal.
    pub serial: String,
    /// Since when it counts no more, UTC.
    pub since: String,
    /// The same in Unix seconds.
    pub since_s: i64,
}

impl RevocationListText {
    /// All lists of a PEM text, in order, or the one in DER; at least one.
    ///
    /// # Errors
    /// [`CredentialError`] says what was found instead, or what cannot be parsed.
    pub fn from_bytes(lists: &[u8]) -> Result<Vec<Self>, CredentialError> {
        let pem = Pem::text("the given text", lists);
        pem.revocation_lists()?.iter().map(|der| Self::from_der(der)).collect()
    }

    fn from_der(der: &[u8]) -> Result<Self, CredentialError> {
        let (_, list) = CertificateRevocationList::from_der(der).map_err(|error| {
            let place = "the given bytes".to_owned();
            CredentialError::BadRevocationList { place, reason: error.to_string() }
        })?;
        let next = list.next_update();
        Ok(Self {
            issuer: list.issuer().to_string().escape_debug().to_string(),
            this_update: list.last_update().to_string(),
            this_update_s: list.last_update().timestamp(),
            next_update: next.map_or_else(|| "not said".to_owned(), |next| next.to_string()),
            next_update_s: next.map(|next| next.timestamp()),
            revoked: list.iter_revoked_certificates().map(RevokedText::of).collect(),
        })
    }

    /// Whether the next list should be there soon: two thirds of this one's time are over.
    pub fn is_due(&self, now_s: i64) -> bool {
        let end = self.next_update_s.unwrap_or(self.this_update_s);
        let life = end.saturating_sub(self.this_update_s);
        now_s >= self.this_update_s.saturating_add(life / 3 * 2)
    }

    /// Whole days until the next list is due at a time in Unix seconds; negative after that.
    pub fn days_left(&self, now_s: i64) -> i64 {
        let left = self.next_update_s.map(|next| next.saturating_sub(now_s));
        left.unwrap_or(-1).div_euclid(DAY_S as i64)
    }
}

impl RevokedText {
    fn of(one: &RevokedCertificate<'_>) -> Self {
        Self {
            serial: serial_text(one.raw_serial()),
            since: one.revocation_date.to_string(),
            since_s: one.revocation_date.timestamp(),
        }
    }
}

impl fmt::Display for RevocationListText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "list of      {}", self.issuer)?;
        writeln!(f, "revoked      {}", self.revoked.len())?;
        for RevokedText { serial, since, .. } in &self.revoked {
            writeln!(f, "  serial     {serial}, since {since}")?;
        }
        writeln!(f, "made         {}", self.this_update)?;
        write!(f, "next due     {}", self.next_update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::CertificateAuthority;
    use crate::plan::{CertificatePlan, KeyKind, Validity};
    use crate::revocation_list::RevokedCertificates;
    use crate::text::CertificateText;

    #[test]
    fn a_list_tells_its_authority_its_days_and_the_serials_in_it() {
        let validity = Validity::days(800).unwrap();
        let authority = CertificateAuthority::new("test", validity, KeyKind::default()).unwrap();
        let gone = authority.issue(&CertificatePlan::client("gone").unwrap()).unwrap();
        let mut revoked = RevokedCertificates::default();
        let serial =
            CertificateText::from_pem(gone.certificate_pem.as_bytes()).unwrap().remove(0).serial;
        let gone = Pem::text("gone", gone.certificate_pem.as_bytes());
        authority.revoke(&gone, &mut revoked).unwrap();
        let list = authority.revocation_list(&revoked, Validity::days(7).unwrap()).unwrap();
        let [text] = &RevocationListText::from_bytes(list.as_bytes()).unwrap()[..] else {
            panic!("one")
        };
        assert_eq!((text.issuer.as_str(), text.revoked.len()), ("CN=test", 1));
        assert_eq!(text.revoked[0].serial, serial);
        assert!(text.to_string().contains(&format!("\n  serial     {serial}, since ")), "{text}");
        let end = text.next_update_s.unwrap();
        assert_eq!([text.days_left(end - 7 * 86_400), text.days_left(end + 1)], [7, -1]);
        assert!(!text.is_due(end - 3 * 86_400) && text.is_due(end - 2 * 86_400));
        assert_eq!(text.to_string().lines().count(), 5);
        assert!(RevocationListText::from_bytes(authority.certificate_pem().as_bytes()).is_err());
    }
}

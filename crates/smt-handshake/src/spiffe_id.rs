// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The name of a workload: a SPIFFE ID (SPIFFE-ID standard, §2).
//!
//! ```text
//!   spiffe://prod.example/billing/db
//!            └ trust domain┘└─ path ┘
//! ```
//! Not here: where certificates have it (`peer_certificate.rs`), and its verification
//! (`tls/verify_server_id.rs`).

use std::fmt;
use std::str::FromStr;

/// A valid SPIFFE ID. Two IDs are equal if they are the same bytes.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SpiffeId {
    text: String,
    /// Where the path begins.
    path_at: usize,
}

/// Why a text is no SPIFFE ID.
#[non_exhaustive]
#[derive(Clone, Copy, Eq, PartialEq, thiserror::Error)]
pub enum SpiffeIdError {
    /// The text does not begin with the scheme.
    #[error("caller: a SPIFFE ID begins with `spiffe://`, in lower case")]
    Scheme,
    /// The text has more bytes than an ID may have.
    #[error("caller: a SPIFFE ID has at most {ID_LEN_MAX} bytes")]
    TooLong,
    /// The trust domain is empty or too long, or has other letters.
    #[error(
        "caller: the trust domain of a SPIFFE ID has 1 to {TRUST_DOMAIN_LEN_MAX} bytes of a-z, 0-9, `.`, `-` and `_`, without user and port"
    )]
    TrustDomain,
    /// A segment of the path is empty, is `.` or `..`, or has other letters.
    #[error(
        "caller: the segments of a SPIFFE ID's path have letters, digits, `.`, `-` and `_`; none is empty, `.` or `..`, and neither query nor fragment follows"
    )]
    Path,
}

/// Its text, since that is what a `main` shows that returns it.
impl fmt::Debug for SpiffeIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl SpiffeId {
    /// Understands an ID.
    ///
    /// # Errors
    /// [`SpiffeIdError`] names the rule that is broken.
    pub fn parse(text: &str) -> Result<Self, SpiffeIdError> {
        if text.len() > ID_LEN_MAX {
            return Err(SpiffeIdError::TooLong);
        }
        let rest = text.strip_prefix(SCHEME).ok_or(SpiffeIdError::Scheme)?;
        let domain_len = rest.find('/').unwrap_or(rest.len());
        let (domain, path) = rest.split_at(domain_len);
        let has_length = (1..=TRUST_DOMAIN_LEN_MAX).contains(&domain.len());
        if !has_length || !domain.bytes().all(is_of_trust_domain) {
            return Err(SpiffeIdError::TrustDomain);
        }
        // Behind the first slash, which the split has left to the path.
        let mut segments = path.split('/').skip(1);
        if !segments.all(is_segment) {
            return Err(SpiffeIdError::Path);
        }
        Ok(Self { text: text.to_owned(), path_at: SCHEME.len() + domain_len })
    }

    /// Whether a text is meant as an ID, valid or not: no DNS name and no address looks like one.
    pub(crate) fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The whole ID.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The trust domain: `prod.example` of `spiffe://prod.example/db`.
    #[must_use]
    pub fn trust_domain(&self) -> &str {
        &self.text[SCHEME.len()..self.path_at]
    }

    /// The path with the slash before it, `/db`; empty if there is none.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.text[self.path_at..]
    }
}

impl FromStr for SpiffeId {
    type Err = SpiffeIdError;

    fn from_str(text: &str) -> Result<Self, SpiffeIdError> {
        Self::parse(text)
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_of_trust_domain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
}

fn is_segment(segment: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !matches!(segment, "" | "." | "..") && segment.bytes().all(is_plain)
}

const SCHEME: &str = "spiffe://";
/// Bytes of an ID, at most (SPIFFE-ID §2.3).
const ID_LEN_MAX: usize = 2_048;
/// Bytes of a trust domain, at most (SPIFFE-ID §2.3).
const TRUST_DOMAIN_LEN_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_trust_domain_and_a_path() {
        let id = SpiffeId::parse("spiffe://prod.example/billing/db-7").unwrap();
        assert_eq!((id.trust_domain(), id.path()), ("prod.example", "/billing/db-7"));
        let id: SpiffeId = "spiffe://prod_1".parse().unwrap();
        assert_eq!((id.trust_domain(), id.path()), ("prod_1", ""));
        assert_eq!(id.to_string(), "spiffe://prod_1");
    }

    #[test]
    fn each_rule_of_the_standard_is_named_when_it_is_broken() {
        use SpiffeIdError as E;
        for (text, error) in [
            ("https://a/b", E::Scheme),
            ("SPIFFE://a/b", E::Scheme),
            ("spiffe:/a/b", E::Scheme),
            ("spiffe://", E::TrustDomain),
            ("spiffe:///b", E::TrustDomain),
            ("spiffe://A/b", E::TrustDomain),
            ("spiffe://a:1/b", E::TrustDomain),
            ("spiffe://me@a/b", E::TrustDomain),
            ("spiffe://a%20/b", E::TrustDomain),
            ("spiffe://a?b", E::TrustDomain),
            ("spiffe://a/", E::Path),
            ("spiffe://a/b/", E::Path),
            ("spiffe://a//b", E::Path),
            ("spiffe://a/./b", E::Path),
            ("spiffe://a/b/..", E::Path),
            ("spiffe://a/b?c", E::Path),
            ("spiffe://a/b#c", E::Path),
            ("spiffe://a/b%41", E::Path),
            ("spiffe://a/ü", E::Path),
        ] {
            assert_eq!(SpiffeId::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn lengths_are_taken_up_to_the_limits_of_the_standard() {
        let domain = |len| format!("spiffe://{}", "a".repeat(len));
        assert!(SpiffeId::parse(&domain(255)).is_ok());
        assert_eq!(SpiffeId::parse(&domain(256)), Err(SpiffeIdError::TrustDomain));
        let whole = |len: usize| format!("spiffe://a/{}", "b".repeat(len - 11));
        assert!(SpiffeId::parse(&whole(2_048)).is_ok());
        assert_eq!(SpiffeId::parse(&whole(2_049)), Err(SpiffeIdError::TooLong));
    }
}

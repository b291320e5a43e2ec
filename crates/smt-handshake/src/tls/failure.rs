// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The meaning of TLS's errors for the people at either side: whose fault, what happened, what to
//! do.
//!
//! Three families: an alert (the peer refuses us), a certificate that we refuse, and the rest.
//! One rule for the fault: the side that refuses blames its peer, and the side that is refused is
//! told what to change (the caller).

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use smt_proto::key_exchange::{FailureKind, Fault, HandshakeFailure};
use smt_record::Side;

use crate::failure::{environment, malformed, nothing_common};
use crate::tls::verify_chain::ChainSignature;

/// Translates an error of TLS at `side`.
pub(crate) fn from_tls(error: &Error, side: Side) -> HandshakeFailure {
    let peer = side.peer();
    match error {
        Error::AlertReceived(alert) => alert_received(*alert, side),
        Error::InvalidCertificate(error) => refused(certificate(error, peer)),
        Error::NoCertificatesPresented => refused(format!(
            "the {peer} sent no certificate, and this {side} requires one; give the {peer} an \
            identity"
        )),
        Error::NoApplicationProtocol => nothing_common(format!(
            "the {peer} does not offer the protocol smt/1 in TLS (ALPN); is it another program?"
        )),
        Error::PeerIncompatible(error) => nothing_common(incompatible(error, side)),
        Error::FailedToGetCurrentTime | Error::FailedToGetRandomBytes => environment(format!(
            "this host has no clock or no randomness for TLS: {error}"
        )),
        other => malformed(format!(
            "the {peer} sent no valid TLS 1.3 handshake, or somebody forged a packet: {other}"
        )),
    }
}

/// Translates an alert that `side` received.
pub(crate) fn alert_received(alert: AlertDescription, side: Side) -> HandshakeFailure {
    use AlertDescription as A;
    let peer = side.peer();
    let refused = |reason: &str| format!("the {peer} refused this {side}'s certificate: {reason}");
    let text = match alert {
        A::UnknownCA => refused(&format!(
            "unknown ca; let the {peer} trust its authority, or use one issued by an authority \
            that it trusts"
        )),
        A::CertificateExpired => refused(&format!(
            "expired, or not yet valid by the {peer}'s clock; renew it, or set that clock"
        )),
        A::BadCertificate => refused(&format!(
            "bad certificate; a {peer} says so of a wrong name and of a damaged certificate; see \
            its log"
        )),
        A::UnsupportedCertificate => refused(&format!(
            "not made for a {side}; use one whose extended key usage allows that"
        )),
        A::AccessDenied => refused(&format!(
            "access denied; it is none of those that the {peer} has pinned"
        )),
        A::CertificateRevoked => refused("revoked; renew it"),
        A::CertificateUnknown => refused(&format!(
            "the {peer} gives no reason; it may trust another authority of the same name, see its \
            log"
        )),
        A::DecryptError => refused(&format!(
            "this {side} does not hold its private key, or packets were changed; give it the key \
            file of this certificate"
        )),
        A::CertificateRequired => format!(
            "the {peer} requires a certificate, and this {side} has none; give it an identity"
        ),
        A::HandshakeFailure => format!(
            "the {peer} found no cipher suite or key exchange group in common; allow one that it \
            has"
        ),
        A::ProtocolVersion => format!("the {peer} does not speak TLS 1.3; is it another program?"),
        A::NoApplicationProtocol => {
            format!("the {peer} does not speak smt/1 (ALPN); is it another program?")
        }
        A::CloseNotify => format!(
            "the {peer} gave this attempt up; its parameters and ours do not fit, see its log"
        ),
        other => {
            // The peer could not do or understand something.
            return HandshakeFailure {
                fault: Fault::Peer,
                kind: FailureKind::AlertReceived,
                text: format!("the {peer} ended the handshake with alert {other:?}; see its log"),
            };
        }
    };
    HandshakeFailure {
        fault: Fault::Caller,
        kind: FailureKind::AlertReceived,
        text,
    }
}

fn refused(text: String) -> HandshakeFailure {
    HandshakeFailure {
        fault: Fault::Peer,
        kind: FailureKind::CertificateRefused,
        text,
    }
}

fn certificate(error: &CertificateError, peer: Side) -> String {
    use CertificateError as C;
    let subject = format!("the {peer}'s certificate");
    match error {
        C::ExpiredContext { time, not_after } => {
            let ago = duration(time.as_secs().saturating_sub(not_after.as_secs()));
            format!("{subject} expired {ago} ago; renew it, or set this host's clock")
        }
        C::Expired => format!("{subject} has expired; renew it, or set this host's clock"),
        C::NotValidYetContext { time, not_before } => {
            let until = duration(not_before.as_secs().saturating_sub(time.as_secs()));
            format!(
                "{subject} is not yet valid: it begins in {until}; set this host's clock, or wait"
            )
        }
        C::NotValidYet => format!("{subject} is not yet valid; set this host's clock, or wait"),
        C::UnknownIssuer => format!(
            "{subject} comes from an unknown issuer; trust its authority here, or give the {peer} \
            a certificate of a trusted one, with all intermediates"
        ),
        // Bad signatures of chains are told as others: see `verify_chain.rs`.
        C::BadSignature => format!(
            "the {peer} does not hold the private key of the certificate that it shows: it is an \
            impostor, or has a wrong key file; find out which, and trust nothing that it says"
        ),
        // webpki finds roots by name: this is what another authority of a trusted one's name gives.
        C::Other(error) if ChainSignature::is_in(error) => format!(
            "{subject} is not signed by the trusted authority that it names; another authority of \
            the same name issued it, or it is damaged: trust that one, or renew it"
        ),
        C::NotValidForNameContext {
            expected,
            presented,
        } => format!(
            "the {peer} was called by the name {:?}, but its certificate is for {}; call it by a \
            name that it has, or give it a certificate with this one",
            expected.to_str(),
            names(presented)
        ),
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => format!(
            "{subject} is not made for a {peer}; give it one whose extended key usage allows that"
        ),
        C::ApplicationVerificationFailure => {
            format!("{subject} is none of the pinned ones; pin it, if it is known to be right")
        }
        C::Revoked => format!("{subject} is revoked; renew it"),
        other => format!("{subject} cannot be verified: {other}; renew it"),
    }
}

/// The names that a certificate has. webpki gives them as `DnsName("a.example")`.
fn names(presented: &[String]) -> String {
    let plain = presented.iter().map(|name| match name.split_once('(') {
        Some((_, rest)) => rest.trim_end_matches(')'),
        None => name.as_str(),
    });
    let plain: Vec<&str> = plain.collect();
    if plain.is_empty() {
        "no name at all".to_owned()
    } else {
        plain.join(", ")
    }
}

fn incompatible(error: &PeerIncompatible, side: Side) -> String {
    let peer = side.peer();
    match error {
        PeerIncompatible::NoCipherSuitesInCommon => {
            format!("the {peer} and this {side} have no cipher suite in common; allow one more")
        }
        PeerIncompatible::NoKxGroupsInCommon => {
            format!(
                "the {peer} and this {side} have no key exchange group in common; allow one more"
            )
        }
        other => format!("the {peer}'s TLS cannot do what this {side} needs: {other:?}"),
    }
}

/// A time span in its largest unit.
fn duration(seconds: u64) -> String {
    let units = [
        (86_400, "day"),
        (3_600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let (size, unit) = units
        .into_iter()
        .find(|(size, _)| seconds >= *size)
        .unwrap_or((1, "second"));
    let count = seconds / size;
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    mod duration {
        #[test]
        fn the_largest_unit_is_used() {
            let spans = [
                (0, "0 seconds"),
                (1, "1 second"),
                (119, "1 minute"),
                (7_200, "2 hours"),
            ];
            for (seconds, text) in spans {
                assert_eq!(super::duration(seconds), text);
            }
            assert_eq!(super::duration(3 * 86_400 + 5), "3 days");
        }
    }

    mod alert_received {
        use super::*;

        #[test]
        fn the_refused_certificate_is_named_with_reason_and_side() {
            let client = alert_received(AlertDescription::UnknownCA, Side::Client).text;
            assert!(
                client.starts_with("the server refused this client's certificate: unknown ca;")
            );
            let server = alert_received(AlertDescription::UnknownCA, Side::Server).text;
            assert!(
                server.starts_with("the client refused this server's certificate: unknown ca;")
            );
        }

        #[test]
        fn every_alert_has_one_line() {
            for code in 0..=255u8 {
                let failure = alert_received(AlertDescription::from(code), Side::Client);
                assert_eq!(failure.kind, FailureKind::AlertReceived);
                assert_eq!(failure.text.lines().count(), 1, "{}", failure.text);
            }
        }
    }
}

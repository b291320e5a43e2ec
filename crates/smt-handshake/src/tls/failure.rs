// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The meaning of TLS's errors for the people at either side: whose fault, what happened, what to
//! do.
//!
//! Three families: an alert (the peer refuses us), a certificate that we refuse
//! (`certificate_refusal.rs`), and the rest.
//! One rule for the fault: the side that refuses blames its peer, and the side that is refused is
//! told what to change (the caller).

use rustls::{AlertDescription, Error, PeerIncompatible};
use smt_proto::key_exchange::{FailureKind, Fault, HandshakeFailure};
use smt_record::Side;

use crate::failure::{environment, malformed, nothing_common};
use crate::tls::certificate_refusal;

/// Translates an error of TLS at `side`.
pub(crate) fn from_tls(error: &Error, side: Side) -> HandshakeFailure {
    let peer = side.peer();
    match error {
        Error::AlertReceived(alert) => alert_received(*alert, side),
        Error::InvalidCertificate(error) => refused(certificate_refusal::text(error, peer)),
        Error::InvalidCertRevocationList(error) => refused(certificate_refusal::list(error, peer)),
        Error::NoCertificatesPresented => refused(format!(
            "the {peer} sent no certificate, and this {side} requires one; give the {peer} an \
            identity"
        )),
        Error::NoApplicationProtocol => nothing_common(format!(
            "the {peer} does not offer the protocol smt/1 in TLS (ALPN); is it another program?"
        )),
        Error::PeerIncompatible(error) => nothing_common(incompatible(error, side)),
        Error::FailedToGetCurrentTime | Error::FailedToGetRandomBytes => {
            environment(format!("this host has no clock or no randomness for TLS: {error}"))
        }
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
            that it trusts; a {peer} without a present revocation list says so too"
        )),
        A::CertificateExpired => refused(&format!(
            "expired, or not yet valid by the {peer}'s clock; renew it, or set that clock"
        )),
        A::BadCertificate => refused(&format!(
            "bad certificate; a {peer} says so of a wrong name and of a damaged certificate: \
            `smt keys show` tells its names, and the {peer}'s log the reason"
        )),
        A::UnsupportedCertificate => refused(&format!(
            "not made for a {side}; use one whose extended key usage allows that, e.g. by \
            `smt keys {side}`"
        )),
        A::AccessDenied => {
            refused(&format!("access denied; it is none of those that the {peer} has pinned"))
        }
        A::CertificateRevoked => refused("revoked; renew it"),
        A::CertificateUnknown => refused(&format!(
            "the {peer} gives no reason but in its log; it may be an authority's certificate \
            (CA:TRUE, as `openssl req -x509` makes it: `smt keys show` tells), or the {peer} may \
            trust another authority of the same name"
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
            has. A {peer} says so too where one side shows a public key alone and the other wants \
            a certificate"
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
    HandshakeFailure { fault: Fault::Caller, kind: FailureKind::AlertReceived, text }
}

fn refused(text: String) -> HandshakeFailure {
    HandshakeFailure { fault: Fault::Peer, kind: FailureKind::CertificateRefused, text }
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
        PeerIncompatible::IncorrectCertificateTypeExtension
        | PeerIncompatible::UnsolicitedCertificateTypeExtension => format!(
            "the {peer} and this {side} do not both show or want certificates, or both a public \
            key alone; give both sides keys of one form"
        ),
        other => format!("the {peer}'s TLS cannot do what this {side} needs: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

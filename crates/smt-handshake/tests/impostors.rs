// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A peer with a certificate or a public key that is trusted, but without its private key, is
//! refused and told as what it is.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::sync::Arc;

use harness::{NAME, Outcome, run};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ResolvesClientCert};
use rustls::crypto::aws_lc_rs;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer};
use smt_handshake::{ClientAuth, ClientTls, Identity, ServerTls, Trust};
use smt_pki::{CertificatePlan, EphemeralCa, IssuedCertificate, KeyKind, RawKey};
use smt_proto::WallTime;
use smt_proto::key_exchange::{
    Attempt, ClientRequest, Failed, FailureKind, Fault, HandshakeFailure, Input, KeyExchange,
    KeyExchangeProvider, Step,
};
use smt_record::Suite;

/// One authority's certificates: the victim's, and another whose key the impostor has.
struct Certificates {
    authority: EphemeralCa,
    victim: IssuedCertificate,
    own: IssuedCertificate,
}

impl Certificates {
    fn of(plan: &CertificatePlan) -> Self {
        let authority = EphemeralCa::new().unwrap();
        let issue = || authority.authority().issue(plan).unwrap();
        Self { victim: issue(), own: issue(), authority }
    }

    /// Both ways to trust the victim.
    fn trusts(&self) -> [Trust; 2] {
        [
            self.authority.trust().unwrap(),
            Trust::pinned_from_pem(self.victim.certificate_pem.as_bytes()).unwrap(),
        ]
    }

    /// The victim's certificate with the impostor's key.
    fn stolen(&self) -> CertifiedKey {
        let certificate =
            CertificateDer::from_pem_slice(self.victim.certificate_pem.as_bytes()).unwrap();
        with_key(certificate, &self.own.key_pem)
    }
}

/// A leaf with a private key, which need not be its own.
fn with_key(leaf: CertificateDer<'static>, key_pem: &str) -> CertifiedKey {
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap();
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key).unwrap();
    CertifiedKey::new(vec![leaf], key)
}

/// A peer that shows a certificate or a public key whose private key it does not have.
struct Impostor {
    as_client: Arc<dyn ResolvesClientCert>,
    as_server: Arc<dyn ResolvesServerCert>,
    /// For the server's certificate, which is honest.
    trust: rustls::RootCertStore,
}

impl Impostor {
    fn new(certificates: &Certificates) -> Self {
        let certified = Arc::new(SingleCertAndKey::from(certificates.stolen()));
        let trust = roots(&certificates.authority);
        Self { as_client: Arc::clone(&certified) as _, as_server: certified, trust }
    }

    /// One that shows this public key (RFC 7250), and knows servers by this authority.
    fn with_public_key(victim: &RawKey, authority: &EphemeralCa) -> Self {
        let own = RawKey::new(KeyKind::default()).unwrap();
        let shown = SubjectPublicKeyInfoDer::from_pem_slice(victim.public_key_pem.as_bytes());
        let leaf = CertificateDer::from(shown.unwrap().to_vec());
        let stolen = Arc::new(with_key(leaf, &own.key_pem));
        Self {
            as_client: Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&stolen))),
            as_server: Arc::new(AlwaysResolvesServerRawPublicKeys::new(stolen)),
            trust: roots(authority),
        }
    }
}

fn roots(authority: &EphemeralCa) -> rustls::RootCertStore {
    let mut roots = rustls::RootCertStore::empty();
    let root = authority.authority().certificate_pem();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap()).unwrap();
    roots
}

impl KeyExchangeProvider for Impostor {
    fn client(&self, request: ClientRequest<'_>) -> Result<Attempt, HandshakeFailure> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(self.trust.clone())
            .with_client_cert_resolver(Arc::clone(&self.as_client));
        config.alpn_protocols = vec![b"smt/1".to_vec()];
        let name = ServerName::try_from(request.server_name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        Ok(attempt(connection.into()))
    }

    fn server(&self, _: &[u8], _: Option<WallTime>) -> Result<Attempt, HandshakeFailure> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.as_server));
        config.alpn_protocols = vec![b"smt/1".to_vec()];
        config.send_tls13_tickets = 0;
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        Ok(attempt(connection.into()))
    }
}

fn attempt(connection: Connection) -> Attempt {
    Attempt {
        kind: smt_wire::KeyExchange::Tls13,
        suites: Suite::ALL.to_vec(),
        key: None,
        early_max: 0,
        exchange: Box::new(Plain(connection)),
    }
}

/// TLS without any of SMT's checks.
struct Plain(Connection);

impl Plain {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), rustls::Error> {
        while !bytes.is_empty() {
            self.0.read_tls(&mut bytes).unwrap();
            self.0.process_new_packets()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Option<Vec<u8>> {
        let mut flight = Vec::new();
        while self.0.wants_write() {
            self.0.write_tls(&mut flight).unwrap();
        }
        (!flight.is_empty()).then_some(flight)
    }
}

impl KeyExchange for Plain {
    fn step(&mut self, input: Input<'_>) -> Result<Step, Failed> {
        let taken = match input {
            Input::Begin { .. } => Ok(()),
            Input::Flight { bytes, .. } => self.take(bytes),
        };
        let send = self.send();
        match taken {
            Ok(()) => Ok(Step { send, ..Step::default() }),
            Err(error) => Err(Failed {
                failure: HandshakeFailure {
                    fault: Fault::Peer,
                    kind: FailureKind::Other,
                    text: error.to_string(),
                },
                alert: send,
            }),
        }
    }
}

#[track_caller]
fn assert_impostor(failure: &HandshakeFailure, text: &str) {
    assert_eq!(failure.kind, FailureKind::CertificateRefused, "{failure}");
    assert_eq!(failure.fault, Fault::Peer);
    assert!(failure.text.starts_with(text), "{failure}");
    assert!(failure.text.contains("impostor"), "{failure}");
}

mod server {
    use super::*;

    fn outcomes() -> Vec<Outcome> {
        let certificates = Certificates::of(&CertificatePlan::server(&[NAME]).unwrap());
        let impostor = Impostor::new(&certificates);
        certificates
            .trusts()
            .map(|trust| run(&ClientTls::new(trust).build().unwrap(), &impostor))
            .into()
    }

    // SMT [6.1-8], [6.1-18]
    #[test]
    fn one_without_the_key_of_its_pinned_or_signed_certificate_is_refused_as_an_impostor() {
        for outcome in outcomes() {
            assert_impostor(
                &outcome.client_failure(),
                "the server does not hold the private key of the certificate that it shows",
            );
        }
    }

    // SMT [6.1-8], [6.1-27]
    #[test]
    fn one_without_the_private_key_of_its_pinned_public_key_is_refused_as_an_impostor() {
        let victim = RawKey::new(KeyKind::default()).unwrap();
        let trust = Trust::pinned_from_pem(victim.public_key_pem.as_bytes()).unwrap();
        let impostor = Impostor::with_public_key(&victim, &EphemeralCa::new().unwrap());
        let outcome = run(&ClientTls::new(trust).build().unwrap(), &impostor);
        assert_impostor(
            &outcome.client_failure(),
            "the server does not hold the private key of the certificate that it shows",
        );
    }

    // SMT [6.1-8]
    #[test]
    fn it_learns_that_its_signature_does_not_verify() {
        for outcome in outcomes() {
            let told = outcome.server_failure().text;
            assert!(told.contains("DecryptError"), "{told}");
        }
    }
}

mod client {
    use super::*;

    fn run_with_auth(auth: fn(Trust) -> ClientAuth) -> Vec<Outcome> {
        let certificates = Certificates::of(&CertificatePlan::client("c").unwrap());
        let impostor = Impostor::new(&certificates);
        let pair = certificates
            .authority
            .authority()
            .issue(&CertificatePlan::server(&[NAME]).unwrap())
            .unwrap();
        let identity =
            Identity::from_pem(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes()).unwrap();
        let server = |trust| ServerTls::new(identity.clone()).with_client_auth(auth(trust));
        certificates.trusts().map(|trust| run(&impostor, &server(trust).build().unwrap())).into()
    }

    // SMT [6.1-8]
    #[test]
    fn one_without_the_key_of_its_pinned_or_signed_certificate_is_refused_as_an_impostor() {
        for auth in [ClientAuth::Required, ClientAuth::Optional] {
            for outcome in run_with_auth(auth) {
                assert_impostor(
                    &outcome.server_failure(),
                    "the client does not hold the private key of the certificate that it shows",
                );
            }
        }
    }
    // SMT [6.1-8], [6.1-27]
    #[test]
    fn one_without_the_private_key_of_its_pinned_public_key_is_refused_as_an_impostor() {
        let victim = RawKey::new(KeyKind::default()).unwrap();
        let authority = EphemeralCa::new().unwrap();
        let plan = CertificatePlan::server(&[NAME]).unwrap();
        let pair = authority.authority().issue(&plan).unwrap();
        let identity =
            Identity::from_pem(pair.certificate_pem.as_bytes(), pair.key_pem.as_bytes()).unwrap();
        let clients = Trust::pinned_from_pem(victim.public_key_pem.as_bytes()).unwrap();
        let server = ServerTls::new(identity).with_client_auth(ClientAuth::Required(clients));
        let impostor = Impostor::with_public_key(&victim, &authority);
        let outcome = run(&impostor, &server.build().unwrap());
        assert_impostor(
            &outcome.server_failure(),
            "the client does not hold the private key of the certificate that it shows",
        );
    }
}

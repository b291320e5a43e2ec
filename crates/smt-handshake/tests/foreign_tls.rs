// SPDX-License-Identifier: Apache-2.0 OR MIT
//! TLS peers that are no SMT: another protocol or none by ALPN, or application data through TLS.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod harness;

use std::io::Write as _;
use std::sync::Arc;

use harness::{Flight, NAME, Side, providers};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use smt_handshake::{Algorithms, ClientTls, ServerTls};
use smt_pki::{CertificatePlan, EphemeralCa};
use smt_proto::key_exchange::{FailureKind, HandshakeFailure};

fn foreign_client(authority: &EphemeralCa, alpn: &[&[u8]]) -> ClientConnection {
    let pem = authority.authority().certificate_pem();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    ClientConnection::new(Arc::new(config), ServerName::try_from(NAME).unwrap()).unwrap()
}

fn foreign_server(authority: &EphemeralCa, alpn: &[&[u8]]) -> ServerConnection {
    let pair = authority.authority().issue(&CertificatePlan::server(&[NAME]).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.send_half_rtt_data = true;
    ServerConnection::new(Arc::new(config)).unwrap()
}

mod server {
    use super::*;

    #[test]
    fn refuses_another_protocol_and_none_by_the_same_alert() {
        let authority = EphemeralCa::new().unwrap();
        let identity = authority.server(&[NAME]).unwrap();
        let provider = ServerTls::new(identity).build().unwrap();
        let (any_client, _) = providers(&Algorithms::default(), &Algorithms::default());
        let client_params = Side::client(&any_client).params;
        for alpn in [&[][..], &[b"h2".as_slice()]] {
            let mut client = foreign_client(&authority, alpn);
            let mut hello = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut hello).unwrap();
            }
            let mut server = Side::server(&provider, &client_params).unwrap();
            let hello = Flight::of(1, &client_params, &hello);
            let failure = server.receive(&hello).unwrap_err();
            assert_eq!(failure.kind, FailureKind::NoCommonParameters);
            assert!(failure.text.contains("smt/1"), "{failure}");
            let alert = server.flight(2).unwrap();
            client.read_tls(&mut alert.bytes.as_slice()).unwrap();
            let error = client.process_new_packets().unwrap_err();
            let no_protocol = rustls::AlertDescription::NoApplicationProtocol;
            assert_eq!(error, rustls::Error::AlertReceived(no_protocol));
            server.receive(&hello).unwrap_err();
            assert!(server.flight(2).is_none(), "nothing of TLS follows the alert");
        }
    }
}

mod client {
    use super::*;

    /// Our client's view of a foreign server's flight 2.
    fn meet(alpn: &[&[u8]], data: &[u8]) -> (Side, Result<(), HandshakeFailure>) {
        let authority = EphemeralCa::new().unwrap();
        let provider = ClientTls::new(authority.trust().unwrap()).build().unwrap();
        let mut client = Side::client(&provider);
        let mut server = foreign_server(&authority, alpn);
        server.read_tls(&mut client.flight(1).unwrap().bytes.as_slice()).unwrap();
        server.process_new_packets().unwrap();
        server.writer().write_all(data).unwrap();
        let mut flight = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut flight).unwrap();
        }
        let server_params = Side::client(&provider).params;
        let result = client.receive(&Flight::of(2, &server_params, &flight));
        (client, result)
    }

    // SMT [6.1-2]
    #[test]
    fn takes_a_foreign_server_that_speaks_smt() {
        let (mut client, result) = meet(&[b"smt/1"], b"");
        result.unwrap();
        assert!(client.finished().is_some());
    }

    // SMT [6.1-2]
    #[test]
    fn refuses_a_server_that_names_no_protocol() {
        let (mut client, result) = meet(&[], b"");
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::NoCommonParameters);
        assert!(failure.text.contains("smt/1"), "{failure}");
        assert!(client.finished().is_none());
    }

    // SMT [6.1-23]
    #[test]
    fn refuses_application_data() {
        let (mut client, result) = meet(&[b"smt/1"], b"hello");
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed);
        assert_eq!(failure.text, "the server sent application data through TLS");
        assert!(client.finished().is_none());
        assert!(client.flight(3).is_none());
    }
}

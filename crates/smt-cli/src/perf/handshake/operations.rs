// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The paper's Table I: the time of each operation of a TLS 1.3 handshake, with rustls and AWS-LC
//! as SMT uses them, by ECDSA P-256 and RSA-2048, and by chains of one to three certificates.
//!
//! Client and server of a handshake are two values in one thread, without a network. The provider
//! times what the library asks it for; the rest of a step is parsing and encoding, and rows that
//! the library does not tell apart stand together.

mod chain;
mod clock;
mod timed_library;

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConfig,
    ServerConnection, SideData,
};
use serde_json::json;

use self::chain::{Chain, ChainKeys};
use self::clock::{Operation, Step, step};
use self::timed_library::{Timed, TimedIdentity, provider};
use super::{NAME, micros, say};
use crate::failure::Failure;

/// The rows, with the paper's microseconds by ECDSA and by RSA where it tells them.
const ROWS: [Row; 19] = [
    row("S1", "server: process CHLO", "1.8", ""),
    row("S2.1", "key generation", "67.9", ""),
    row("S2.2", "ECDH exchange", "265.0", ""),
    row("S2.3, S2.4", "SHLO, EE and certificate encoding", "88.8", ""),
    row("S2.5", "CertVerify generation", "137.6", "1344.0"),
    row("S2.6", "secret derivation", "48.6", ""),
    row("S3", "process Finished", "44.4", ""),
    row("", "the client's chain (mutual)", "", ""),
    row("", "the client's CertVerify (mutual)", "", ""),
    row("C1.1", "client: key generation", "61.3", ""),
    row("C1.2", "the rest of CHLO", "5.5", ""),
    row("C2.1", "process SHLO", "2.6", ""),
    row("C2.2", "ECDH exchange", "88.7", ""),
    row("C2.3", "secret derivation", "48.8", ""),
    row("C3.1", "certificate decoding", "0.1", ""),
    row("C3.2", "certificate verification", "483.4", ""),
    row("C4.1, C4.2", "CertVerify verification", "197.7", "68.5"),
    row("", "own CertVerify generation (mutual)", "", ""),
    row("C5", "process Finished", "42.6", ""),
];

struct Row {
    id: &'static str,
    operation: &'static str,
    paper: [&'static str; 2],
}

const fn row(
    id: &'static str,
    operation: &'static str,
    by_ecdsa: &'static str,
    by_rsa: &'static str,
) -> Row {
    Row { id, operation, paper: [by_ecdsa, by_rsa] }
}

/// Measures and prints the table.
pub(super) fn report(samples: u32, is_mutual: bool, is_json: bool) -> Result<(), Failure> {
    let columns = [
        (ChainKeys::EcdsaP256, 1),
        (ChainKeys::Rsa2048, 1),
        (ChainKeys::EcdsaP256, 2),
        (ChainKeys::EcdsaP256, 3),
        (ChainKeys::Rsa2048, 2),
        (ChainKeys::Rsa2048, 3),
    ];
    let measured =
        columns.map(|(kind, length)| Peers::new(kind, length, is_mutual)?.medians(samples));
    let [ecdsa, rsa, ecdsa_2, ecdsa_3, rsa_2, rsa_3] = measured;
    let [ecdsa, rsa] = [ecdsa?, rsa?];
    let of_chains = [[&ecdsa_2?, &ecdsa_3?], [&rsa_2?, &rsa_3?]];
    if is_json {
        return report_json([&ecdsa, &rsa], of_chains);
    }
    say(&format!(
        "Table I of the paper: us of each operation of a TLS 1.3 handshake{}\n\n{:<12}{:<36}{:>8}{:>9}{:>14}{:>11}",
        if is_mutual { ", both show certificates" } else { "" },
        "",
        "",
        "ECDSA",
        "RSA",
        "paper, ECDSA",
        "RSA",
    ))?;
    for (row, times) in ROWS.iter().zip(ecdsa.iter().zip(&rsa)) {
        let (id, operation, [by_ecdsa, by_rsa]) = (row.id, row.operation, row.paper);
        let (ecdsa, rsa) = (micros(*times.0), micros(*times.1));
        if row.id.is_empty() && !is_mutual {
            continue;
        }
        say(&format!("{id:<12}{operation:<36}{ecdsa:>8.1}{rsa:>9.1}{by_ecdsa:>14}{by_rsa:>11}"))?;
    }
    for (length, at) in [(2, 0), (3, 1)] {
        let [ecdsa, rsa] = of_chains.map(|chains| micros(chains[at][VERIFICATION]));
        let operation = format!("the same, {length} certificates");
        say(&format!("{:<12}{operation:<36}{ecdsa:>8.1}{rsa:>9.1}", "C3.2"))?;
    }
    Ok(())
}

fn report_json(columns: [&Times; 2], of_chains: [[&Times; 2]; 2]) -> Result<(), Failure> {
    for (at, row) in ROWS.iter().enumerate() {
        let [ecdsa, rsa] = columns.map(|times| micros(times[at]));
        let line = json!({
            "id": row.id, "operation": row.operation, "ecdsa_us": ecdsa, "rsa_us": rsa,
            "paper_ecdsa_us": row.paper[0].parse::<f64>().ok(),
            "paper_rsa_us": row.paper[1].parse::<f64>().ok(),
        });
        say(&line.to_string())?;
    }
    for (length, at) in [(2, 0), (3, 1)] {
        let [ecdsa, rsa] = of_chains.map(|chains| micros(chains[at][VERIFICATION]));
        let line = json!({
            "id": "C3.2", "certificates": length, "ecdsa_us": ecdsa, "rsa_us": rsa,
        });
        say(&line.to_string())?;
    }
    Ok(())
}

/// The times of all rows.
type Times = [Duration; ROWS.len()];

/// The row of the certificate's verification.
const VERIFICATION: usize = 15;

/// The configurations of both sides.
struct Peers {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Peers {
    fn new(kind: ChainKeys, length: usize, is_mutual: bool) -> Result<Self, Failure> {
        let chain = Chain::new(kind, length)?;
        let provider = Arc::new(provider());
        let mut roots = RootCertStore::empty();
        roots.add(chain.authority.clone())?;
        let roots = Arc::new(roots);
        let key = provider.key_provider.load_private_key(chain.key)?;
        let identity = Arc::new(TimedIdentity::new(chain.certificates, key));
        let of_client = is_mutual.then(|| Arc::clone(&identity));
        Ok(Self {
            client: client_config(&provider, &roots, of_client)?,
            server: server_config(&provider, &roots, identity, is_mutual)?,
        })
    }

    /// The median of each row.
    fn medians(&self, samples: u32) -> Result<Times, Failure> {
        // The first handshake pays for tables and pages that the others find.
        self.handshake()?;
        let all = (0..samples.max(1)).map(|_| self.handshake());
        let all = all.collect::<Result<Vec<_>, _>>()?;
        Ok(std::array::from_fn(|row| {
            let mut times: Vec<_> = all.iter().map(|times| times[row]).collect();
            times.sort();
            times[times.len() / 2]
        }))
    }

    fn handshake(&self) -> Result<Times, Failure> {
        let name = ServerName::try_from(NAME).map_err(|_| Failure::new("a bad server name"))?;
        let (begun, hello) = step(|| {
            let mut client = ClientConnection::new(Arc::clone(&self.client), name)?;
            let flight = taken(&mut client)?;
            Ok::<_, Failure>((client, flight))
        });
        let (mut client, flight) = begun?;
        let mut server = ServerConnection::new(Arc::clone(&self.server))?;
        let (flight, answer) = step(|| received(&mut server, &flight));
        let (flight, finish) = step(|| received(&mut client, &flight?));
        let (rest, end) = step(|| received(&mut server, &flight?));
        rest?;
        if client.is_handshaking() || server.is_handshaking() {
            return Err(Failure::new("a handshake did not come to its end"));
        }
        Ok(times([&hello, &answer, &finish, &end]))
    }
}

/// The rows of one handshake's steps.
fn times([hello, answer, finish, end]: [&Step; 4]) -> Times {
    use Operation::{
        Agreement, ChainVerification, Decoding, Derivation, KeyGeneration, Resolution,
        SignatureVerification, Signing,
    };
    let generation = hello.of(KeyGeneration);
    let processing = answer.until(Resolution);
    let parts = [KeyGeneration, Agreement, Signing, Derivation].map(|part| answer.of(part));
    let encoding = answer.total().saturating_sub(processing + parts.iter().sum::<Duration>());
    let [key, agreement, signing, derivation] = parts;
    let [chain, signature] = [ChainVerification, SignatureVerification].map(|part| end.of(part));
    let own = finish.of(Signing);
    [
        processing,
        key,
        agreement,
        encoding,
        signing,
        derivation,
        end.total().saturating_sub(chain + signature),
        chain,
        signature,
        generation,
        hello.total().saturating_sub(generation),
        finish.until(Agreement),
        finish.of(Agreement),
        finish.of_before(Derivation, ChainVerification),
        finish.of(Decoding),
        finish.of(ChainVerification),
        finish.between(ChainVerification, SignatureVerification) + finish.of(SignatureVerification),
        own,
        finish.since(SignatureVerification).saturating_sub(own),
    ]
}

/// Hands over what the peer has sent. Returns the answer.
fn received<S: SideData>(
    connection: &mut ConnectionCommon<S>,
    mut flight: &[u8],
) -> Result<Vec<u8>, Failure> {
    while !flight.is_empty() {
        connection.read_tls(&mut flight)?;
        connection.process_new_packets()?;
    }
    taken(connection)
}

fn taken<S: SideData>(connection: &mut ConnectionCommon<S>) -> Result<Vec<u8>, Failure> {
    let mut flight = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut flight)?;
    }
    Ok(flight)
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    identity: Option<Arc<TimedIdentity>>,
) -> Result<Arc<ClientConfig>, Failure> {
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider));
    let verifier = verifier.build().map_err(unusable)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Timed::<Arc<dyn ServerCertVerifier>>(verifier)));
    let mut config = match identity {
        Some(identity) => builder.with_client_cert_resolver(identity),
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    identity: Arc<TimedIdentity>,
    is_mutual: bool,
) -> Result<Arc<ServerConfig>, Failure> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&[&TLS13])?;
    let builder = match is_mutual {
        true => {
            let (roots, provider) = (Arc::clone(roots), Arc::clone(provider));
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(Arc::new(Timed(verifier.map_err(unusable)?)))
        }
        false => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(identity);
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("a certificate verifier could not be made: {error}"))
}

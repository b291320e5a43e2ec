// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The connection to a device: TLS 1.3 with raw public keys (RFC 7250). The device accepts it, and
//! its vendor or manufacturer connects.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, ConnectionCommon, DigitallySignedStruct,
    DistinguishedName, Error, PeerIncompatible, ServerConfig, ServerConnection, SignatureScheme,
    StreamOwned,
};
use zeroize::Zeroizing;

use crate::KEY_LEN;
use crate::error::BootstrapError;
use crate::message::{Binding, MESSAGE_LEN_MAX};

/// A public key of Ed25519 as SubjectPublicKeyInfo is 12 fixed bytes and the key (RFC 8410).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];
/// A private key as PKCS #8 is 16 fixed bytes and the seed.
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
const LABEL: &[u8] = b"EXPORTER-SMT-bootstrap";

/// A peer has so many seconds for the whole handshake: whoever connects to a device may be anybody.
const ACCEPT_SECONDS: u64 = 5;
/// Seconds for a handshake at the end that connects, which idle strangers before it keep waiting.
const CONNECT_SECONDS: u64 = 60;
/// A proven peer's time for a message. Its TPM may take seconds to make a key.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(90);

/// A connection whose ends have proved their keys.
pub struct Connection<C> {
    stream: C,
    /// The other end's key, and bytes that only this connection's ends have.
    pub binding: Binding,
}

/// The end that connects: a vendor or a manufacturer.
pub type ConnectingEnd = Connection<StreamOwned<ClientConnection, TcpStream>>;
/// The end that accepts: a device.
pub type AcceptingEnd = Connection<StreamOwned<ServerConnection, TcpStream>>;

/// Connects with this seed of the own key. The device proves some key; what it sends then says
/// whose it is.
///
/// # Errors
/// [`BootstrapError::Tls`], [`BootstrapError::Connection`].
pub fn connect(socket: TcpStream, seed: &[u8; 32]) -> Result<ConnectingEnd, BootstrapError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let resolver = AlwaysResolvesClientRawPublicKeys::new(certified(seed)?);
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(RawKey::of_any(&provider)))
        .with_client_cert_resolver(Arc::new(resolver));
    // The name is sent, and nobody looks at it: keys are what counts.
    let name = ServerName::try_from("device.invalid").map_err(|_| Error::General(String::new()))?;
    let mut connection = ClientConnection::new(Arc::new(config), name)?;
    let mut socket = socket;
    shake_hands(&mut connection, &mut socket, CONNECT_SECONDS)?;
    let binding = binding(&connection, connection.export_keying_material([0; 32], LABEL, None)?)?;
    Ok(Connection { stream: StreamOwned::new(connection, socket), binding })
}

/// Takes a connection as a device with this seed of the connection's key, from the peer of that key
/// alone.
///
/// # Errors
/// [`BootstrapError::Tls`] also for another peer; [`BootstrapError::Connection`].
pub fn accept(
    socket: TcpStream,
    seed: &[u8; 32],
    peer_key: &[u8; KEY_LEN],
) -> Result<AcceptingEnd, BootstrapError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let resolver = AlwaysResolvesServerRawPublicKeys::new(certified(seed)?);
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(RawKey::of_one(&provider, peer_key)))
        .with_cert_resolver(Arc::new(resolver));
    // Each connection proves both keys: none is taken up again.
    config.send_tls13_tickets = 0;
    let mut connection = ServerConnection::new(Arc::new(config))?;
    let mut socket = socket;
    shake_hands(&mut connection, &mut socket, ACCEPT_SECONDS)?;
    let binding = binding(&connection, connection.export_keying_material([0; 32], LABEL, None)?)?;
    Ok(Connection { stream: StreamOwned::new(connection, socket), binding })
}

impl<C: Read + Write> Connection<C> {
    /// Sends a message, encoded: its length in four bytes, and its bytes.
    ///
    /// # Errors
    /// [`BootstrapError::Connection`].
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), BootstrapError> {
        self.stream.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.stream.write_all(bytes)?;
        Ok(self.stream.flush()?)
    }

    /// Receives a message's bytes.
    ///
    /// # Errors
    /// [`BootstrapError::Connection`], [`BootstrapError::Malformed`] for one that is too long.
    pub fn receive(&mut self) -> Result<Zeroizing<Vec<u8>>, BootstrapError> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).map_err(of_io)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MESSAGE_LEN_MAX {
            return Err(BootstrapError::Malformed("the connection"));
        }
        let mut bytes = Zeroizing::new(vec![0; length]);
        self.stream.read_exact(&mut bytes).map_err(of_io)?;
        Ok(bytes)
    }
}

/// Runs the handshake against a deadline, which a peer that sends byte after byte does not move.
fn shake_hands<D>(
    connection: &mut ConnectionCommon<D>,
    socket: &mut TcpStream,
    seconds: u64,
) -> Result<(), BootstrapError> {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let slow = || BootstrapError::Slow(seconds);
    let of_io = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => slow(),
        _ => of_io(error),
    };
    socket.set_nodelay(true)?;
    while connection.is_handshaking() || connection.wants_write() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(slow());
        }
        socket.set_read_timeout(Some(left))?;
        socket.set_write_timeout(Some(left))?;
        if connection.wants_write() {
            connection.write_tls(socket).map_err(of_io)?;
            continue;
        }
        if connection.read_tls(socket).map_err(of_io)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if let Err(error) = connection.process_new_packets() {
            // The peer learns why, if it still listens.
            let _ = connection.write_tls(socket);
            return Err(error.into());
        }
    }
    socket.set_read_timeout(Some(MESSAGE_TIMEOUT))?;
    Ok(socket.set_write_timeout(Some(MESSAGE_TIMEOUT))?)
}

/// rustls's own error, which std wraps, says more.
fn of_io(error: io::Error) -> BootstrapError {
    match error.downcast::<Error>() {
        Ok(tls) => BootstrapError::Tls(tls),
        Err(error) => BootstrapError::Connection(error),
    }
}

fn binding(
    connection: &rustls::CommonState,
    exporter: [u8; 32],
) -> Result<Binding, BootstrapError> {
    let certificate = connection.peer_certificates().and_then(|all| all.first());
    let peer = certificate.and_then(key_of).ok_or(Error::NoCertificatesPresented)?;
    Ok(Binding { peer, exporter })
}

fn key_of(certificate: &CertificateDer<'_>) -> Option<[u8; KEY_LEN]> {
    certificate.strip_prefix(&SPKI[..])?.try_into().ok()
}

fn certified(seed: &[u8; 32]) -> Result<Arc<CertifiedKey>, BootstrapError> {
    let der = Zeroizing::new([&PKCS8[..], seed].concat());
    let key = aws_lc_rs::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(&der[..]))?;
    let public = ed25519_dalek::SigningKey::from_bytes(seed).verifying_key().to_bytes();
    let raw = CertificateDer::from([&SPKI[..], &public].concat());
    Ok(Arc::new(CertifiedKey::new(vec![raw], key)))
}

/// Takes raw keys of Ed25519 whose owner signs the handshake: one of them, or any.
#[derive(Debug)]
struct RawKey {
    only: Option<[u8; KEY_LEN]>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl RawKey {
    fn of_any(provider: &CryptoProvider) -> Self {
        Self { only: None, algorithms: provider.signature_verification_algorithms }
    }

    fn of_one(provider: &CryptoProvider, key: &[u8; KEY_LEN]) -> Self {
        Self { only: Some(*key), ..Self::of_any(provider) }
    }

    fn judge(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let key = key_of(certificate).ok_or(CertificateError::BadEncoding)?;
        if self.only.is_none_or(|only| only == key) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(certificate.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }
}

impl ServerCertVerifier for RawKey {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for RawKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

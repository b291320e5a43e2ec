// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key schedule of tickets (SPEC §6.7): TLS 1.3's HKDF with labels of our own.
//!
//! ```text
//!   secret with the ticket's share
//!        │ Extract
//!   early secret ── "binder" (), "client flight" (hello) ──▶ binder, key of flight 1's sealed part
//!        │ "derived" (), Extract with the ephemeral secret, or zeros
//!   handshake secret ── "server finished" (hellos) ──▶ finished
//!        │ "exporter" (hellos)
//!   exporter, as TLS's (RFC 8446 §7.5) ──▶ the session's secrets (SPEC §7.1)
//! ```
//! The server's random is in the hellos' hash, so every key that the server seals by is fresh,
//! whoever repeats a flight 1.

use std::convert::Infallible;

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use smt_record::{AwsLc, HashProvider, Prk, SessionSecrets, Suite};
use zeroize::Zeroizing;

/// A hash of the transcript so far.
pub(super) type TranscriptHash = [u8; 32];

/// The secret that the ticket's share gives.
pub(super) struct EarlySecret(Secret);

/// The secret of the whole handshake.
pub(super) struct HandshakeSecret(Secret);

/// A secret of the suite's hash length.
struct Secret {
    suite: Suite,
    bytes: Zeroizing<Vec<u8>>,
}

/// The sealed part of flight 1 does not open.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NotOpened;

impl EarlySecret {
    /// From the secret with the ticket's share.
    pub(super) fn new(suite: Suite, shared: &[u8]) -> Self {
        let no_salt = vec![0; suite.hash().output_len()];
        Self(Secret::extract(suite, &no_salt, shared))
    }

    /// The MAC by which a client shows that it has agreed with the ticket's share.
    pub(super) fn binder(&self, hello: &TranscriptHash) -> Vec<u8> {
        self.0.derive("binder", &[]).mac(hello)
    }

    /// Whether this is the binder of a client's hello; takes the same time for all.
    pub(super) fn is_binder(&self, hello: &TranscriptHash, binder: &[u8]) -> bool {
        verify_slices_are_equal(&self.binder(hello), binder).is_ok()
    }

    /// Seals what of flight 1 is for the server alone.
    pub(super) fn seal(&self, hello: &TranscriptHash, plaintext: &[u8]) -> Vec<u8> {
        let mut bytes = plaintext.to_vec();
        let (key, nonce) = self.flight_key(hello);
        key.seal_in_place_append_tag(nonce, Aad::from(hello), &mut bytes)
            .expect("a flight is far below the limits of an AEAD");
        bytes
    }

    /// Opens it.
    ///
    /// # Errors
    /// It was not sealed by the client of this hello.
    pub(super) fn open(
        &self,
        hello: &TranscriptHash,
        sealed: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, NotOpened> {
        let mut bytes = Zeroizing::new(sealed.to_vec());
        let (key, nonce) = self.flight_key(hello);
        let opened = key.open_in_place(nonce, Aad::from(hello), &mut bytes);
        let length = opened.map_err(|_| NotOpened)?.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// One key for one text: the nonce is the IV itself.
    fn flight_key(&self, hello: &TranscriptHash) -> (LessSafeKey, Nonce) {
        let secret = self.0.derive("client flight", hello);
        let suite = secret.suite;
        let (mut key, mut iv) = (Zeroizing::new([0; 32]), [0; aead::NONCE_LEN]);
        let key = &mut key[..suite.key_len()];
        secret.prk().expand_label("key", b"", key);
        secret.prk().expand_label("iv", b"", &mut iv);
        let algorithm = match suite {
            Suite::Aes128Gcm => &aead::AES_128_GCM,
            Suite::Aes256Gcm => &aead::AES_256_GCM,
            Suite::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        };
        let key = UnboundKey::new(algorithm, key).expect("the suite's key length");
        (LessSafeKey::new(key), Nonce::assume_unique_for_key(iv))
    }

    /// The secret of the handshake, with that of the ephemeral shares if there are any.
    pub(super) fn handshake(&self, ephemeral: Option<&[u8]>) -> HandshakeSecret {
        let suite = self.0.suite;
        let salt = self.0.derive("derived", &[]);
        let zeros = vec![0; suite.hash().output_len()];
        let ephemeral = ephemeral.unwrap_or(&zeros);
        HandshakeSecret(Secret::extract(suite, &salt.bytes, ephemeral))
    }
}

impl HandshakeSecret {
    /// The MAC by which a server shows that it has the ticket's key, over both hellos.
    pub(super) fn finished(&self, hellos: &TranscriptHash) -> Vec<u8> {
        self.0.derive("server finished", hellos).mac(hellos)
    }

    /// Whether this is the server's; takes the same time for all.
    pub(super) fn is_finished(&self, hellos: &TranscriptHash, finished: &[u8]) -> bool {
        verify_slices_are_equal(&self.finished(hellos), finished).is_ok()
    }

    /// The session's secrets.
    pub(super) fn session_secrets(
        &self,
        hellos: &TranscriptHash,
        parameter_hash: &[u8; 32],
    ) -> SessionSecrets {
        let exporter = self.0.derive("exporter", hellos);
        let export = |out: &mut [u8], label: &str, context: &[u8]| {
            exporter.export(label, context, out);
            Ok::<(), Infallible>(())
        };
        let secrets = SessionSecrets::from_exporter(self.0.suite, parameter_hash, export);
        match secrets {
            Ok(secrets) => secrets,
            Err(never) => match never {},
        }
    }
}

impl Secret {
    /// HKDF-Extract (RFC 5869 §2.2).
    fn extract(suite: Suite, salt: &[u8], secret: &[u8]) -> Self {
        let mut bytes = Zeroizing::new(vec![0; suite.hash().output_len()]);
        AwsLc.hmac(suite.hash(), salt, &[secret], &mut bytes);
        Self { suite, bytes }
    }

    /// HKDF-Expand-Label with a label that no other protocol has.
    fn derive(&self, label: &str, context: &[u8]) -> Self {
        let mut bytes = Zeroizing::new(vec![0; self.bytes.len()]);
        let label = format!("smt tk {label}");
        self.prk().expand_label(&label, context, &mut bytes);
        Self { suite: self.suite, bytes }
    }

    /// A secret of the session, which [`HandshakeSecret::session_secrets`] wants.
    fn export(&self, label: &str, context: &[u8], out: &mut [u8]) {
        let mut derived = Zeroizing::new(vec![0; self.bytes.len()]);
        self.prk().expand_label(label, b"", &mut derived);
        let context = AwsLc.sha256(&[context]);
        Prk::new(&AwsLc, self.suite, &derived).expand_label("exporter", &context, out);
    }

    fn mac(&self, message: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.bytes.len()];
        AwsLc.hmac(self.suite.hash(), &self.bytes, &[message], &mut out);
        out
    }

    fn prk(&self) -> Prk<'_> {
        Prk::new(&AwsLc, self.suite, &self.bytes)
    }
}

/// Secrets by name, for the test vectors alone.
#[cfg(test)]
mod told {
    use super::*;

    pub(in crate::ticket) type Told = Vec<(&'static str, Vec<u8>)>;

    impl EarlySecret {
        pub(in crate::ticket) fn told(&self, hello: &TranscriptHash) -> Told {
            let flight = self.0.derive("client flight", hello);
            let (mut key, mut iv) = (vec![0; flight.suite.key_len()], vec![0; 12]);
            flight.prk().expand_label("key", b"", &mut key);
            flight.prk().expand_label("iv", b"", &mut iv);
            vec![
                ("early", self.0.bytes.to_vec()),
                ("binder_key", self.0.derive("binder", &[]).bytes.to_vec()),
                ("flight", flight.bytes.to_vec()),
                ("flight_key", key),
                ("flight_iv", iv),
                ("derived", self.0.derive("derived", &[]).bytes.to_vec()),
            ]
        }
    }

    impl HandshakeSecret {
        pub(in crate::ticket) fn told(&self, hellos: &TranscriptHash) -> Told {
            let derive = |label| self.0.derive(label, hellos).bytes.to_vec();
            vec![
                ("hs", self.0.bytes.to_vec()),
                ("finished_key", derive("server finished")),
                ("exporter", derive("exporter")),
            ]
        }

        /// The exporter's secret for a label of SPEC §7.1 or §7.4.
        pub(in crate::ticket) fn exported(
            &self,
            hellos: &TranscriptHash,
            label: &str,
            parameter_hash: &[u8; 32],
        ) -> Vec<u8> {
            let exporter = self.0.derive("exporter", hellos);
            let mut out = vec![0; exporter.bytes.len()];
            exporter.export(label, parameter_hash, &mut out);
            out
        }
    }
}

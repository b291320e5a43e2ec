// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys whose bytes can be had: a `rustls::quic::Algorithm` around the library's own.
//!
//! quinn boxes rustls's keys, and neither trait hands bytes out. A captured key therefore answers
//! a harmless question (the length of its tag, or of its sample) as always, and while
//! [`phase_key_of`] or [`header_key_of`] asks it on this thread, leaves its bytes there too.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use quinn_proto::crypto;
use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuite, Error, SupportedCipherSuite, Tls13CipherSuite};
use smt_nic::quic::{self, PhaseKey, Suite};

thread_local! {
    static ASKED: RefCell<Answer> = const { RefCell::new(Answer::NotAsked) };
}

enum Answer {
    NotAsked,
    Asked,
    Phase(PhaseKey),
    Header(quic::HeaderProtectionKey),
}

/// The bytes of a packet key, if it was captured.
#[must_use]
pub fn phase_key_of(key: &dyn crypto::PacketKey) -> Option<PhaseKey> {
    match ask(|| key.tag_len()) {
        Answer::Phase(key) => Some(key),
        _ => None,
    }
}

/// The bytes of a header protection key, if it was captured.
#[must_use]
pub fn header_key_of(key: &dyn crypto::HeaderKey) -> Option<quic::HeaderProtectionKey> {
    match ask(|| key.sample_size()) {
        Answer::Header(key) => Some(key),
        _ => None,
    }
}

fn ask(question: impl FnOnce() -> usize) -> Answer {
    ASKED.with_borrow_mut(|asked| *asked = Answer::Asked);
    question();
    ASKED.replace(Answer::NotAsked)
}

fn answer(answer: impl FnOnce() -> Answer) {
    ASKED.with_borrow_mut(|asked| {
        if matches!(asked, Answer::Asked) {
            *asked = answer();
        }
    });
}

/// The provider with its cipher suites' QUIC keys captured. Suites that the engine does not have
/// stay as they are, and connections with them stay in software.
#[must_use]
pub fn capturing(provider: CryptoProvider) -> CryptoProvider {
    let suites = provider.cipher_suites.iter().map(|suite| match suite {
        SupportedCipherSuite::Tls13(suite) => {
            SupportedCipherSuite::Tls13(captured_suite(suite).unwrap_or(suite))
        }
        #[allow(unreachable_patterns, reason = "TLS 1.2 may be a feature of the build")]
        other => *other,
    });
    CryptoProvider { cipher_suites: suites.collect(), ..provider }
}

/// rustls wants suites that live as long as the process: there is one of each.
fn captured_suite(suite: &'static Tls13CipherSuite) -> Option<&'static Tls13CipherSuite> {
    static AES_128: OnceLock<Tls13CipherSuite> = OnceLock::new();
    static AES_256: OnceLock<Tls13CipherSuite> = OnceLock::new();
    static CHACHA20: OnceLock<Tls13CipherSuite> = OnceLock::new();
    let (once, of_engine) = match suite.common.suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => (&AES_128, Suite::Aes128Gcm),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => (&AES_256, Suite::Aes256Gcm),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => (&CHACHA20, Suite::ChaCha20Poly1305),
        _ => return None,
    };
    let library = suite.quic?;
    Some(once.get_or_init(|| Tls13CipherSuite {
        common: rustls::crypto::CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(Box::leak(Box::new(Capturing { suite: of_engine, library }))),
    }))
}

struct Capturing {
    suite: Suite,
    library: &'static dyn Algorithm,
}

impl Algorithm for Capturing {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let bytes = iv.as_ref().try_into().ok();
        let captured = bytes.and_then(|iv| PhaseKey::new(self.suite, key.as_ref(), iv).ok());
        Box::new(CapturedPacketKey { captured, library: self.library.packet_key(key, iv) })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        Box::new(CapturedHeaderKey {
            captured: quic::HeaderProtectionKey::new(self.suite, key.as_ref()).ok(),
            library: self.library.header_protection_key(key),
        })
    }

    fn aead_key_len(&self) -> usize {
        self.library.aead_key_len()
    }

    fn fips(&self) -> bool {
        self.library.fips()
    }
}

struct CapturedPacketKey {
    captured: Option<PhaseKey>,
    library: Box<dyn PacketKey>,
}

impl PacketKey for CapturedPacketKey {
    fn encrypt_in_place(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        self.library.encrypt_in_place(packet_number, header, payload)
    }

    fn decrypt_in_place<'a>(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.library.decrypt_in_place(packet_number, header, payload)
    }

    fn tag_len(&self) -> usize {
        if let Some(captured) = &self.captured {
            answer(|| Answer::Phase(captured.clone()));
        }
        self.library.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.library.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.library.integrity_limit()
    }
}

struct CapturedHeaderKey {
    captured: Option<quic::HeaderProtectionKey>,
    library: Box<dyn HeaderProtectionKey>,
}

impl HeaderProtectionKey for CapturedHeaderKey {
    fn encrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        self.library.encrypt_in_place(sample, first, packet_number)
    }

    fn decrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        self.library.decrypt_in_place(sample, first, packet_number)
    }

    fn sample_len(&self) -> usize {
        if let Some(captured) = &self.captured {
            answer(|| Answer::Header(captured.clone()));
        }
        self.library.sample_len()
    }
}

/// Keys of quinn that several places use.
pub type SharedPacketKey = Arc<dyn crypto::PacketKey>;
/// Header protection of quinn that several places use.
pub type SharedHeaderKey = Arc<dyn crypto::HeaderKey>;

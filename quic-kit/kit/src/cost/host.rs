// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The host's savings: the AEAD and the header protection of a packet, measured on this machine
//! with the library that quinn uses.

use std::hint::black_box;
use std::time::Instant;

use kit_process::{Cipher, Failure, tls};
use rustls::SupportedCipherSuite;
use rustls::quic::{Keys, Version};
use smt_report::{Table, number};

/// Nanoseconds of one packet, and the cycles that they are at the processor's nominal clock.
pub(super) fn table(packet: u32) -> Result<Table, Failure> {
    let megahertz = megahertz();
    let mut table = Table {
        corner: "cipher".to_owned(),
        columns: ["seal, ns", "open, ns", "header protection, ns", "cycles of seal and header"]
            .map(str::to_owned)
            .to_vec(),
        rows: Vec::new(),
    };
    for (name, cipher) in [
        ("AES-128-GCM", Cipher::Aes128),
        ("AES-256-GCM", Cipher::Aes256),
        ("ChaCha20-Poly1305", Cipher::Chacha20),
    ] {
        let keys = keys(cipher)?;
        let [seal, open, header] = times(&keys, packet as usize);
        let cycles = (seal + header) * megahertz / 1_000.0;
        let cells = [seal, open, header, cycles].map(number).to_vec();
        table.rows.push((name.to_owned(), cells));
    }
    Ok(table)
}

/// Keys of any connection: those of first packets, by the suite asked for.
fn keys(cipher: Cipher) -> Result<Keys, Failure> {
    let provider = tls::provider(cipher);
    let suite = provider.cipher_suites.first();
    let suite = suite.and_then(SupportedCipherSuite::tls13);
    let suite = suite.ok_or_else(|| Failure::new("the suite is none of TLS 1.3"))?;
    let quic = suite.quic_suite();
    let quic = quic.ok_or_else(|| Failure::new("the suite has no keys for QUIC"))?;
    Ok(quic.keys(&[1; 8], rustls::Side::Client, Version::V1))
}

/// The least of several rounds: what else runs here takes time too.
fn times(keys: &Keys, packet: usize) -> [f64; 3] {
    let header = [0x40; 13];
    let mut payload = vec![7; packet - header.len() - 16];
    let key = &keys.local.packet;
    let seal = least(|number| {
        let tag = key.encrypt_in_place(number, &header, black_box(&mut payload));
        black_box(tag.is_ok());
    });
    let mut sealed = payload.clone();
    let tag = key.encrypt_in_place(7, &header, &mut sealed);
    if let Ok(tag) = tag {
        sealed.extend_from_slice(tag.as_ref());
    }
    let mut buffer = sealed.clone();
    let copy = least(|_| black_box(&mut buffer).copy_from_slice(black_box(&sealed)));
    // Opening by the key that sealed: the peer's is of the same kind.
    let open = least(|_| {
        buffer.copy_from_slice(&sealed);
        black_box(key.decrypt_in_place(7, &header, &mut buffer).is_ok());
    });
    let sample = vec![3; keys.local.header.sample_len()];
    let header = least(|_| {
        let (mut first, mut bytes) = (0x40, [1, 2, 3, 4]);
        let masked = keys.local.header.encrypt_in_place(&sample, &mut first, &mut bytes);
        black_box((masked.is_ok(), first, bytes));
    });
    [seal, (open - copy).max(0.0), header]
}

fn least(mut run: impl FnMut(u64)) -> f64 {
    let mut least = f64::INFINITY;
    for round in 0..ROUNDS {
        let begin = Instant::now();
        for packet in 0..PACKETS {
            run(round * PACKETS + packet);
        }
        let taken = begin.elapsed().as_secs_f64();
        least = least.min(taken * 1e9 / PACKETS as f64);
    }
    least
}

/// The processor's clock as it says itself.
fn megahertz() -> f64 {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = cpu.lines().find(|line| line.starts_with("cpu MHz"));
    let value = line.and_then(|line| line.rsplit_once(": ")?.1.parse().ok());
    value.unwrap_or(2_000.0)
}

const ROUNDS: u64 = 20;
const PACKETS: u64 = 2_000;

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# GnuTLS's certtool encrypts a private key by PBES2, and names the pseudo-random function,
# hmacWithSHA256, without parameters, where RFC 8018 B.1.2 has NULL. The crate pkcs5 of RustCrypto
# up to 0.7 wants the NULL, and calls the key malformed. Version 0.8 takes both.
#
# Seen with certtool 3.8.9 (Debian 13; 3.7.9 of Debian 12 writes the same), pkcs5 0.7.1 and 0.8.1
# (crates.io), Rust 1.95, amd64, Linux, 2026-11-29:
#     0.7.1: malformed ASN.1 DER value for NULL
#     0.8.1: read
# openssl 3.0.19 opens the key. A program with pkcs5 0.7 puts the NULL in before it parses, or moves
# to 0.8, and does not say that the cipher or the passphrase is wrong.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian" trixie "$folder/debian" gnutls-bin=3.8.9-3+deb13u4 libgnutls30t64=3.8.9-3+deb13u4
certtool() { "$folder/debian/run" certtool "$@" 2>/dev/null; }
certtool --generate-privkey --key-type ecdsa --outfile "$folder/key"
certtool --to-p8 --load-privkey "$folder/key" --password=secret --outder --outfile "$folder/key.der"

mkdir -p "$folder/reader/src"
cat >"$folder/reader/Cargo.toml" <<'TOML'
[package]
name = "reader"
edition = "2024"
[dependencies]
pkcs5 = { version = "=0.7.1", features = ["pbes2"] }
pkcs5_later = { package = "pkcs5", version = "=0.8.1", features = ["pbes2"] }
TOML
cat >"$folder/reader/src/main.rs" <<'RUST'
use pkcs5::der::{Decode, Reader, SliceReader};

fn main() {
    let file = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    // EncryptedPrivateKeyInfo is a sequence that begins with the algorithm.
    let algorithm = SliceReader::new(&file)
        .unwrap()
        .sequence(|fields| {
            let algorithm = fields.tlv_bytes()?;
            fields.tlv_bytes()?;
            Ok(algorithm)
        })
        .unwrap();
    let said = |read: Result<(), String>| read.err().unwrap_or("read".to_owned());
    let earlier = pkcs5::EncryptionScheme::from_der(algorithm);
    println!("0.7.1: {}", said(earlier.map(|_| ()).map_err(|error| error.to_string())));
    use pkcs5_later::der::Decode as _;
    let later = pkcs5_later::EncryptionScheme::from_der(algorithm);
    println!("0.8.1: {}", said(later.map(|_| ()).map_err(|error| error.to_string())));
}
RUST
reader() { CARGO_INCREMENTAL=0 cargo run --quiet --manifest-path "$folder/reader/Cargo.toml" --target-dir "$folder/target" -- "$1"; }
said=$(reader "$folder/key.der")
expected="0.7.1: malformed ASN.1 DER value for NULL
0.8.1: read"
[[ $said == "$expected" ]] || { echo "pkcs5 says another thing of certtool's key: $said" >&2; exit 1; }
echo "certtool 3.8.9 writes keys that pkcs5 0.7.1 calls malformed, and 0.8.1 reads"

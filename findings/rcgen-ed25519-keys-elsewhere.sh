#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# rcgen, by ring, writes keys of Ed25519 as PKCS#8 of version 2, with the public key behind the
# private one (RFC 5958, as the second key of RFC 8410 10.3 shows it). Others know version 1 alone:
# pyca's cryptography, GnuTLS, and OpenSSL 3.0. Keys of P-256 are of version 1, and open everywhere.
#
# Seen with rcgen 0.14.10 (crates.io, by ring), Rust 1.95, cryptography 50.0.2 (PyPI), Python 3.11,
# Linux, 2026-11-29:
#     ValueError: Could not deserialize key data. [...] ASN.1 parsing error: extra data
# certtool 3.7.9 and 3.8.9 say "Error in DER parsing", openssl 3.0.19 "unsupported"; openssl 3.5.9
# reads the key.
#
# A key that other programs are to read is one of P-256, or is written as version 1: the same bytes
# with version 0 and without the field [1] at the end, as this script does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check cryptography==50.0.2

mkdir -p "$folder/maker/src"
cat >"$folder/maker/Cargo.toml" <<'TOML'
[package]
name = "maker"
edition = "2024"
[dependencies]
rcgen = { version = "=0.14.10", default-features = false, features = ["ring"] }
TOML
cat >"$folder/maker/src/main.rs" <<'RUST'
fn main() {
    let folder = std::env::args().nth(1).unwrap();
    let kinds = [("ed25519", &rcgen::PKCS_ED25519), ("p256", &rcgen::PKCS_ECDSA_P256_SHA256)];
    for (name, kind) in kinds {
        let key = rcgen::KeyPair::generate_for(kind).unwrap();
        std::fs::write(format!("{folder}/{name}"), key.serialize_der()).unwrap();
    }
}
RUST
CARGO_INCREMENTAL=0 cargo run --quiet --manifest-path "$folder/maker/Cargo.toml" --target-dir "$folder/target" -- "$folder"

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import base64
import pathlib
import sys

from cryptography.hazmat.primitives.serialization import load_pem_private_key


def read(key):
    text = base64.encodebytes(key)
    return load_pem_private_key(b"-----BEGIN PRIVATE KEY-----\n" + text + b"-----END PRIVATE KEY-----\n", None)


read(pathlib.Path(sys.argv[1], "p256").read_bytes())
key = pathlib.Path(sys.argv[1], "ed25519").read_bytes()
# Version 1 is told by the number 0. At the end stands [1] with 33 bytes: 0, and the public key.
assert key[:5] == bytes.fromhex("3051020101") and key[48:51] == bytes.fromhex("812100"), key.hex()
try:
    read(key)
except ValueError as error:
    assert "extra data" in str(error), error
else:
    raise SystemExit("cryptography 50.0.2 reads version 2 now")
earlier = bytes.fromhex("302e020100") + key[5:48]
assert read(earlier).public_key().public_bytes_raw() == key[51:]
PYTHON
echo "rcgen 0.14.10 writes keys of Ed25519 that cryptography 50.0.2 does not read"

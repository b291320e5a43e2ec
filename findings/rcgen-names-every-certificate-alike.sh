#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# rcgen gives a certificate the subject "rcgen self signed cert" if its maker names none: an
# authority, and a server whose names stand in subjectAltName. The server's issuer is then its own
# subject. OpenSSL takes such a certificate for a self-signed one and refuses it, even if it names
# the authority's key (authorityKeyIdentifier). Verifiers that ask for signatures see nothing wrong.
#
# Seen with rcgen 0.14.10 (crates.io, by ring), Rust 1.95, and OpenSSL 4.0.3 as in cryptography
# 50.0.2, called by pyOpenSSL 26.4.0 (PyPI), Linux, 2026-11-29:
#     names left out     self-signed certificate
#     authority named    verified
# Programs openssl 3.0.19 and 3.5.9 refuse the same file by error 18. GnuTLS 3.7.9 takes it.
#
# An authority made by rcgen gets a `distinguished_name` of its own. Tests by one stack alone do not
# show that it lacks one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyOpenSSL==26.4.0 cryptography==50.0.2

mkdir -p "$folder/maker/src"
cat >"$folder/maker/Cargo.toml" <<'TOML'
[package]
name = "maker"
edition = "2024"
[dependencies]
rcgen = { version = "=0.14.10", default-features = false, features = ["ring", "pem"] }
TOML
cat >"$folder/maker/src/main.rs" <<'RUST'
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

fn main() {
    let folder = std::env::args().nth(1).unwrap();
    for kind in ["unnamed", "named"] {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        if kind == "named" {
            authority.distinguished_name.push(DnType::CommonName, "An Authority");
        }
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let mut server = CertificateParams::new(["server.example".to_owned()]).unwrap();
        server.use_authority_key_identifier_extension = true;
        let server = server.signed_by(&KeyPair::generate().unwrap(), &authority).unwrap();
        std::fs::write(format!("{folder}/{kind}-authority.pem"), authority.pem()).unwrap();
        std::fs::write(format!("{folder}/{kind}-server.pem"), server.pem()).unwrap();
    }
}
RUST
CARGO_INCREMENTAL=0 cargo run --quiet --manifest-path "$folder/maker/Cargo.toml" --target-dir "$folder/target" -- "$folder"

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import pathlib
import sys

from cryptography.hazmat.backends.openssl import backend
from OpenSSL import crypto


def verdict(kind):
    authority, server = (
        crypto.load_certificate(
            crypto.FILETYPE_PEM, pathlib.Path(sys.argv[1], f"{kind}-{part}.pem").read_bytes()
        )
        for part in ("authority", "server")
    )
    # The signature is the authority's, whatever OpenSSL says below.
    issued = server.to_cryptography()
    issued.verify_directly_issued_by(authority.to_cryptography())
    store = crypto.X509Store()
    store.add_cert(authority)
    try:
        crypto.X509StoreContext(store, server).verify_certificate()
    except crypto.X509StoreContextError as error:
        return str(error)
    return "verified"


openssl = backend.openssl_version_text()
assert openssl.startswith("OpenSSL 4.0.3 "), openssl
found = {kind: verdict(kind) for kind in ("unnamed", "named")}
assert found == {"unnamed": "self-signed certificate", "named": "verified"}, found
PYTHON
echo "rcgen 0.14.10: where names are left out, OpenSSL takes a server's certificate for a self-signed one"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# `openssl ca -gencrl` makes a revocation list of version 1 when its configuration names no
# `crlnumber`, as short ones do not. rustls-webpki reads version 2 alone, which is fair (RFC 5280 5
# wants version 2), but its error is BadDer, as of a damaged file, though it has
# UnsupportedCrlVersion too: the version stands in front, and a list of version 1 has none.
#
# Seen with openssl 3.5.9 (Debian 13; 3.0.19 of Debian 12 does the same), rustls-webpki 0.103.16
# (crates.io), Rust 1.95, amd64, Linux, 2026-11-29:
#     without crlnumber   Version 1 (0x0)   BadDer
#     with crlnumber      Version 2 (0x1)   read
# The configuration needs the line `crlnumber = FILE`, and the file a number such as 01. A program
# that reports webpki's error looks at the version itself, and tells it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian" trixie "$folder/debian" openssl=3.5.9-1~deb13u1 libssl3t64=3.5.9-1~deb13u1
openssl() { (cd "$folder" && OPENSSL_CONF=/dev/null debian/run openssl "$@" 2>"$folder/openssl.log") || { cat "$folder/openssl.log" >&2; exit 1; }; }

printf '[req]\ndistinguished_name = name\n[name]\n' >"$folder/request"
openssl req -x509 -config request -newkey rsa:2048 -nodes -keyout key -out certificate -subj "/CN=An Authority"
printf '[ca]\ndefault_ca = own\n[own]\ndatabase = issued\ndefault_md = sha256\ndefault_crl_days = 9\n' >"$folder/short"
{ cat "$folder/short"; echo "crlnumber = number"; } >"$folder/numbered"
: >"$folder/issued"
echo 01 >"$folder/number"
for configuration in short numbered; do
    openssl ca -gencrl -config "$configuration" -keyfile key -cert certificate -out "$configuration.pem"
    openssl crl -in "$configuration.pem" -outform DER -out "$configuration.crl"
done

mkdir -p "$folder/reader/src"
cat >"$folder/reader/Cargo.toml" <<'TOML'
[package]
name = "reader"
edition = "2024"
[dependencies]
rustls-webpki = { version = "=0.103.16", default-features = false, features = ["std"] }
TOML
cat >"$folder/reader/src/main.rs" <<'RUST'
fn main() {
    for path in std::env::args().skip(1) {
        match webpki::OwnedCertRevocationList::from_der(&std::fs::read(path).unwrap()) {
            Ok(_) => println!("read"),
            Err(error) => println!("{error:?}"),
        }
    }
}
RUST
said=$(CARGO_INCREMENTAL=0 cargo run --quiet --manifest-path "$folder/reader/Cargo.toml" --target-dir "$folder/target" -- "$folder/short.crl" "$folder/numbered.crl")
version() { openssl crl -in "$1.pem" -noout -text | awk '/Version/ { print $2 }'; }
[[ $(version short) == 1 ]] || { echo "openssl 3.5.9 makes no version 1 now" >&2; exit 1; }
[[ $(version numbered) == 2 ]] || { echo "openssl 3.5.9 makes no version 2 with crlnumber" >&2; exit 1; }
[[ $said == "BadDer"$'\n'"read" ]] || { echo "rustls-webpki 0.103.16 says another thing: $said" >&2; exit 1; }
echo "openssl makes a list of version 1 without crlnumber, and rustls-webpki calls it BadDer"

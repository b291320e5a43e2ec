#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# hickory-proto shows records nearly in the form of zone files, and its notes on SVCB cite that form
# from RFC 9460. Its text of SVCB is another one: a comma stands behind each list and each value
# that it does not know, and a key that it does not know is `unknown8` where RFC 9460 2.1 has
# `key8`. The same record in wire form comes out right.
#
# Seen with hickory-proto 0.26.3 (crates.io), Rust 1.95, and dnspython 2.9.2 (PyPI) as the reader,
# Python 3.11, Linux, 2026-11-29:
#     1 . alpn=h2, port=443      empty bytes not allowed
#     1 . unknown8="",           Unknown SVCB ParamKey
# Its text is for logs. A zone file gets the generic form of RFC 3597, `SVCB \# LENGTH HEX`, of the
# bytes that the library encodes; every server reads it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/writer/src"
cat >"$folder/writer/Cargo.toml" <<'TOML'
[package]
name = "writer"
edition = "2024"
[dependencies]
hickory-proto = { version = "=0.26.3", default-features = false, features = ["std"] }
TOML
cat >"$folder/writer/src/main.rs" <<'RUST'
use hickory_proto::rr::Record;
use hickory_proto::serialize::binary::{BinDecodable, BinEncodable};

fn main() {
    // Priority 1 and target ".", and then: alpn h2 and port 443; key 8, which is ohttp.
    let records: [&[u8]; 2] = [b"\0\x01\0\0\x01\0\x03\x02h2\0\x03\0\x02\x01\xbb", b"\0\x01\0\0\x08\0\0"];
    for data in records {
        // The owner a.test., type 64, class IN, 60 s, and the length of the data.
        let mut wire = b"\x01a\x04test\0\0\x40\0\x01\0\0\0\x3c\0".to_vec();
        wire.push(data.len() as u8);
        wire.extend(data);
        let record = Record::from_bytes(&wire).unwrap();
        assert_eq!(record.to_bytes().unwrap(), wire);
        println!("{}", record.data);
    }
}
RUST
CARGO_INCREMENTAL=0 cargo run --quiet --manifest-path "$folder/writer/Cargo.toml" --target-dir "$folder/target" >"$folder/written"

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dnspython==2.9.2
"$folder/venv/bin/python" - "$folder/written" <<'PYTHON'
import pathlib
import sys

import dns.exception
import dns.rdata

written = pathlib.Path(sys.argv[1]).read_text().splitlines()
assert written == ["1 . alpn=h2, port=443", '1 . unknown8="",'], written


def read(text):
    try:
        return dns.rdata.from_text("IN", "SVCB", text).to_text()
    except dns.exception.SyntaxError as error:
        return str(error)


found = [read(text) for text in written]
assert found == ["empty bytes not allowed", "Unknown SVCB ParamKey"], found
assert read("1 . alpn=h2 port=443") == '1 . alpn="h2" port="443"'
assert read(r"\# 16 0001 00 0001 0003 026832 0003 0002 01bb") == '1 . alpn="h2" port="443"'
PYTHON
echo "hickory-proto 0.26.3 shows SVCB in a form that dnspython does not read"

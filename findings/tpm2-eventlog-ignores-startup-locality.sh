#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A machine whose TPM was started at locality 3 says so in the first event of its log, and its
# register 0 begins at 31 zero bytes and 03. tpm2_eventlog 5.4 does not read that event: it takes it
# for one that extends the register, by its digest of zeros, and the register that it prints is one
# that no TPM has. Version 5.7 begins at the locality.
#
# Seen with tpm2-tools 5.4-1 (Debian 12) and 5.7-1 (Debian 13), amd64, Linux, 2026-11-29, on the
# same log of three events, register 0 of the bank of SHA-256:
#     5.4  0x85a646322efda88e7479cfefd8c53d7d1f00b8c5389b61db143738348e45526b
#     5.7  0x667f85ebefbf22cb0388ad5bcc702512a8325992fa5daeff3a11758de0762ae1
# A comparison of one's own replay with tpm2_eventlog takes 5.7, or leaves out logs whose event
# `StartupLocality` has a number other than zero.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian" bookworm "$folder/12" tpm2-tools=5.4-1
"$here/debian" trixie "$folder/13" tpm2-tools=5.7-1

# The log, and what register 0 is if it begins at the locality, and if all three events extend it.
registers=$(python3 - "$folder/log" <<'PYTHON'
import hashlib
import struct
import sys


def sha256(data):
    return hashlib.sha256(data).digest()


def event(kind, digest, data):
    """An event of register 0 with one digest, of SHA-256."""
    return struct.pack("<IIIH", 0, kind, 1, 11) + digest + struct.pack("<I", len(data)) + data


EV_NO_ACTION, EV_S_CRTM_VERSION = 3, 8
specification = b"Spec ID Event03\0" + struct.pack("<IBBBBIHHB", 0, 0, 2, 0, 2, 1, 11, 32, 0)
version = "1.0".encode("utf-16-le")
log = struct.pack("<II20xI", 0, EV_NO_ACTION, len(specification)) + specification
log += event(EV_NO_ACTION, bytes(32), b"StartupLocality\0\3")
log += event(EV_S_CRTM_VERSION, sha256(version), version)
with open(sys.argv[1], "wb") as file:
    file.write(log)
right = sha256(bytes(31) + b"\3" + sha256(version))
wrong = sha256(sha256(bytes(64)) + sha256(version))
print(right.hex(), wrong.hex())
PYTHON
)
read -r right wrong <<<"$registers"

register() { "$folder/$1/run" tpm2_eventlog "$folder/log" | awk '/^pcrs:/ { here = 1 } here && $1 == "0" { print $3 }'; }
old=$(register 12) new=$(register 13)
[[ $old == "0x$wrong" ]] || { echo "tpm2_eventlog 5.4 has another register 0: $old" >&2; exit 1; }
[[ $new == "0x$right" ]] || { echo "tpm2_eventlog 5.7 has another register 0: $new" >&2; exit 1; }
echo "tpm2_eventlog 5.4 ignores the locality at which a TPM was started; 5.7 does not"

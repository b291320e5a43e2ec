#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A record of SVCB or HTTPS in alias mode should have no parameters, and whoever receives some must
# ignore them (RFC 9460 2.4.2). dnspython refuses the record, and the whole message with it: sound
# records beside it are lost too. Servers may have such records: Knot DNS takes a zone with one.
#
# Seen with dnspython 2.9.2 (PyPI), Python 3.11, Linux, 2026-11-29:
#     dns.message.from_wire    FormError: parameters in AliasMode
# and kzonecheck 3.4.6 (Debian 13), amd64, which finds no error in the zone. named-checkzone takes
# it in 9.18.49 (Debian 12), and refuses it in 9.20.30 (Debian 13).
#
# Records in alias mode are published without parameters, also where a server takes them. A reader
# by dnspython has `from_wire(..., continue_on_error=True)`, which leaves out that record alone.
set -euo pipefail
version=2.9.2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
"$here/debian" trixie "$folder/debian" knot-dnssecutils=3.4.6-2
cat >"$folder/zone" <<'ZONE'
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.1
@ SVCB 0 other.test. alpn=h2
ZONE
"$folder/debian/run" kzonecheck -o own.test "$folder/zone" || { echo "Knot DNS 3.4.6 refuses the zone now" >&2; exit 1; }

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "dnspython==$version"
"$folder/venv/bin/python" - <<'PYTHON'
import struct

import dns.exception
import dns.message

NAME = b"\3own\4test\0"
SVCB, IN = 64, 1


def record(data):
    return NAME + struct.pack(">HHIH", SVCB, IN, 60, len(data)) + data


service = record(struct.pack(">H", 1) + b"\0")
alias = record(struct.pack(">H", 0) + b"\5other\4test\0" + struct.pack(">HH", 1, 3) + b"\2h2")
answer = struct.pack(">HHHHHH", 1, 0x8180, 1, 2, 0, 0) + NAME + struct.pack(">HH", SVCB, IN) + service + alias
try:
    dns.message.from_wire(answer)
except dns.exception.FormError as error:
    assert str(error) == "parameters in AliasMode", error
else:
    raise SystemExit("dnspython takes the answer now")
[found] = dns.message.from_wire(answer, continue_on_error=True).answer
assert [data.to_text() for data in found] == ["1 ."], found
PYTHON
echo "dnspython $version loses a whole answer that has an alias with parameters"

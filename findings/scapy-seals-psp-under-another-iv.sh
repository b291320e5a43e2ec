#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# scapy's layer of PSP makes up an IV if none is given, and makes up another one each time the
# packet becomes bytes. The packet is sealed under one IV, says another one when it is sent, and a
# third one when it is sent again. Its receiver finds it damaged. With an IV that is given all is
# well.
#
# Seen with scapy 2.8.0 (`scapy.contrib.psp`) and cryptography 50.0.2 (PyPI), Python 3.11, Linux,
# 2026-11-29: the bytes of one sealed packet differ from call to call, and `decrypt` of what was
# sent raises PSPIntegrityError.
#
# Give `iv=` eight bytes of your own whenever a packet is to be sealed. A counter is best, since an
# IV must not come twice under a key.
set -euo pipefail
version=2.8.0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "scapy==$version" cryptography==50.0.2

"$folder/venv/bin/python" - <<'PYTHON'
from scapy.contrib.psp import PSP, PSPIntegrityError

KEY, DATA = bytes(range(16)), b"forty bytes of a payload that is sealed."


def sent(**fields):
    """A sealed packet, as bytes, twice."""
    packet = PSP(nexthdr=4, spi=0x1234, data=DATA, **fields)
    packet.encrypt(KEY)
    return bytes(packet), bytes(packet)


def opened(packet):
    received = PSP(packet)
    received.decrypt(KEY)
    return bytes(received.data)


first, second = sent(iv=b"eightbyt")
assert first == second and opened(first) == DATA

first, second = sent()
assert first[:8] == second[:8] and first[16:] == second[16:], "more than the IV differs"
assert first[8:16] != second[8:16], "a packet keeps its IV now"
try:
    opened(first)
except PSPIntegrityError:
    pass
else:
    raise SystemExit("a packet whose IV was made up opens now")
PYTHON
echo "scapy $version: a packet of PSP whose IV was not given says another one than it was sealed under"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# An association of scapy may have extended sequence numbers (`esn_en=True`), of 64 bits. scapy
# counts the lower half alone: behind packet 2^32 - 1 nothing is carried into the upper half, and
# the next packet cannot be made. Nor can its halves be given to `encrypt`, although it has
# `seq_num` and `esn` for that: 0, the lower half of that very packet, counts as none.
#
# Seen with scapy 2.8.0 and cryptography 50.0.2 (PyPI), Python 3.11, Linux, 2026-11-29, AES-GCM:
#     the next packet    struct.error: 'L' format requires 0 <= number <= 4294967295
#     seq_num=0, esn=1   sealed with the association's own number, 7 for example, not with 0
#
# A test of the border sets the fields of both associations, `seq_num` to 0 and `esn` to 1, as this
# script does.
set -euo pipefail
version=2.8.0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "scapy==$version" cryptography==50.0.2

"$folder/venv/bin/python" - <<'PYTHON'
import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.packet import Raw

LAST = 2**32 - 1
packet = IP(bytes(IP(src="192.0.2.1", dst="192.0.2.2") / UDP(sport=1000, dport=2000) / Raw(b"hello")))


def association(number):
    return SecurityAssociation(
        ESP, spi=0x1234, seq_num=number, crypt_algo="AES-GCM", crypt_key=bytes(range(20)), esn_en=True, esn=0
    )


sender = association(LAST)
assert sender.encrypt(packet)[ESP].seq == LAST and sender.esn == 0
try:
    sender.encrypt(packet)
except struct.error as error:
    assert str(error) == "'L' format requires 0 <= number <= 4294967295", error
else:
    raise SystemExit(f"scapy counts beyond 32 bits now: {sender.seq_num}, {sender.esn}")

found = association(7).encrypt(packet, seq_num=0, esn=1)[ESP].seq
assert found == 7, f"seq_num=0 is {found} now"

receiver = association(1)
sender.seq_num, sender.esn, receiver.esn = 0, 1, 1
sealed = sender.encrypt(packet)
assert sealed[ESP].seq == 0 and bytes(receiver.decrypt(IP(bytes(sealed)))) == bytes(packet)
PYTHON
echo "scapy $version: extended sequence numbers end at 32 bits, unless both halves are set"

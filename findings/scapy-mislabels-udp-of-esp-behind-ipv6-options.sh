#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# scapy seals a packet of IPv6 by ESP in UDP (RFC 3948, transport mode). If the packet has
# destination or hop-by-hop options, the last of these headers says that ESP follows, where the UDP
# header stands. A receiver reads the two ports as the SPI; scapy itself opens the packet no more.
# Without such headers the label is right.
#
# Seen with scapy 2.8.0 and cryptography 50.0.2 (PyPI), Python 3.11, Linux, 2026-11-29, AES-GCM:
#     ... 32 00 01 04 00 00 00 00 | 11 94 11 94 ...     50 is ESP; 4500, 4500 are ports of UDP
#     TypeError: packet spi=0x11941194 does not match the SA spi=0x1234
# A test against scapy leaves out this kind of packet, or sets the last next header to 17 itself.
set -euo pipefail
version=2.8.0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "scapy==$version" cryptography==50.0.2

"$folder/venv/bin/python" - <<'PYTHON'
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, PadN
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.packet import Raw

PORTS = bytes.fromhex("11941194")


def sealed(headers):
    """The association, and a packet with these headers behind IPv6's, as bytes."""
    association = SecurityAssociation(
        ESP, spi=0x1234, crypt_algo="AES-GCM", crypt_key=bytes(range(20)),
        nat_t_header=UDP(sport=4500, dport=4500),
    )
    packet = IPv6(src="2001:db8::1", dst="2001:db8::2")
    for header in headers:
        packet /= header
    packet = IPv6(bytes(packet / UDP(sport=1000, dport=2000) / Raw(b"hello")))
    return association, bytes(association.encrypt(packet))


association, packet = sealed([])
assert packet[6] == 17 and packet[40:44] == PORTS, packet.hex()
assert bytes(association.decrypt(IPv6(packet)))[-5:] == b"hello"

for kind in (IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop):
    association, packet = sealed([kind(options=[PadN(optdata=bytes(4))])])
    assert packet[40] == 50, f"{kind.__name__}: next header {packet[40]} now: {packet.hex()}"
    assert packet[48:52] == PORTS, f"{kind.__name__}: {packet.hex()}"
    try:
        association.decrypt(IPv6(packet))
    except TypeError as error:
        assert str(error) == "packet spi=0x11941194 does not match the SA spi=0x1234", error
    else:
        raise SystemExit(f"scapy opens its packet with {kind.__name__} now")
PYTHON
echo "scapy $version: behind IPv6's options it says that ESP follows, where UDP does"

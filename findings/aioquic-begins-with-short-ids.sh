#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# aioquic's `connection_id_length` is "the length in bytes of local connection IDs". A client uses
# it for the server's first ID too, which it makes up, and which has to have eight bytes at least
# (RFC 9000 7.2). A client with shorter IDs of its own, which are allowed, is therefore refused by
# servers that look, and the length of its own IDs seems to be the reason.
#
# Seen with aioquic 1.7.2 (PyPI), Python 3.11, Linux, 2026-11-29: with 4 the first packet has a
# destination ID of four bytes. quinn-proto 0.11.19 (crates.io) answered such a packet by one that
# closes the connection. With 8 it began one.
#
# A test that wants a client with short IDs, or with none, takes another client. Where aioquic is
# the client, leave the option at 8 or more.
set -euo pipefail
version=1.7.2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "aioquic==$version" cryptography==50.0.2

"$folder/venv/bin/python" - <<'PYTHON'
from aioquic.buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicPacketType, pull_quic_header


def first_ids(length):
    """The lengths of destination and source ID in the first packet of a client."""
    client = QuicConnection(configuration=QuicConfiguration(is_client=True, connection_id_length=length))
    client.connect(("server", 1), now=0.0)
    datagram, _ = client.datagrams_to_send(now=0.0)[0]
    header = pull_quic_header(Buffer(data=datagram))
    assert header.packet_type == QuicPacketType.INITIAL
    return len(header.destination_cid), len(header.source_cid)


for length in (4, 7, 8, 20):
    found = first_ids(length)
    assert found == (length, length), f"with connection_id_length={length}: {found}"
PYTHON
echo "aioquic $version: a client with IDs of four bytes makes up a server's ID of four bytes"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# A response to HEAD may say by `content-length` how long the body would be, and has no body (RFC
# 9110 8.6 and 9.3.2). aioquic's client holds the number against the body of zero bytes all the
# same, and closes the whole connection by H3_MESSAGE_ERROR, other requests included.
#
# Seen with aioquic 1.7.2 (PyPI), Python 3.11, Linux, 2026-11-29; the server is aioquic's own:
#     0x10e  content-length does not match data size
# A test by aioquic asks for lengths by GET, or has a connection of its own for each HEAD. A server
# has nothing to change.
set -euo pipefail
version=1.7.2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "aioquic==$version" cryptography==50.0.2

"$folder/venv/bin/python" - <<'PYTHON'
import datetime
import ssl

from aioquic.h3.connection import ErrorCode, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec


def certified():
    """A key, and a certificate that nobody verifies."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1)
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return key, made.sign(key, hashes.SHA256())


class Pair:
    """A client and a server in memory, without a network."""

    def __init__(self):
        key, certificate = certified()
        client = QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE)
        server = QuicConfiguration(
            is_client=False, alpn_protocols=["h3"], certificate=certificate, private_key=key
        )
        self.client = QuicConnection(configuration=client)
        self.server = QuicConnection(
            configuration=server,
            original_destination_connection_id=self.client.original_destination_connection_id,
        )
        self.now = 0.0
        self.client.connect(("server", 1), now=self.now)
        self.exchange()
        self.of = {end: H3Connection(end) for end in (self.client, self.server)}
        self.exchange()
        self.events(self.client), self.events(self.server)

    def exchange(self):
        for _ in range(8):
            for datagram, _ in self.client.datagrams_to_send(now=self.now):
                self.server.receive_datagram(datagram, ("client", 1), now=self.now)
            for datagram, _ in self.server.datagrams_to_send(now=self.now):
                self.client.receive_datagram(datagram, ("server", 1), now=self.now)
            self.now += 0.01

    def events(self, end):
        found = []
        while (event := end.next_event()) is not None:
            found += [event] if isinstance(event, ConnectionTerminated) else self.of[end].handle_event(event)
        return found

    def ask(self, method, length):
        """What the client learns, and then the server."""
        stream = self.client.get_next_available_stream_id()
        request = [(b":method", method), (b":scheme", b"https"), (b":authority", b"server"), (b":path", b"/")]
        self.of[self.client].send_headers(stream, request, end_stream=True)
        self.exchange()
        assert len(self.events(self.server)) == 1
        response = [(b":status", b"200"), (b"content-length", str(length).encode())]
        self.of[self.server].send_headers(stream, response, end_stream=True)
        self.exchange()
        learnt = self.events(self.client)
        self.exchange()
        # A server tells of a connection that was closed when its timer has run out.
        closing = self.server.get_timer()
        if closing is not None and self.client._close_event is not None:
            self.server.handle_timer(closing)
        return learnt, self.events(self.server)


learnt, at_server = Pair().ask(b"GET", 0)
assert [type(event) for event in learnt] == [HeadersReceived] and not at_server, (learnt, at_server)

learnt, at_server = Pair().ask(b"HEAD", 5)
assert not any(isinstance(event, HeadersReceived) for event in learnt), f"HEAD works now: {learnt}"
[end] = at_server
assert end.error_code == ErrorCode.H3_MESSAGE_ERROR == 0x10E, end
assert end.reason_phrase == "content-length does not match data size", end
PYTHON
echo "aioquic $version: a client closes the connection when a response to HEAD has a content-length"

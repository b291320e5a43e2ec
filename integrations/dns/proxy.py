# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A resolver between client and name server that lies, or never answers."""

import socket
import struct
import threading

SVCB, RRSIG = 64, 46


def records(message):
    """The begin, end, type and place of the TTL of each record, section by section."""
    counts = struct.unpack_from(">HHHH", message, 4)
    place = 12
    for _ in range(counts[0]):
        place = skip_name(message, place) + 4
    for section in (1, 2, 3):
        for _ in range(counts[section]):
            begin, place = place, skip_name(message, place)
            kind, _, _, length = struct.unpack_from(">HHIH", message, place)
            ttl, place = place + 4, place + 10 + length
            yield section, begin, place, kind, ttl


def skip_name(message, place):
    while True:
        length = message[place]
        if length >= 0xC0:
            return place + 2
        place += 1 + length
        if length == 0:
            return place


def without_signatures(message):
    """The answer without the signatures over tickets."""
    out = bytearray(message)
    for section, begin, end, kind, ttl in reversed(list(records(message))):
        covers = struct.unpack_from(">H", message, ttl + 6)[0] if kind == RRSIG else 0
        if section == 1 and covers == SVCB:
            del out[begin:end]
            struct.pack_into(">H", out, 6, struct.unpack_from(">H", out, 6)[0] - 1)
    return bytes(out)


def with_long_ttls(message):
    """The answer as one that is good for 68 years."""
    out = bytearray(message)
    for section, _, _, _, ttl in records(message):
        if section == 1:
            struct.pack_into(">I", out, ttl, 0x7FFFFFFF)
    return bytes(out)


def take(stream, length):
    data = b""
    while len(data) < length:
        more = stream.recv(length - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


class Proxy:
    """Hands questions on to a server, and its answers back as `change` makes them; without one it is
    silent."""

    def __init__(self, port, change, upstream=None):
        self.port, self.change, self.upstream = port, change, upstream
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.tcp = socket.socket()
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.udp.bind(("127.0.0.1", port))
        self.tcp.bind(("127.0.0.1", port))
        self.tcp.listen()
        if change:
            threading.Thread(target=self.datagrams, daemon=True).start()
            threading.Thread(target=self.streams, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def datagrams(self):
        while True:
            question, client = self.udp.recvfrom(65_535)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
                server.settimeout(2)
                server.sendto(question, ("127.0.0.1", self.upstream))
                self.udp.sendto(self.change(server.recv(65_535)), client)

    def streams(self):
        while True:
            client, _ = self.tcp.accept()
            threading.Thread(target=self.stream, args=(client,), daemon=True).start()

    def stream(self, client):
        with client, socket.create_connection(("127.0.0.1", self.upstream)) as server:
            try:
                while True:
                    length = take(client, 2)
                    server.sendall(length + take(client, *struct.unpack(">H", length)))
                    answer = self.change(take(server, *struct.unpack(">H", take(server, 2))))
                    client.sendall(struct.pack(">H", len(answer)) + answer)
            except ConnectionError:
                pass

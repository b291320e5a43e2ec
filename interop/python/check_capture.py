#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reads a capture of a real run without any code of the project.

1. `smt serve --echo` and `smt call` run as two processes; a forwarder between them writes a capture file.
2. The capture is read back: handshake parameters from the clear flights, DATA put together by id and offset.
3. Secrets come from the key log, keys by HKDF, and a stock AEAD (package `cryptography`) opens every record.
4. Each message must come out exactly as it was given to `smt call`, once as request and once as reply.

With the Go client of `interop/go` it does the same with a session by ticket (SPEC §6.7): the flights in the capture
must be those of the server's ticket, and a request that left with flight 1 (SPEC §6.8) is in no DATA; its reply is.

Usage: check_capture.py PATH-TO-SMT [PATH-TO-GO-CLIENT]    (docs/draft-smt-00.md has the sections that are meant below)
"""
import hashlib
import hmac
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

SUITES = {0x1301: (AESGCM, 16, "sha256"), 0x1302: (AESGCM, 32, "sha384"), 0x1303: (ChaCha20Poly1305, 32, "sha256")}
DATA, HANDSHAKE = 0x01, 0x10
OVERHEAD = 22
INNER_HEADER = 40


class Forwarder(threading.Thread):
    """Passes datagrams between one client and the server and records them as raw-IP packets (SPEC §15.1)."""

    def __init__(self, server, path):
        super().__init__(daemon=True)
        self.server, self.file = server, open(path, "wb")
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 101))
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back.connect(server)
        self.stop, self.client = False, None

    def run(self):
        while not self.stop:
            ready, _, _ = select.select([self.front, self.back], [], [], 0.1)
            for end in ready:
                try:
                    if end is self.front:
                        datagram, self.client = self.front.recvfrom(65_535)
                        self.record(self.client, self.server, datagram)
                        self.back.send(datagram)
                    elif self.client:
                        datagram = self.back.recv(65_535)
                        self.record(self.server, self.client, datagram)
                        self.front.sendto(datagram, self.client)
                except OSError:  # an end has gone
                    pass

    def record(self, source, target, datagram):
        udp = struct.pack(">HHHH", source[1], target[1], 8 + len(datagram), 0) + datagram
        addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
        packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses + udp
        self.file.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)

    def close(self):
        self.stop = True
        self.join()
        self.file.close()


def datagrams(path):
    """UDP payloads of a classic capture file of raw IPv4 packets."""
    capture = Path(path).read_bytes()
    at = 24
    while at < len(capture):
        (length,) = struct.unpack_from("<I", capture, at + 8)
        yield capture[at + 16 + 28 : at + 16 + length]
        at += 16 + length


def packets(datagram):
    """The packets of a datagram (SPEC §3.1)."""
    while datagram:
        (length,) = struct.unpack_from(">H", datagram, 6)
        length = length or len(datagram)
        yield datagram[:length]
        datagram = datagram[length:]


class Capture:
    """The clear parts of a capture."""

    def __init__(self, path):
        self.messages, self.flights, self.index_bits, self.exchanges = {}, {}, {}, {}
        for packet in (packet for datagram in datagrams(path) for packet in packets(datagram)):
            if packet[1] == DATA:
                self.add_data(packet)
            elif packet[1] == HANDSHAKE and packet[28] in (1, 2):
                self.add_flight(packet)

    def add_data(self, packet):
        session, message, padded, offset = struct.unpack_from(">QQII", packet, 12)
        _, epoch, stream = self.messages.setdefault((session, message), (padded, packet[2], {}))
        assert epoch == packet[2], "the run is too short for a key update"
        stream[offset] = packet[36:]

    def add_flight(self, packet):
        """Params of flights 1 and 2: the sender's index and its index bits (SPEC §6.3)."""
        source, cookie, fragment, whole, offset = struct.unpack_from(">QxBHII", packet, 20)
        parts = self.flights.setdefault((source, packet[28]), {})
        parts[offset] = packet[40 + cookie : 40 + cookie + fragment]
        body = b"".join(parts[offset] for offset in sorted(parts))
        (length,) = struct.unpack_from(">H", body)
        if len(body) < 2 + length:
            return
        params, tags = body[2 : 2 + length], {}
        while params:
            tags[params[0]] = params[2 : 2 + params[1]]
            params = params[2 + params[1] :]
        side = "client" if packet[28] == 1 else "server"
        self.index_bits[side] = tags[5][0]
        if len(body) == whole:
            self.exchanges[side] = (tags[2][0], body[2 + length :])


def expand_label(digest, secret, label, length):
    """HKDF-Expand-Label with an empty context (RFC 8446 §7.1)."""
    name = b"tls13 " + label
    info = struct.pack(">HB", length, len(name)) + name + b"\0"
    return hmac.new(secret, info + b"\1", digest).digest()[:length]


def secrets(path):
    """Data secrets of the key log (SPEC §13), by receiver's index and epoch."""
    found = {}
    for line in Path(path).read_text().splitlines():
        label, index, side, purpose, epoch, suite, secret = line.split()
        assert label == "SMT_SECRET"
        if purpose == "data":
            found[int(index, 16), int(epoch)] = (side, int(suite, 16), bytes.fromhex(secret))
    return found


def open_message(capture, keys, session, message):
    """All records of a message, opened and checked; its application bytes (SPEC §5)."""
    padded, epoch, parts = capture.messages[session, message]
    side, suite, secret = keys[session, epoch]
    cipher, key_length, digest = SUITES[suite]
    aead = cipher(expand_label(digest, secret, b"key", key_length))
    iv = int.from_bytes(expand_label(digest, secret, b"iv", 12), "big")
    stream = b""
    for offset in sorted(parts):
        assert offset <= len(stream), f"the capture misses bytes of message {message}"
        stream = stream[:offset] + parts[offset] + stream[offset + len(parts[offset]) :]
    inner, index = b"", 0
    while stream:
        header, length = stream[:5], struct.unpack_from(">H", stream, 3)[0]
        sequence = message << capture.index_bits[side] | index
        nonce = (iv ^ sequence).to_bytes(12, "big")
        plaintext = aead.decrypt(nonce, stream[5 : 5 + length], header)
        content = plaintext.rstrip(b"\0")
        assert header[:3] == b"\x17\x03\x03" and content.endswith(b"\x17")
        inner += content[:-1]
        stream, index = stream[5 + length :], index + 1
    true, said_padded, kind = struct.unpack_from(">IIB", inner)
    assert said_padded == padded and len(inner) == INNER_HEADER + true, "lengths disagree"
    return kind, inner[INNER_HEADER:]


def run(smt, directory):
    """One real run; the messages that were sent."""
    def keys(*arguments):
        subprocess.run([smt, "keys", *arguments], check=True, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    keys("ca", "--out", "ca")
    keys("server", "localhost", "--ca", "ca", "--out", "server")
    certificate, key, authority = "server/localhost.pem", "server/localhost.key", "ca/ca.pem"
    server = subprocess.Popen(
        [smt, "serve", "127.0.0.1:0", "--echo", "--cert", certificate, "--key", key, "--key-log", "keylog"],
        cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    address = server.stdout.readline().split()[-1].rsplit(":", 1)
    forwarder = Forwarder((address[0], int(address[1])), directory / "run.pcap")
    forwarder.start()
    chance = random.Random(int(os.environ.get("SMT_SEED", "1")))
    messages = [chance.randbytes(size) for size in (0, 1, 64, 1_102, 1_103, 20_000, 300_000)]
    for message in messages:
        call = [smt, "call", f"127.0.0.1:{forwarder.front.getsockname()[1]}", "--ca", authority, "--name", "localhost"]
        reply = subprocess.run(call, input=message, check=True, cwd=directory, stdout=subprocess.PIPE).stdout
        assert reply == message, "the echo differs"
    forwarder.close()
    server.terminate()
    server.wait()
    return messages


EARLY = 500


def run_by_ticket(smt, go, directory):
    """One real run of the Go client, with a request in flight 1; the ticket."""
    def keys(*arguments):
        subprocess.run([smt, "keys", *arguments], check=True, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    keys("ca", "--out", "ca")
    keys("server", "localhost", "--ca", "ca", "--out", "server")
    server = subprocess.Popen(
        [smt, "serve", "127.0.0.1:0", "--echo", "--cert", "server/localhost.pem", "--key", "server/localhost.key",
         "--key-log", "keylog", "--tickets-zone-file", "zone", "--tickets-early-data"],
        cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    address = server.stdout.readline().split()[-1].rsplit(":", 1)
    forwarder = Forwarder((address[0], int(address[1])), directory / "run.pcap")
    forwarder.start()
    for _ in range(100):
        if (directory / "zone").exists():
            break
        threading.Event().wait(0.1)
    # The server empties the file when it ends.
    zone = re.search(r"TYPE64 +\\# +\d+ +\(([0-9a-fA-F\s]+)\)", (directory / "zone").read_text())
    subprocess.run(
        [go, "-addr", f"127.0.0.1:{forwarder.front.getsockname()[1]}", "-name", "localhost", "-ca", "ca/ca.pem",
         "-ticket", "zone", "-ticket-port", address[1], "-early", str(EARLY), "-expect-early", "-expect-exchange", "2",
         "-calls-only", "-bundles=false", "-probe", "", "-sizes", "0,64,1102,20000"],
        check=True, cwd=directory, stdout=subprocess.DEVNULL)
    forwarder.close()
    server.terminate()
    server.wait()
    rdata = bytes.fromhex("".join(zone[1].split()))
    key, length = struct.unpack_from(">HH", rdata, 3)
    assert key == 65_280, "the first key is the ticket's"
    return rdata[7 : 7 + length]


def counted(data, at):
    """A string with its length as u16 before it, and where it ends."""
    (length,) = struct.unpack_from(">H", data, at)
    assert at + 2 + length <= len(data), "a flight is cut short"
    return data[at + 2 : at + 2 + length], at + 2 + length


def check_flights(capture, ticket):
    """Both flights are those of the ticket, with forward secrecy, and the early data is taken (SPEC §6.7, §6.8)."""
    (exchange, client), (answered, server) = capture.exchanges["client"], capture.exchanges["server"]
    assert (exchange, answered) == (2, 2), "the key exchange is by ticket"
    suite, ticket_hash = struct.unpack_from(">H32s", client)
    assert ticket_hash == hashlib.sha256(ticket).digest(), "flight 1 names another ticket"
    share, at = counted(client, 66)
    ephemeral, at = counted(client, at)
    assert (len(share), len(ephemeral)) == (1_088 + 32, 1_184 + 32), "shares of X25519MLKEM768"
    hash_length = hashlib.new(SUITES[suite][2]).digest_size
    sealed, at = counted(client, at + hash_length)
    assert at == len(client) and len(sealed) == 2 + 20 + EARLY + 16, "an early request in the sealed part, and no certificate"
    answer, at = counted(server, 33)
    assert server[0] == 4 and len(answer) == 1_088 + 32, "the server takes the early data"
    assert len(server) == at + hash_length, "flight 2 ends with finished"


def check_by_ticket(smt, go):
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        ticket = run_by_ticket(smt, go, directory)
        capture, keys = Capture(directory / "run.pcap"), secrets(directory / "keylog")
    check_flights(capture, ticket)
    bodies = {1: {}, 2: {}}
    for session, message in sorted(capture.messages):
        kind, body = open_message(capture, keys, session, message)
        bodies[kind][message] = body
    requests, replies = bodies[1], bodies[2]
    assert 0 not in requests and len(replies[0]) == EARLY, "the early request is in flight 1 alone"
    del replies[0]
    assert len(requests) == 4 and requests == replies, "a request or a reply is missing, or differs"
    return 1 + len(requests) + len(replies)


def main():
    smt = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        messages = run(smt, directory)
        capture, keys = Capture(directory / "run.pcap"), secrets(directory / "keylog")
    opened = [open_message(capture, keys, *name) for name in sorted(capture.messages)]
    for kind, what in ((1, "request"), (2, "reply")):
        found = sorted(hashlib.sha256(body).digest() for is_kind, body in opened if is_kind == kind)
        assert found == sorted(hashlib.sha256(body).digest() for body in messages), f"a {what} is missing or differs"
    count = len(opened)
    if len(sys.argv) > 2:
        count += check_by_ticket(smt, str(Path(sys.argv[2]).resolve()))
    print(f"{count} passed, 0 failed")


if __name__ == "__main__":
    main()

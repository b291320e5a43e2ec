#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks records.json, key_schedule.json, padding.json, transcript.json, tickets.json and the inner
headers, bundles and metadata of packets.json against docs/draft-smt-00.md.

Written from the specification alone, with Python's hmac and hashlib and the AEADs of the package
`cryptography`. Prints "N passed, 0 failed" and ends with status 0 if every vector holds.

    python3 vectors/check.py [directory]
"""

import hashlib
import hmac
import json
import pathlib
import re
import sys

from cryptography import x509
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

try:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
except ImportError:  # an older version: secrets of ML-KEM are taken as they are given
    MLKEM768PrivateKey = None

# TLS number: AEAD, key length, hash (SPEC 5.1).
SUITES = {
    "1301": (AESGCM, 16, "sha256"),
    "1302": (AESGCM, 32, "sha384"),
    "1303": (ChaCha20Poly1305, 32, "sha256"),
}
INNER_HEADER = 40
OVERHEAD = 22
SECRETS = [(side, purpose) for side in ("client", "server") for purpose in ("data", "control")]


def require(condition, what):
    if not condition:
        raise ValueError(what)


def equal(found, expected, what):
    require(found == expected, f"{what}: found {found!r}, expected {expected!r}")


def unhex(text, length=None):
    require(text == text.lower(), "hex is lower-case")
    data = bytes.fromhex(text)
    if length is not None:
        equal(len(data), length, "length")
    return data


# RFC 5869 and RFC 8446 section 7.1.

def extract(name, salt, ikm):
    return hmac.new(salt, ikm, name).digest()


def expand(name, prk, info, length):
    out, block, counter = b"", b"", 1
    while len(out) < length:
        block = hmac.new(prk, block + info + bytes([counter]), name).digest()
        out += block
        counter += 1
    return out[:length]


def expand_label(name, secret, label, context, length):
    label = b"tls13 " + label.encode()
    info = length.to_bytes(2, "big") + bytes([len(label)]) + label
    return expand(name, secret, info + bytes([len(context)]) + context, length)


def hash_of(name, data):
    return hashlib.new(name, data).digest()


def nonce(iv, number):
    return bytes(a ^ b for a, b in zip(iv, number.to_bytes(12, "big")))


def open_sealed(suite, epoch, number, aad, sealed):
    """Plaintext of what is sealed; InvalidTag if the tag is wrong."""
    aead = SUITES[suite][0](unhex(epoch["key"]))
    return aead.decrypt(nonce(unhex(epoch["iv"]), number), sealed, aad)


# SPEC 7: keys.

def check_epochs(suite, epochs, first_secret):
    """Secret, key and IV of every epoch follow from the first secret."""
    _, key_length, name = SUITES[suite]
    secret = first_secret
    for number, epoch in enumerate(epochs):
        if number > 0:
            secret = expand_label(name, secret, "traffic upd", b"", len(secret))
        equal(epoch["secret"], secret.hex(), f"secret of epoch {number}")
        equal(epoch["key"], expand_label(name, secret, "key", b"", key_length).hex(), "key")
        equal(epoch["iv"], expand_label(name, secret, "iv", b"", 12).hex(), "iv")


def check_parameter_hash(vector):
    data = b""
    for side in ("client", "server"):
        params = unhex(vector[side])
        data += len(params).to_bytes(4, "big") + params
    equal(vector["hash"], hash_of("sha256", data).hex(), "parameter hash")


def check_exported(name, exporter_secret, vectors):
    """SPEC 7.4."""
    require(vectors, "exported secrets")
    for vector in vectors:
        derived = expand_label(name, exporter_secret, vector["label"], b"", len(exporter_secret))
        context = hash_of("sha256", unhex(vector["context"]))
        secret = unhex(vector["secret"])
        equal(secret, expand_label(name, derived, "exporter", context, len(secret)), "exported secret")


def check_handover(vector):
    """SPEC 7.5."""
    name = SUITES[vector["control_suite"]][2]
    secret = unhex(vector["exporter_secret"], hashlib.new(name).digest_size)
    adopters = {side: unhex(vector[f"{side}_adopter"], 16) for side in ("client", "server")}
    terms = bytes.fromhex(vector["suite"]) + vector["valid_until"].to_bytes(8, "big")
    terms += unhex(vector["number"], 8) + adopters["client"] + adopters["server"]
    equal(vector["context"], terms.hex(), "terms")
    derived = expand_label(name, secret, "EXPORTER-smt-1 handover", b"", len(secret))
    exported = expand_label(name, derived, "exporter", hash_of("sha256", terms), 48)
    equal(vector["key_name"], exported[:16].hex(), "key name")
    equal(vector["ikm"], exported[16:].hex(), "ikm")
    for side, adopter in adopters.items():
        equal(vector[side], adopter.hex(), "identity")
    peer_name, side = vector["peer_name"].encode(), ("client", "server").index(vector["side"])
    require(1 <= len(peer_name) <= 255, "a name has 1 to 255 bytes")
    value = b"SMTH" + bytes([1, side]) + terms + (vector["credentials_end"] or 0).to_bytes(8, "big")
    equal(vector["value"], (value + exported + bytes([len(peer_name)]) + peer_name).hex(), "value")


def check_exporter(vector):
    suite = vector["suite"]
    name = SUITES[suite][2]
    length = hashlib.new(name).digest_size
    master = unhex(vector["exporter_master_secret"], length)
    context = hash_of(name, unhex(vector["parameter_hash"], 32))

    def export(label):
        derived = expand_label(name, master, label, hash_of(name, b""), length)
        return expand_label(name, derived, "exporter", context, length)

    exporter_secret = export("EXPORTER-smt-1 exporter")
    equal(vector["exporter_secret"], exporter_secret.hex(), "exporter secret")
    check_exported(name, exporter_secret, vector["exported"])
    equal(len(vector["secrets"]), 4, "secrets")
    for side, purpose in SECRETS:
        first = export(f"EXPORTER-smt-1 {side} {purpose}")
        epochs = vector["secrets"][f"{side} {purpose}"]
        equal(len(epochs), 3, "epochs")
        check_epochs(suite, epochs, first)


def check_registered(vector):
    suite = vector["suite"]
    _, key_length, name = SUITES[suite]
    if vector["name"].startswith("TLS keys"):
        unhex(vector["ikm"], 2 * (key_length + 12))
    key_name, client, server = (unhex(vector[field]) for field in ("key_name", "client", "server"))
    for identity in (client, server):
        require(1 <= len(identity) <= 255, "an identity has 1 to 255 bytes")
    require(client != server, "a key joins two ends")
    ends = bytes([len(client)]) + client + bytes([len(server)]) + server
    imported_identity = len(key_name).to_bytes(2, "big") + key_name
    imported_identity += len(ends).to_bytes(2, "big") + ends
    imported_identity += bytes.fromhex("5301") + {"sha256": b"\0\1", "sha384": b"\0\2"}[name]
    length = hashlib.new(name).digest_size
    digest = hash_of("sha256", imported_identity)
    epskx = extract("sha256", b"", unhex(vector["ikm"]))
    ipskx = expand_label("sha256", epskx, "derived psk", digest, length)
    context = unhex(vector["parameter_hash"], 32)
    prk = extract(name, context, ipskx)
    check_exported(name, expand_label(name, prk, "smt exporter", context, len(prk)), vector["exported"])
    equal(len(vector["secrets"]), 4, "secrets")
    for side, purpose in SECRETS:
        first = expand_label(name, prk, f"smt {side} {purpose}", context, len(prk))
        epochs = vector["secrets"][f"{side} {purpose}"]
        equal(len(epochs), 3, "epochs")
        check_epochs(suite, epochs, first)


# SPEC 3.4: control packets.

TYPES = {
    "CONFIRM": 0x20, "GRANT": 0x21, "RESEND": 0x22, "ACK": 0x24, "NEVER_SEEN": 0x29,
    "WINDOW_REQUEST": 0x2D, "EPOCH_DONE": 0x2F, "PING": 0x31, "CLOSE": 0x35,
}


def check_control(vector):
    packet, aad = unhex(vector["packet"]), unhex(vector["aad"])
    plaintext = unhex(vector["plaintext"])
    check_epochs(vector["suite"], [vector], unhex(vector["secret"]))
    equal(packet[: len(aad)], aad, "aad")
    equal(packet[0], 1, "version")
    equal(packet[1], TYPES[vector["name"]], "type")
    equal(packet[4], 0x50, "header words")
    equal(int.from_bytes(packet[6:8], "big"), len(packet), "length field")
    counter = int.from_bytes(unhex(vector["counter"], 8), "big")
    require(counter < 1 << 48, "counter of 48 bits")
    number = vector["stripe"] << 48 | counter
    equal(int.from_bytes(packet[20:28], "big"), number, "number")
    equal(len(plaintext), 16 if vector["name"] == "CONFIRM" else 0, "plaintext")
    if vector["name"] == "CONFIRM":
        equal(len(packet), 60, "length of CONFIRM")
    opened = open_sealed(vector["suite"], vector, number, aad, packet[len(aad):])
    equal(opened, plaintext, "plaintext")


# SPEC 4.1, 5: ids, inner stream, records.

def check_message_id(message):
    k = message["stripes_log2"]
    require(message["sender"] in ("client", "server"), "sender")
    for bits in (message["index_bits"], message["peer_index_bits"]):
        require(8 <= bits <= 17, "index bits")
    initiator = ("client", "server").index(message["initiator"])
    require(message["stripe"] < 1 << k, "stripe in range")
    counter = int.from_bytes(unhex(message["counter"], 8), "big")
    expected = counter << (k + 1) | initiator << k | message["stripe"]
    equal(message["id"], f"{expected:016x}", "id")
    id_bits = 64 - max(message["index_bits"], message["peer_index_bits"])
    require(expected < 1 << id_bits, "id in range")
    return expected


def check_inner_stream(message):
    inner = unhex(message["inner_stream"], INNER_HEADER + message["true_length"])
    fields = split_inner_header(inner[:INNER_HEADER])
    equal(fields["true_length"], message["true_length"], "true length")
    equal(fields["padded_length"], message["padded_length"], "padded length")
    own = message["initiator"] == message["sender"]
    require(own == (fields["kind"] != "REPLY"), "kind and initiator agree")
    equal(inner[10:12], bytes(2), "reserved")
    if fields["kind"] not in ("REQUEST", "REPLY"):
        equal(inner[16:20], bytes(4), "field of requests and replies")
    if fields["kind"] == "BUNDLE" or fields["kind"] == "REPLY" and fields["failure"] is None:
        equal(inner[12:16], bytes(4), "a code is that of a failure")
    if fields["kind"] == "BUNDLE":
        split_bundle(inner[INNER_HEADER:])
    return inner


# SPEC 5.2: the inner header, and what it has in common with the header of a member (SPEC 5.7).

KINDS = {1: "REQUEST", 2: "REPLY", 3: "ONE_WAY", 4: "BUNDLE", 5: "PART"}
FAILURE, NOT_RUN, METADATA, REPLY_IN_PARTS, MORE = 1, 2, 4, 8, 16
FLAGS = {
    "REQUEST": METADATA | REPLY_IN_PARTS | MORE,
    "REPLY": FAILURE | NOT_RUN | METADATA,
    "ONE_WAY": METADATA,
    "BUNDLE": 0,
    "PART": MORE,
}


def split_kind(kind, flags, first, second):
    """The fields whose meaning follows from the kind, as packets.json has them: of the kind and flags
    as they travel, and the two numbers behind them."""
    require(kind in KINDS, "kind")
    kind = KINDS[kind]
    require(flags & ~FLAGS[kind] == 0, "flags of the kind")
    require(flags & FAILURE or not flags & NOT_RUN, "a reply that has not run is a failure")
    number = {"REPLY": second, "PART": first}.get(kind, 0)
    parts = {"reply_in_parts": bool(flags & REPLY_IN_PARTS), "more": bool(flags & MORE), "number": number}
    return {
        "kind": kind,
        "deadline_us": first if kind in ("REQUEST", "ONE_WAY") else 0,
        "reply_unscheduled": second if kind == "REQUEST" else 0,
        "failure": {"code": first, "not_run": bool(flags & NOT_RUN)} if flags & FAILURE else None,
        "has_metadata": bool(flags & METADATA),
        # Null is short for marks that say nothing; a part always has a number.
        "parts": parts if any(parts.values()) or kind == "PART" else None,
    }


def split_inner_header(data):
    """Fields of an inner header, as packets.json has them."""
    equal(len(data), INNER_HEADER, "length of an inner header")
    true_length, padded_length = (int.from_bytes(data[a : a + 4], "big") for a in (0, 4))
    require(padded_length >= INNER_HEADER + true_length, "padded length not below the true one")
    first, second, window = (int.from_bytes(data[a : a + 4], "big") for a in (12, 16, 20))
    return {
        "true_length": true_length,
        "padded_length": padded_length,
        **split_kind(data[8], data[9], first, second),
        "window": window,
        "ack": {"base": data[24:32].hex(), "bits": data[32:].hex()} if any(data[32:]) else None,
    }


def check_inner_header(vector):
    equal(split_inner_header(unhex(vector["hex"])), vector["fields"], "fields")


def check_malformed_inner_header(vector):
    refused(split_inner_header, vector, "an inner header")


def refused(split, vector, what):
    try:
        split(unhex(vector["hex"]))
    except ValueError:
        return
    raise ValueError(f"{what} is well formed that must not be")


# SPEC 5.8: metadata.

NAME = re.compile(rb"[a-z0-9._-]{1,255}")


def split_metadata(data):
    """Entries and body of application bytes that begin with metadata, as packets.json has them."""
    require(len(data) >= 2, "length of the metadata")
    at, end = 2, 2 + int.from_bytes(data[:2], "big")
    require(end <= min(2 + 4096, len(data)), "metadata is whole and not too long")
    entries = []
    while at < end:
        name_end = at + 1 + data[at]
        name = data[at + 1 : name_end]
        value_at = name_end + 2
        value_end = value_at + int.from_bytes(data[name_end:value_at], "big")
        require(value_at <= value_end <= end, "entry is whole")
        require(NAME.fullmatch(name), "name of an entry")
        entries.append({"name": name.decode(), "value": data[value_at:value_end].hex()})
        at = value_end
    require(len(entries) <= 64, "entries are not too many")
    return entries, data[end:]


def check_metadata(vector):
    entries, body = split_metadata(unhex(vector["hex"]))
    equal(entries, vector["entries"], "entries")
    equal(body.hex(), vector["body"], "body")


def check_malformed_metadata(vector):
    refused(split_metadata, vector, "metadata")


def extents(message):
    """Extent of every record (SPEC 5.3)."""
    first, rest = message["first_record_size"], message["record_size"]
    require(64 <= first <= rest <= 16384, "record sizes")
    left = message["padded_length"]
    sizes = [min(first, left)]
    left -= sizes[0]
    while left > 0:
        sizes.append(min(rest, left))
        left -= sizes[-1]
    return sizes


def open_record(message, record, number, extent):
    data = unhex(record["record"], extent + OVERHEAD)
    aad, sealed = data[:5], data[5:]
    equal(aad, b"\x17\x03\x03" + (extent + 17).to_bytes(2, "big"), "record header")
    return open_sealed(message["suite"], message["epochs"][record["epoch"]], number, aad, sealed)


def check_message(message):
    suite, index_bits = message["suite"], message["index_bits"]
    check_epochs(suite, message["epochs"], unhex(message["epochs"][0]["secret"]))
    message_id = check_message_id(message)
    inner = check_inner_stream(message)
    sizes = extents(message)
    equal(len(message["records"]), len(sizes), "records")
    start = offset = epoch = 0
    for index, (record, extent) in enumerate(zip(message["records"], sizes)):
        equal(record["index"], index, "index")
        equal(record["offset"], offset, "offset")
        require(index < 1 << index_bits, "index in range")
        require(record["epoch"] >= epoch, "epochs never go back")
        epoch = record["epoch"]
        number = message_id << index_bits | index
        equal(record["sequence"], f"{number:016x}", "sequence number")
        content = inner[start : start + extent]
        expected = (content + b"\x17").ljust(extent + 1, b"\0")
        equal(open_record(message, record, number, extent), expected, f"record {index}")
        check_stays_closed(message, record, number, extent)
        start += extent
        offset += extent + OVERHEAD
    equal(offset, message["stream_length"], "stream length")
    equal(epoch, len(message["epochs"]) - 1, "epochs")


def check_stays_closed(message, record, number, extent):
    """The record does not open as its neighbour, nor with a flipped bit."""
    damaged = dict(record, record=record["record"][:-1] + f"{int(record['record'][-1], 16) ^ 1:x}")
    for other, at in ((record, number ^ 1), (damaged, number)):
        try:
            open_record(message, other, at, extent)
        except InvalidTag:
            continue
        raise ValueError("a record opened that must not")


# SPEC 5.6: padding.

def floor_log2(value):
    return value.bit_length() - 1


def check_padding(vector):
    length, block = vector["true_inner"], vector["block"]
    if vector["policy"] == "none":
        padded = length
    elif vector["policy"] == "block":
        padded = -(-length // block) * block
    else:
        equal(vector["policy"], "padme", "policy")
        exponent = floor_log2(length)
        mask = (1 << (exponent - floor_log2(exponent) - 1)) - 1
        padded = (length + mask) & ~mask
    equal(vector["padded"], min(padded, vector["max"]), "padded length")


# SPEC 5.7: bundles.

def split_bundle(data):
    """Members of a bundle's application bytes, as packets.json has them."""
    members, at = [], 0
    while at < len(data) or not members:
        head = data[at : at + 20]
        require(len(head) == 20 and head[8] in KINDS and head[8] != 4, "header of a member")
        end = at + 20 + int.from_bytes(head[10:12], "big")
        require(end <= len(data), "member is whole")
        first, second = (int.from_bytes(head[a : a + 4], "big") for a in (12, 16))
        members.append({
            "id": head[:8].hex(),
            **split_kind(head[8], head[9], first, second),
            "body": data[at + 20 : end].hex(),
        })
        at = end
    return members


def check_bundle(vector):
    equal(split_bundle(unhex(vector["hex"])), vector["members"], "members")


def check_malformed_bundle(vector):
    refused(split_bundle, vector, "a bundle")


# A whole session (SPEC Appendix B).

PEER = {"client": "server", "server": "client"}


def split_params(data):
    """Values by tag (SPEC 6.3)."""
    values, at, last = {}, 0, 0
    while at < len(data):
        tag, length = data[at], data[at + 1]
        require(tag > last, "tags ascend")
        require(at + 2 + length <= len(data), "parameter is whole")
        values[tag] = data[at + 2 : at + 2 + length]
        at, last = at + 2 + length, tag
    return values


class Transcript:
    """Both sides of a session, who take its datagrams one after the other."""

    def __init__(self, vector):
        self.suite = vector["suite"]
        self.keys = vector["secrets"]
        self.tokens = vector["reset_tokens"]
        # By sender.
        self.params, self.flights, self.streams = {}, {}, {"client": {}, "server": {}}
        self.numbers = {"client": -1, "server": -1}
        # Claimed by clear headers: of flights and messages, and of senders.
        self.lengths, self.indices = {}, {}
        self.log = []

    def take(self, sender, data):
        while data:
            length = int.from_bytes(data[6:8], "big") or len(data)
            require(12 <= length <= len(data), "length field")
            packet, data = data[:length], data[length:]
            equal(packet[0], 1, "version")
            equal((packet[2], packet[3], packet[5]), (0, 0, 0), "epoch, flags, reserved")
            equal(packet[8:12], bytes(4), "reserved")
            equal(packet[4], 0xB0 if packet[1] == 1 else 0x50, "header words")
            if packet[1] == 0x10:
                self.take_handshake(sender, packet)
                continue
            equal(packet[12:20], self.params[PEER[sender]][3], "session index")
            if packet[1] == 1:
                self.take_data(sender, packet)
            else:
                self.take_control(sender, packet)

    def take_handshake(self, sender, packet):
        number, cookie = packet[28], packet[29]
        equal(number % 2, 1 if sender == "client" else 0, "flight's side")
        fragment, whole, at = (int.from_bytes(packet[a:b], "big") for a, b in ((30, 32), (32, 36), (36, 40)))
        body = self.flights.setdefault(number, b"")
        equal((cookie, at), (0, len(body)), "no cookie, and fragments in order")
        equal(self.lengths.setdefault((sender, number), whole), whole, "flight length")
        if sender == "server":
            equal(len(packet), 40 + fragment, "a server's packets have no zeros behind")
        body += packet[40 : 40 + fragment]
        require(not any(packet[40 + fragment :]), "zeros behind the fragment")
        self.flights[number] = body
        if len(body) == whole:
            length = int.from_bytes(body[:2], "big")
            equal(length > 0, number in (1, 2), "params in flights 1 and 2 alone")
            if length:
                self.params[sender] = split_params(body[2 : 2 + length])
            self.log.append((sender, f"flight {number}"))
        source = self.indices.setdefault(sender, packet[20:28])
        equal(packet[20:28], source, "source index")
        if sender in self.params:
            equal(source, self.params[sender][3], "index in the params")
        if number > 1:
            equal(packet[12:20], self.params[PEER[sender]][3], "destination index")
        else:
            equal(packet[12:20], bytes(8), "destination index of flight 1")

    def take_control(self, sender, packet):
        number = int.from_bytes(packet[20:28], "big")
        equal(number, self.numbers[sender] + 1, "control numbers of stripe 0 are dense")
        self.numbers[sender] = number
        end = len(packet) - (32 if packet[1] == 0x20 else 16)
        opened = open_sealed(self.suite, self.keys[f"{sender} control"], number, packet[:end], packet[end:])
        body = packet[28:end]
        expected = self.tokens[sender] if packet[1] == 0x20 else ""
        equal(opened.hex(), expected, "reset token")
        if packet[1] == 0x20:
            equal((len(body), number), (0, 0), "CONFIRM")
        names = {0x20: "CONFIRM", 0x24: "ACK", 0x25: "NEED_ACK"}
        self.log.append((sender, f"{names[packet[1]]} {body.hex()}".strip()))

    def take_data(self, sender, packet):
        require(self.numbers[PEER[sender]] >= 0, "the peer's CONFIRM has come")
        key, padded = packet[20:28], int.from_bytes(packet[28:32], "big")
        equal(self.lengths.setdefault((sender, key), padded), padded, "message length")
        stream = self.streams[sender].setdefault(key, b"")
        equal(int.from_bytes(packet[32:36], "big"), len(stream), "offset")
        stream += packet[36:]
        self.streams[sender][key] = stream
        chosen = self.params["server"]
        sizes = extents({
            "first_record_size": int.from_bytes(chosen[7], "big"),
            "record_size": int.from_bytes(chosen[6], "big"),
            "padded_length": padded,
        })
        require(len(stream) >= sizes[0] + OVERHEAD, "record 0 travels whole")
        if len(stream) == padded + OVERHEAD * len(sizes):
            self.open_message(sender, int.from_bytes(key, "big"), sizes, stream)

    def open_message(self, sender, message_id, sizes, stream):
        inner = b""
        for index, extent in enumerate(sizes):
            record, stream = stream[: extent + OVERHEAD], stream[extent + OVERHEAD :]
            equal(record[:5], b"\x17\x03\x03" + (extent + 17).to_bytes(2, "big"), "record header")
            number = message_id << self.params[sender][5][0] | index
            plain = open_sealed(self.suite, self.keys[f"{sender} data"], number, record[:5], record[5:])
            equal(plain[extent:], b"\x17", "end of the content, without padding")
            inner += plain[:extent]
        equal(int.from_bytes(inner[:4], "big"), len(inner) - INNER_HEADER, "true length")
        equal(int.from_bytes(inner[4:8], "big"), len(inner), "padded length")
        initiator = ("client", "server")[message_id & 1]
        equal(inner[8] == 2, initiator != sender, "kind and initiator agree")
        split_inner_header(inner[:INNER_HEADER])
        if inner[8] == 4:
            split_bundle(inner[INNER_HEADER:])
        self.log.append((sender, f"message {message_id} of kind {inner[8]}"))


def check_transcript(vector):
    for epoch in vector["secrets"].values():
        check_epochs(vector["suite"], [epoch], unhex(epoch["secret"]))
    equal(sorted(vector["secrets"]), sorted(f"{a} {b}" for a, b in SECRETS), "secrets")
    sides = {"client": vector["client_params"], "server": vector["server_params"]}
    check_parameter_hash({**sides, "hash": vector["parameter_hash"]})
    session = Transcript(vector)
    for datagram in vector["datagrams"]:
        data = unhex(datagram["hex"])
        require(len(data) <= 1200, "datagram of at most 1,200 bytes")
        if datagram["sender"] == "client" and data[1] == 0x10:
            equal(len(data), 1200, "a client's flights are padded")
        session.take(datagram["sender"], data)
    equal(session.params, {side: split_params(unhex(text)) for side, text in sides.items()}, "params")
    for flight in vector["flights"]:
        body = unhex(flight["body"])
        equal(session.flights[flight["flight"]], body, "flight")
        params = unhex(sides[flight["sender"]]) if flight["flight"] < 3 else b""
        expected = len(params).to_bytes(2, "big") + params + unhex(flight["key_exchange"])
        equal(body, expected, "body of the flight")
    ack = "0000000000000001"
    equal(session.log, [
        ("client", "flight 1"),
        ("server", "flight 2"),
        ("client", "flight 3"),
        ("client", "CONFIRM"),
        ("server", "CONFIRM"),
        ("client", "message 0 of kind 1"),
        ("server", "message 0 of kind 2"),
        ("server", f"NEED_ACK {0:016x}"),
        ("client", f"ACK {0:016x}{ack}"),
        ("client", "message 6 of kind 4"),
        ("server", f"ACK {6:016x}{ack}"),
    ], "what the datagrams say")


# SPEC 6.7, 6.8: tickets.

GROUPS = {1: "P-256", 2: "X25519", 3: "X25519MLKEM768"}
ED25519 = "0807"
EXPORTER = "EXPORTER-smt-1 "


class Reader:
    """Reads values from the front of bytes."""

    def __init__(self, data):
        self.data = data

    def take(self, length):
        require(length <= len(self.data), "bytes are cut short")
        taken, self.data = self.data[:length], self.data[length:]
        return taken

    def number(self, length):
        return int.from_bytes(self.take(length), "big")

    def counted(self, width):
        """A string with its length in bytes before it."""
        return self.take(self.number(width))

    def all_counted(self, width):
        """Strings to the end, each with its length before it."""
        while self.data:
            yield self.counted(width)


def counted(width, data):
    return len(data).to_bytes(width, "big") + data


def split_ticket(data):
    """Fields of a ticket, as tickets.json has them."""
    reader = Reader(data)
    equal(reader.number(1), 1, "format")
    group = reader.number(1)
    require(group in GROUPS, "group")
    suites = reader.counted(1)
    require(suites and len(suites) % 2 == 0, "list of suites")
    suites = [suites[at : at + 2].hex() for at in range(0, len(suites), 2)]
    require(all(suite in SUITES for suite in suites), "suites")
    identifier, begin, end, flags = reader.take(16), reader.number(8), reader.number(8), reader.number(1)
    require(begin <= end <= begin + 3_600, "life")
    require(flags < 8, "flags")
    share, names, chain_hash = reader.counted(2), Reader(reader.counted(2)), reader.take(32)
    signed = data[: len(data) - len(reader.data)]
    scheme, signature = reader.take(2), reader.counted(2)
    equal(reader.data, b"", "bytes behind the ticket's end")
    return {
        "group": group,
        "suites": suites,
        "id": identifier.hex(),
        "begin": begin,
        "end": end,
        "forward_secrecy": bool(flags & 1),
        "client_certificate": bool(flags & 2),
        "early_data": bool(flags & 4),
        "share": share.hex(),
        "names": [name.decode() for name in names.all_counted(1)],
        "chain_hash": chain_hash.hex(),
        "signature_input": (b" " * 64 + b"SMT ticket v1" + b"\0" + signed).hex(),
        "scheme": scheme.hex(),
        "signature": signature.hex(),
        "hex": data.hex(),
        "hash": hash_of("sha256", data).hex(),
    }


class Key:
    """A private key of a group, by its parts: the curve's, and the seed of ML-KEM where the side has
    one."""

    def __init__(self, group, parts):
        self.group, self.kem = group, None
        if group == 1:
            self.curve = ec.derive_private_key(int(parts["curve"], 16), ec.SECP256R1())
        else:
            self.curve = X25519PrivateKey.from_private_bytes(unhex(parts["curve"], 32))
        require(group == 3 or parts.get("ml_kem_seed") is None, "a seed of ML-KEM in the hybrid group alone")
        if group == 3 and "ml_kem_seed" in parts and MLKEM768PrivateKey:
            self.kem = MLKEM768PrivateKey.from_seed_bytes(unhex(parts["ml_kem_seed"], 64))

    def on_curve(self):
        """The part of the share that is of the curve."""
        public = self.curve.public_key()
        if self.group == 1:
            return public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return public.public_bytes_raw()

    def agree(self, share):
        """The secret with the curve's part of a share."""
        if self.group == 1:
            peer = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), share)
            return self.curve.exchange(ec.ECDH(), peer)
        return self.curve.exchange(X25519PublicKey.from_public_bytes(share[-32:]))


def agreed(asker, asking, answerer, answering, secret):
    """The secret of two shares, of which one answers the other; it is given, so that its part of
    ML-KEM holds where there is no ML-KEM."""
    curve = asker.agree(answering)
    equal(answerer.agree(asking), curve, "both sides' secret on the curve")
    lengths = {1: (65, 65), 2: (32, 32), 3: (1_184 + 32, 1_088 + 32)}[asker.group]
    equal((len(asking), len(answering)), lengths, "lengths of the shares")
    equal(asking[-len(asker.on_curve()):], asker.on_curve(), "share of the side that asks")
    equal(answering[-len(answerer.on_curve()):], answerer.on_curve(), "share of the side that answers")
    shared = b""
    if asker.group == 3:
        shared = secret[:32]
        if asker.kem:
            equal(asking[:1_184], asker.kem.public_key().public_bytes_raw(), "encapsulation key")
            shared = asker.kem.decapsulate(answering[:1_088])
    return shared + curve


def check_signature(certificate, scheme, content, signature):
    equal(scheme, ED25519, "scheme")
    x509.load_der_x509_certificate(certificate).public_key().verify(signature, content)


def check_client_part(plaintext, client, h1):
    """The certificate in the sealed part and its signature; the rest is early data."""
    reader = Reader(plaintext)
    chain = list(Reader(reader.counted(2)).all_counted(2))
    if chain:
        equal(chain, [unhex(client["certificate"])], "the client's certificates")
        scheme, signature = reader.take(2).hex(), reader.counted(2)
        content = b" " * 64 + b"SMT ticket client" + b"\0" + h1 + hash_of("sha256", reader.data)
        check_signature(chain[0], scheme, content, signature)
    return bool(chain), reader.data


def check_ticket_schedule(vector, shared, ephemeral):
    """Every secret of SPEC 6.7, binder, finished and both flights."""
    client, server, secrets = vector["client"], vector["server"], vector["secrets"]
    _, key_length, name = SUITES[vector["suite"]]
    length = hashlib.new(name).digest_size
    found = {"early": extract(name, bytes(length), shared)}

    def xl(secret, label, context):
        return expand_label(name, secret, "smt tk " + label, context, length)

    client_params, server_params = unhex(client["params"]), unhex(server["params"])
    h1 = hash_of("sha256", b"smt-1 ticket" + counted(4, client_params) + unhex(client["hello"]))
    equal(client["h1"], h1.hex(), "H1")
    found["binder_key"] = xl(found["early"], "binder", b"")
    binder = hmac.new(found["binder_key"], h1, name).digest()
    equal(client["binder"], binder.hex(), "binder")
    found["flight"] = xl(found["early"], "client flight", h1)
    found["flight_key"] = expand_label(name, found["flight"], "key", b"", key_length)
    found["flight_iv"] = expand_label(name, found["flight"], "iv", b"", 12)
    sealed = SUITES[vector["suite"]][0](found["flight_key"]).encrypt(
        found["flight_iv"], unhex(client["plaintext"]), h1)
    equal(client["sealed"], sealed.hex(), "sealed part")
    equal(client["flight"], (unhex(client["hello"]) + binder + counted(2, sealed)).hex(), "flight 1")
    h2 = hash_of("sha256", h1 + binder + hash_of("sha256", sealed) + counted(4, server_params)
                 + unhex(server["hello"]))
    equal(server["h2"], h2.hex(), "H2")
    found["derived"] = xl(found["early"], "derived", b"")
    found["hs"] = extract(name, found["derived"], bytes(length) if ephemeral is None else ephemeral)
    found["finished_key"] = xl(found["hs"], "server finished", h2)
    finished = hmac.new(found["finished_key"], h2, name).digest()
    equal(server["finished"], finished.hex(), "finished")
    equal(server["flight"], (unhex(server["hello"]) + finished).hex(), "flight 2")
    found["exporter"] = xl(found["hs"], "exporter", h2)
    found["ticket_secret"] = shared
    if ephemeral is None:
        equal(secrets["ephemeral_secret"], None, "ephemeral secret")
    else:
        found["ephemeral_secret"] = ephemeral
    check_parameter_hash({"client": client["params"], "server": server["params"],
                          "hash": secrets["parameter_hash"]})

    def export(label):
        derived = expand_label(name, found["exporter"], EXPORTER + label, b"", length)
        context = hash_of("sha256", unhex(secrets["parameter_hash"]))
        return expand_label(name, derived, "exporter", context, length)

    found["exporter secret"] = export("exporter")
    for what, secret in found.items():
        equal(secrets[what], secret.hex(), what)
    for side, purpose in SECRETS:
        check_epochs(vector["suite"], [secrets[f"{side} {purpose}"]], export(f"{side} {purpose}"))


def check_ticket_handshake(vector, credentials):
    ticket, client, server = vector["ticket"], vector["client"], vector["server"]
    equal(split_ticket(unhex(ticket["hex"])), ticket, "ticket")
    leaf = unhex(credentials["server"]["certificate"])
    equal(ticket["chain_hash"], hash_of("sha256", counted(4, leaf)).hex(), "chain hash")
    check_signature(leaf, ticket["scheme"], unhex(ticket["signature_input"]), unhex(ticket["signature"]))
    require(vector["suite"] in ticket["suites"], "the suite is one of the ticket's")
    for side in (client, server):
        params = split_params(unhex(side["params"]))
        equal(params[2], b"\2", "key exchange")
        suites = params[4]
        require(bytes.fromhex(vector["suite"]) in [suites[at : at + 2] for at in range(0, len(suites), 2)],
                "the suite is one of the parameters")
    hello = bytes.fromhex(vector["suite"]) + unhex(ticket["hash"], 32) + unhex(client["random"], 32)
    shares = unhex(client["share"]), unhex(client["ephemeral_share"])
    equal(client["hello"], (hello + counted(2, shares[0]) + counted(2, shares[1])).hex(), "client hello")
    answer = unhex(server["ephemeral_share"])
    equal(bool(answer), bool(shares[1]), "both sides have an ephemeral share, or none has")
    first = b"\4" if server["takes_early_data"] else b"\0"
    equal(server["hello"], (first + unhex(server["random"], 32) + counted(2, answer)).hex(), "server hello")

    private = {name: parts and Key(ticket["group"], parts) for name, parts in vector["private"].items()}
    given = {name: unhex(vector["secrets"][name] or "") for name in ("ticket_secret", "ephemeral_secret")}
    shared = agreed(private["ticket"], unhex(ticket["share"]), private["client"], shares[0],
                    given["ticket_secret"])
    ephemeral = None
    if answer:
        ephemeral = agreed(private["client_ephemeral"], shares[1], private["server_ephemeral"], answer,
                           given["ephemeral_secret"])
    check_ticket_schedule(vector, shared, ephemeral)
    has_certificate, early = check_client_part(
        unhex(client["plaintext"]), credentials["client"], unhex(client["h1"]))
    require(has_certificate or not ticket["client_certificate"], "a certificate where one is demanded")
    require(ephemeral or not ticket["forward_secrecy"], "forward secrecy where it is demanded")
    require(ticket["early_data"] or not early, "early data only where it is taken")
    equal(server["takes_early_data"], bool(early), "early data is taken")
    if early:
        members = split_bundle(early)
        require(len(members) <= 16, "number of early requests")
        require(all(member["kind"] == "REQUEST" for member in members), "early data is requests")


def check_ticket_handshakes(vectors):
    credentials = vectors["credentials"]
    authority = x509.load_der_x509_certificate(unhex(credentials["authority"]))
    for side in ("server", "client"):
        certificate = x509.load_der_x509_certificate(unhex(credentials[side]["certificate"]))
        certificate.verify_directly_issued_by(authority)
    groups = {vector["ticket"]["group"] for vector in vectors["handshakes"]}
    equal(groups, set(GROUPS), "groups")
    for vector in vectors["handshakes"]:
        try:
            check_ticket_handshake(vector, credentials)
        except FAILURES as error:
            raise ValueError(f"{vector['name']}: {error!r}") from error


def check_malformed_ticket(vector):
    refused(split_ticket, vector, "a ticket")


# Exceptions that a wrong vector may raise.
FAILURES = (ValueError, LookupError, TypeError, ArithmeticError, InvalidTag, InvalidSignature)

CHECKS = [
    ("key_schedule.json", "parameter_hash", check_parameter_hash),
    ("key_schedule.json", "exporter", check_exporter),
    ("key_schedule.json", "registered", check_registered),
    ("key_schedule.json", "control", check_control),
    ("handover.json", "handovers", check_handover),
    ("records.json", "messages", check_message),
    ("padding.json", "padding", check_padding),
    ("packets.json", "inner_headers", check_inner_header),
    ("packets.json", "malformed_inner_headers", check_malformed_inner_header),
    ("packets.json", "bundles", check_bundle),
    ("packets.json", "malformed_bundles", check_malformed_bundle),
    ("packets.json", "metadata", check_metadata),
    ("packets.json", "malformed_metadata", check_malformed_metadata),
    ("transcript.json", None, check_transcript),
    ("tickets.json", None, check_ticket_handshakes),
    ("tickets.json", "malformed_tickets", check_malformed_ticket),
]


def main():
    directory = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    passed = failed = 0
    for file, section, check in CHECKS:
        vectors = json.loads((directory / file).read_text(encoding="utf-8"))
        vectors = vectors[section] if section else [vectors]
        if not vectors:
            failed += 1
            print(f"FAILED {file} {section}: no vectors")
        for index, vector in enumerate(vectors):
            try:
                check(vector)
                passed += 1
            except FAILURES as error:
                failed += 1
                name = vector.get("name", "")
                print(f"FAILED {file} {section}[{index}] {name}: {error!r}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

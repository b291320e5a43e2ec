#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks records.json, key_schedule.json and padding.json against docs/SPEC.md.

Written from the specification alone, with Python's hmac and hashlib and the AEADs of the package
`cryptography`. Prints "N passed, 0 failed" and ends with status 0 if every vector holds.

    python3 vectors/check.py [directory]
"""

import hashlib
import hmac
import json
import pathlib
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

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


def check_exporter(vector):
    suite = vector["suite"]
    name = SUITES[suite][2]
    length = hashlib.new(name).digest_size
    master = unhex(vector["exporter_master_secret"], length)
    context = hash_of(name, unhex(vector["parameter_hash"], 32))
    equal(len(vector["secrets"]), 4, "secrets")
    for side, purpose in SECRETS:
        label = f"EXPORTER-smt-1 {side} {purpose}"
        derived = expand_label(name, master, label, hash_of(name, b""), length)
        first = expand_label(name, derived, "exporter", context, length)
        epochs = vector["secrets"][f"{side} {purpose}"]
        equal(len(epochs), 3, "epochs")
        check_epochs(suite, epochs, first)


def check_registered(vector):
    suite = vector["suite"]
    _, key_length, name = SUITES[suite]
    if vector["name"].startswith("TLS keys"):
        unhex(vector["ikm"], 2 * (key_length + 12))
    context = unhex(vector["parameter_hash"], 32)
    prk = extract(name, context, unhex(vector["ikm"]))
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


def check_inner_header(message):
    inner = unhex(message["inner_stream"], INNER_HEADER + message["true_length"])
    equal(int.from_bytes(inner[0:4], "big"), message["true_length"], "true length")
    equal(int.from_bytes(inner[4:8], "big"), message["padded_length"], "padded length")
    require(message["padded_length"] >= len(inner), "padded length not below the true one")
    kind = inner[8]
    require(kind in (1, 2, 3), "kind")
    own = message["initiator"] == message["sender"]
    require(own == (kind != 2), "kind and initiator agree")
    equal(inner[9:12], bytes(3), "reserved")
    if kind != 1:
        equal(inner[12:20], bytes(8), "fields of requests")
    return inner


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
    inner = check_inner_header(message)
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


# What a wrong vector may raise.
FAILURES = (ValueError, LookupError, TypeError, ArithmeticError, InvalidTag)

CHECKS = [
    ("key_schedule.json", "parameter_hash", check_parameter_hash),
    ("key_schedule.json", "exporter", check_exporter),
    ("key_schedule.json", "registered", check_registered),
    ("key_schedule.json", "control", check_control),
    ("records.json", "messages", check_message),
    ("padding.json", "padding", check_padding),
]


def main():
    directory = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    passed = failed = 0
    for file, section, check in CHECKS:
        vectors = json.loads((directory / file).read_text(encoding="utf-8"))[section]
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

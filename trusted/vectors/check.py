#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks attestations.json against the layout of trusted/README.md.

Written from the document alone: hashlib and hmac of Python, Ed25519 of the package `cryptography`,
and BLAKE3 below, by its paper. Prints "N passed, 0 failed" and ends with status 0 if all hold.

    python3 trusted/vectors/check.py [FILE]
"""

import hashlib
import hmac
import json
import pathlib
import struct
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DOMAIN = b"SMT attest v1 \0\0"
KEY_LABEL = b"SMT group key v1"
SIGN_DOMAIN = b"SMT sign v1\0\0\0\0\0"
LAYOUT = [
    ("version", 0, 1), ("algorithm", 1, 1), ("kind", 2, 1), ("zero", 3, 1), ("stream", 4, 4),
    ("device", 8, 4), ("length", 12, 4), ("epoch", 16, 8), ("counter", 24, 8), ("mac", 32, 32),
]

IV = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
CHUNK_START, CHUNK_END, PARENT, ROOT, KEYED = 1, 2, 4, 8, 16


def rotated(word, bits):
    return (word >> bits | word << 32 - bits) & 0xFFFFFFFF


def mix(v, a, b, c, d, x, y):
    for word, first, second in ((x, 16, 12), (y, 8, 7)):
        v[a] = (v[a] + v[b] + word) & 0xFFFFFFFF
        v[d] = rotated(v[d] ^ v[a], first)
        v[c] = (v[c] + v[d]) & 0xFFFFFFFF
        v[b] = rotated(v[b] ^ v[c], second)


def compress(chaining, block, counter, length, flags):
    """The first eight words of BLAKE3's compression function."""
    words = struct.unpack("<16I", block.ljust(64, b"\0"))
    v = [*chaining, *IV[:4], counter & 0xFFFFFFFF, counter >> 32, length, flags]
    for _ in range(7):
        for index in range(4):
            mix(v, index, 4 + index, 8 + index, 12 + index, words[2 * index], words[2 * index + 1])
        for index in range(4):
            mix(v, index, 4 + (index + 1) % 4, 8 + (index + 2) % 4, 12 + (index + 3) % 4,
                words[8 + 2 * index], words[9 + 2 * index])
        words = [words[index] for index in PERMUTATION]
    return tuple(v[index] ^ v[index + 8] for index in range(8))


def blake3(key, data, counter=0, root=ROOT):
    """The words of the subtree over `data`, whose first chunk has the number `counter`."""
    if len(data) <= 1024:
        chaining = key
        blocks = [data[at:at + 64] for at in range(0, len(data), 64)] or [b""]
        for number, block in enumerate(blocks):
            flags = KEYED | (CHUNK_START if number == 0 else 0)
            if number == len(blocks) - 1:
                flags |= CHUNK_END | root
            chaining = compress(chaining, block, counter, len(block), flags)
        return chaining
    left = 1024
    while left * 2 < len(data):
        left *= 2
    children = blake3(key, data[:left], counter, 0) + blake3(key, data[left:], counter + left // 1024, 0)
    return compress(key, struct.pack("<16I", *children), 0, 64, KEYED | PARENT | root)


def mac(algorithm, key, data):
    if algorithm == 1:
        return hmac.new(key, data, hashlib.sha256).digest()
    return struct.pack("<8I", *blake3(struct.unpack("<8I", key), data))


def key_of(group):
    configuration = KEY_LABEL + struct.pack(
        ">BIIQ", group["algorithm"], group["stream"], group["quorum"], len(group["members"])
    )
    for member in group["members"]:
        configuration += struct.pack(">IQ", member["device"], member["epoch"])
    return hmac.new(bytes.fromhex(group["secret"]), configuration, hashlib.sha256).digest()


def attestation_of(group, kind, counter, message):
    own = group["members"][0]
    header = struct.pack(
        ">BBBBIIIQQ", 1, group["algorithm"], kind, 0, group["stream"], own["device"], len(message),
        own["epoch"], counter,
    )
    return header + mac(group["algorithm"], key_of(group), DOMAIN + header + message)


def check_group(group):
    """The outcome of each vector of a group."""
    public_key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(group["public_key"]))
    for number, vector in enumerate(group["messages"]):
        message = bytes(index % 251 for index in range(vector["length"]))
        attestation = attestation_of(group, 0, number + 1, message)
        yield attestation.hex() == vector["attestation"] and vector["counter"] == number + 1
        signed = SIGN_DOMAIN + attestation[:32] + hashlib.sha256(message).digest()
        try:
            public_key.verify(bytes.fromhex(vector["signature"]), signed)
            yield True
        except InvalidSignature:
            yield False
    for vote in group["votes"]:
        message = struct.pack(">IQ", vote["newcomer"], vote["epoch"]) + bytes.fromhex(vote["nonce"])
        message += struct.pack(">IQ", vote["peer"], vote["peer_epoch"])
        yield attestation_of(group, 1, vote["counter"], message).hex() == vote["attestation"]


def main(arguments):
    default = pathlib.Path(__file__).parent / "attestations.json"
    vectors = json.loads(pathlib.Path(arguments[0] if arguments else default).read_text())
    layout = [(field["name"], field["offset"], field["length"]) for field in vectors["layout"]]
    outcomes = [layout == LAYOUT]
    for group in vectors["groups"]:
        outcomes += check_group(group)
    failed = outcomes.count(False)
    print(f"attestations: {len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed or len(outcomes) < 60 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

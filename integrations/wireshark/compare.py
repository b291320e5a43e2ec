# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares smt.lua in tshark with `smt dump --json`, packet for packet.

Usage: compare.py SMT
       compare.py SMT CAPTURE       this capture alone

Captures: simulated hosts whose cases together have nearly every type of packet; each type once by hand; and all of that
with bytes changed, cut off and added at random (SEED=N has others). Datagrams are in turn behind UDP and natively behind
IP, of version 4 and 6; and once more in packets of PSP, of which nobody has the key. The conversations of vectors/ are
decrypted by `smt dump --decrypt`, and both must show the same plaintext.
"""

import collections
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
# Cases of the simulator that are short and have rare packets.
SIMULATED = (1, 2, 3, 5, 8, 13)
# One whose devices seal packets.
SEALED = 7
PACKETS_MAX = 3_000
MUTATIONS = 2_000

# Fields of a packet in `smt dump --json`: the name in the dissector, and the base of the number.
SCALARS = {
    "session": ("smt.session", 16),
    "sender_session": ("smt.source", 16),
    "epoch": ("smt.epoch", 10),
    "id": ("smt.id", 10),
    "message_length": ("smt.message_length", 10),
    "offset": ("smt.offset", 10),
    "payload": ("smt.payload_length", 10),
    "flight": ("smt.flight", 10),
    "flight_length": ("smt.flight_length", 10),
    "number": ("smt.number", 10),
    "code": ("smt.code", 10),
}


def main(smt):
    seed = int(os.environ.get("SEED", "1"))
    print(f"mutations by SEED={seed}")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        datagrams = by_hand()
        for case in SIMULATED:
            capture = folder / f"{case}.pcap"
            subprocess.run([smt, "sim", "run", "--seed", str(case), "--capture", capture], capture_output=True)
            datagrams += read_capture(capture)[:PACKETS_MAX]
        types = collections.Counter()
        compare(smt, folder, datagrams, types)
        missing = {name for name in all_types()} - set(types)
        if missing:
            sys.exit(f"no capture has {', '.join(sorted(missing))}: the comparison says nothing of them")
        whole = sum(types.values())
        mutated = mutate(random.Random(seed), datagrams)
        compare(smt, folder, mutated, types)
        errors = types.pop(None, 0)
        print(f"{whole} packets of {len(types)} types, and {len(mutated)} datagrams with mutations: equal; "
              f"{errors} malformed for both")
        if errors < len(mutated) / 20:
            sys.exit("hardly any mutation was malformed: the comparison says nothing of such packets")
        compare_sealed(smt, folder, datagrams + mutated, random.Random(seed))
        compare_decrypted(smt, folder)


def all_types():
    offsets = json.loads((HERE.parent.parent / "vectors" / "smt_offsets.json").read_text())
    return offsets["types"]


def compare_sealed(smt, folder, datagrams, rng):
    """Packets of PSP: of these datagrams, and of a case of the simulator."""
    types = collections.Counter()
    # With room for the headers.
    datagrams = [datagram for datagram in datagrams if len(datagram) < 65_000]
    compare(smt, folder, datagrams, types, PSP_HEADERS)
    sealed = [PSP_HEADERS[number % 3](datagram) for number, datagram in enumerate(datagrams)]
    damaged = [damage_psp(rng, frame) for frame in rng.sample(sealed, MUTATIONS)]
    capture = folder / "damaged.pcap"
    # A fifth of them cut off.
    write_capture(capture, damaged, lambda it: rng.randrange(60, len(it) + 1) if rng.random() < 0.2 else len(it))
    compare_capture(smt, capture, types)
    capture = folder / "sealed.pcap"
    subprocess.run([smt, "sim", "run", "--seed", str(SEALED), "--capture", capture], capture_output=True)
    if not any(is_psp(frame) for frame in read_frames(capture)):
        sys.exit("the case has no packet of PSP: choose another one")
    compare_capture(smt, capture, types)
    sealed = types.pop(None)
    print(f"{types['DATA']} DATA packets in PSP and beside it, and {sealed} that say nothing: equal")


def compare(smt, folder, datagrams, types, headers=None):
    """Both read the same capture; the first difference ends the program."""
    capture = folder / "compared.pcap"
    headers = headers or HEADERS
    frames = [headers[number % len(headers)](datagram) for number, datagram in enumerate(datagrams)]
    write_capture(capture, frames + ALIEN)
    compare_capture(smt, capture, types)


def compare_capture(smt, capture, types):
    ours = dumped(smt, capture)
    theirs = dissected(capture)
    for time in sorted(set(ours) | set(theirs)):
        left, right = ours.get(time, []), theirs.get(time, [])
        if left != right:
            print(f"the frame of {time} ns in {capture}", file=sys.stderr)
            print(f"smt dump: {left}\nsmt.lua:  {right}", file=sys.stderr)
            sys.exit(1)
        for packet in left:
            types[packet.get("type")] += 1


def compare_one(smt, capture):
    types = collections.Counter()
    compare_capture(smt, capture, types)
    if not types["DATA"]:
        sys.exit("the capture has no DATA: the comparison says nothing")
    print(f"{sum(types.values())} packets of {len(types)} types: equal")


def compare_decrypted(smt, folder):
    """Kind, length and application bytes of messages, in captures that were decrypted."""
    shown = 0
    paths = sorted((HERE.parent.parent / "vectors" / "conversations").glob("*.json"))
    for number, path in enumerate(paths):
        conversation = json.loads(path.read_text())
        if not conversation.get("key_log"):
            continue
        keys, sealed = folder / "keys", folder / "sealed.pcap"
        keys.write_text("\n".join(conversation["key_log"]) + "\n")
        sent, came = CALL, CALL[::-1]
        if conversation["endpoint"]["side"] == "server":
            sent, came = came, sent
        datagrams = []
        for step in conversation["steps"]:
            datagrams += [(step["in"], came)] if "in" in step else []
            datagrams += [(datagram, sent) for datagram in step["out"]]
        headers = HEADERS[number % len(HEADERS)]
        write_capture(sealed, [headers(bytes.fromhex(datagram), ports) for datagram, ports in datagrams])
        shown += compare_plaintext(smt, folder, sealed, keys)
    if shown < 20:
        sys.exit(f"only {shown} messages were decrypted: the comparison says little")
    print(f"{shown} messages in decrypted captures: equal")


def compare_plaintext(smt, folder, sealed, keys):
    """Messages of one packet, by `smt dump` of the capture and by the dissector of the decrypted one."""
    decrypted = folder / "decrypted.pcap"
    decrypted.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as messages:
        command = [smt, "dump", "--json", sealed, "--key-log", keys, "--decrypt", decrypted, "--out", messages]
        output = subprocess.run(command, capture_output=True, check=True).stdout
        ours = collections.defaultdict(list)
        for line in output.splitlines():
            told = json.loads(line)
            facts = {fact["fact"]: fact for fact in told.get("facts", [])}
            first = [fact for fact in told.get("facts", []) if fact["fact"] == "record" and fact["record"] == 0]
            if not first or not first[0]["ok"]:
                continue
            body = None
            if "whole" in facts and not facts["whole"].get("bundled") and told["message_length"] <= 1_142:
                body = pathlib.Path(facts["whole"]["file"]).read_bytes()
            ours[told["time_ns"]].append((first[0]["message"], first[0]["length"], body))
    theirs = collections.defaultdict(list)
    for time, proto, _ in frames_of(decrypted):
        shown = fields_of(proto)
        if "smt.inner.kind" in shown:
            body = "".join(shown["smt.plaintext"]).replace(":", "")
            length = int(shown["smt.inner.true_length"][0])
            theirs[time].append((shown["smt.inner.kind"][0], length, bytes.fromhex(body)))
    count = 0
    for time, messages in ours.items():
        if len(theirs[time]) < len(messages):
            sys.exit(f"{decrypted}: {messages} of {time} ns are not shown: {theirs[time]}")
        for (kind, length, body), (their_kind, their_length, their_body) in zip(messages, theirs[time]):
            # The file of a part is without the id of its request, which comes first.
            is_same = body is None or their_body[8 if kind == "PART" else 0:] == body
            if (kind, length) != (their_kind, their_length) or not is_same:
                sys.exit(f"{decrypted}: {kind} of {length} bytes is shown as {their_kind} of {their_length}: "
                         f"{body} {their_body}")
            count += 1
    return count


def dumped(smt, capture):
    """The packets of each datagram, by its number, as `smt dump` tells them."""
    output = subprocess.run([smt, "dump", "--json", capture], capture_output=True, check=True).stdout
    packets = collections.defaultdict(list)
    for line in output.splitlines():
        told = json.loads(line)
        number = told["time_ns"]
        packet = {"type": told.get("type")}
        if "spi" in told:
            packet["psp"] = (int(told["spi"], 16), told["iv"])
        if "error" in told:
            packet["error"] = "sealed" if told["error"] == "sealed packet" else "malformed"
            packets[number].append(packet)
            continue
        for ours, (_, radix) in SCALARS.items():
            if told.get(ours) is not None:
                packet[ours] = int(told[ours], 16) if radix == 16 else told[ours]
        if told["type"] == "ACK":
            acks = re.findall(r"base (\d+) bits 0x([0-9a-f]+)", told["text"])
            packet["acks"] = [(int(base), int(bits, 16)) for base, bits in acks]
        elif "ids" in told:
            packet["ids"] = told["ids"]
        if "retransmit" in told:
            packet["retransmit"] = told["retransmit"]
        packets[number].append(packet)
    return packets


def dissected(capture):
    """The same, as the dissector shows them."""
    packets = collections.defaultdict(list)
    for time, proto, psp in frames_of(capture):
        packet = dissected_packet(proto)
        if psp:
            packet["psp"] = (int(psp["smt_psp.spi"][0], 0), int(psp["smt_psp.iv"][0]))
        packets[time].append(packet)
    return packets


def frames_of(capture):
    """Each packet of SMT that the dissector shows, the time of its frame in nanoseconds, and the fields of PSP in it."""
    # A host whose process has ended answers by ICMP, with the packet inside.
    own = ["-Y", "smt and not icmp and not icmpv6"]
    output = subprocess.run([HERE / "dissect", capture, "-T", "pdml", *own], capture_output=True)
    if re.search(rb'smt"? is (not a valid protocol|neither a field)', output.stderr):
        sys.exit("environment: tshark did not run smt.lua: it was built without Lua, or is kept from scripts")
    if output.returncode or b"Lua:" in output.stderr:
        sys.exit(output.stderr.decode())
    for frame in ElementTree.fromstring(output.stdout).iter("packet"):
        (time,) = [field.get("show") for field in frame.iter("field") if field.get("name") == "frame.time_epoch"]
        seconds, _, fraction = time.partition(".")
        time = int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0"))
        psp = [fields_of(proto) for proto in frame.iter("proto") if proto.get("name") == "smt_psp"]
        for proto in frame.iter("proto"):
            if proto.get("name") == "smt":
                yield time, proto, psp[0] if psp else None


def fields_of(proto):
    shown = collections.defaultdict(list)
    for field in proto.iter("field"):
        shown[field.get("name")].append(field.get("show"))
    return shown


def dissected_packet(proto):
    shown = fields_of(proto)
    # A packet of an unknown type is passed over.
    if "smt.malformed" in shown or "smt.type" not in shown:
        return {"type": None, "error": "sealed" if "smt.sealed" in shown else "malformed"}
    kind = shown["smt.type"][0]
    packet = {"type": kind}
    for ours, (theirs, _) in SCALARS.items():
        if theirs in shown:
            packet[ours] = int(shown[theirs][0], 0)
    if "number" in packet:
        packet["number"] |= int(shown["smt.stripe"][0]) << 48
    if kind == "ACK":
        bits = (int(one, 16) for one in shown["smt.ack_bits"])
        packet["acks"] = list(zip(map(int, shown["smt.ack_base"]), bits))
    elif "smt.about" in shown:
        packet["ids"] = [int(one) for one in shown["smt.about"]]
    if kind == "DATA":
        packet["retransmit"] = shown["smt.retransmit"][0] in ("1", "True")
    elif kind in ("HANDSHAKE", "COOKIE", "RESET", "UNAVAILABLE", "VERSION"):
        packet.pop("epoch", None)
    return packet


def mutate(rng, datagrams):
    """Datagrams with bytes changed, cut off or added; most changes are in headers."""
    mutated = []
    for _ in range(MUTATIONS):
        datagram = bytearray(rng.choice(datagrams))
        how = rng.randrange(4)
        if how == 0:
            del datagram[rng.randrange(len(datagram)):]
        elif how == 1:
            datagram += rng.randbytes(rng.randrange(1, 60))
        elif how == 2:
            datagram = datagram + rng.choice(datagrams)
        else:
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(min(len(datagram), rng.choice((12, 48, 1_500))))
                datagram[at] = rng.randrange(256)
        if 0 < len(datagram) <= 65_000:
            mutated.append(bytes(datagram))
    return mutated


def by_hand():
    """Each type of packet once, with a list of three where there are lists."""
    types = all_types()
    lists = {"GRANT": 24, "RESEND": 16, "ACK": 16, "PART_WINDOW": 16}
    lists |= dict.fromkeys(("BUSY", "NEED_ACK", "CANCEL", "VOIDED", "SEEN", "NEVER_SEEN", "SEEN_AND_GONE",
                            "PART_WINDOW_REQUEST"), 8)
    bodies = {"CONFIRM": 16, "ABORT": 16, "WINDOW": 8, "WINDOW_REQUEST": 0, "KEY_UPDATE_REQUEST": 4, "EPOCH_DONE": 4,
              "EPOCH_ACK": 4, "PING": 8, "PONG": 8, "PROBE": 900, "PROBE_ACK": 4, "CLOSE": 8,
              "ASSOCIATION": 12 + 32, "ASSOCIATION_ACK": 4, "ASSOCIATION_REQUEST": 4}
    datagrams = []
    for name, code in types.items():
        if name in lists or name in bodies:
            body = bytes(3 * lists[name]) if name in lists else bytes(bodies[name])
            rest = struct.pack(">QHHI", 0x1122334455667788, 0, 1, 2) + body + bytes(16)
        elif name == "DATA":
            rest = struct.pack(">QQII", 7, 42, 100, 0) + bytes.fromhex("1703030020") + bytes(60)
        elif name == "HANDSHAKE":
            rest = struct.pack(">QQBBHII", 0, 9, 1, 5, 20, 30, 10) + bytes(5 + 20 + 100)
        elif name == "COOKIE":
            rest = struct.pack(">Q", 9) + bytes(40)
        elif name == "RESET":
            rest = struct.pack(">Q", 9) + bytes(16)
        elif name == "UNAVAILABLE":
            rest = struct.pack(">QH", 9, 1)
        elif name == "VERSION":
            rest = bytes([1, 2, 0x1A])
        else:
            sys.exit(f"the specification has a type that this test does not know: {name}")
        words = 0xB0 if name == "DATA" else 0x50
        version = 0 if name == "VERSION" else 1
        length = 0 if name == "DATA" else 12 + len(rest)
        datagrams.append(struct.pack(">BBBBBBHI", version, code, 0, 0, words, 0, length, 0) + rest)
    return datagrams + of_segments(types["DATA"])


def of_segments(code):
    """DATA packets with the marks of a segment (SPEC §15.2), which count natively: at each place or at
    none, not cut yet, and with an offset that is too large."""
    datagrams = []
    for length, offset in ((59, 500), (98, 500), (100, 500), (301, 500), (98, 0xFFFFFFF0)):
        for flags in (0, 8):
            header = struct.pack(">BBBBBBHHH", 1, code, 0, 0, 0xB0, flags, 0, 0, 100)
            # One for each of HEADERS.
            datagrams += [header + struct.pack(">QQII", 7, 42, 10_000, offset) + bytes(length)] * len(HEADERS)
    return datagrams


# Captures of raw IP, as pcap (https://www.tcpdump.org/manpages/pcap-savefile.5.html).
LINKTYPE_RAW = 101


def read_capture(path):
    return [frame[28 if frame[0] >> 4 == 4 else 48:] for frame in read_frames(path)]


def read_frames(path):
    bytes_ = path.read_bytes()
    magic, link = struct.unpack_from("<I", bytes_, 0)[0], struct.unpack_from("<I", bytes_, 20)[0]
    assert magic in (0xA1B2C3D4, 0xA1B23C4D) and link == LINKTYPE_RAW, (hex(magic), link)
    at = 24
    while at < len(bytes_):
        (length,) = struct.unpack_from("<I", bytes_, at + 8)
        yield bytes_[at + 16:at + 16 + length]
        at += 16 + length


def is_psp(frame):
    """For frames of IPv4, as the simulator writes them."""
    return int.from_bytes(frame[22:24], "big") == PSP_PORT


def udp(datagram, ports):
    return struct.pack(">HHHH", *ports, 8 + len(datagram), 0) + datagram


def native(datagram, ports):
    # The sequence field is ignored.
    return struct.pack(">HHI", *ports, 0x11223344) + datagram


def psp(contents, clear, next_header=253, extension=1):
    """A packet of PSP under an association of nobody, of which these bytes of the contents are clear."""
    cookie = bytes(8 * (extension - 1))
    crypt_offset = clear // 4 + 2 * (extension - 1)
    header = struct.pack(">BBBBIQ", next_header, extension, crypt_offset, 0x05, 0x80000007, 9) + cookie
    return udp(header + contents + bytes(range(16)), (50_000, PSP_PORT))


def sealed(datagram, ports, extension=1):
    """As SPEC [15.3-6] has it, as far as there are so many bytes."""
    contents = native(datagram, ports)
    clear = 44 if datagram[1:2] == b"\1" else 36
    return psp(contents, min(clear, len(contents) // 4 * 4), extension=extension)


def ipv4(protocol, payload, identification=0):
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), identification, 0, 64, protocol, 0, b"\x0a\0\0\1",
                       b"\x0a\0\0\2") + payload


def ipv6(protocol, payload):
    source, target = (bytes([0xFD]) + bytes(14) + bytes([last]) for last in (1, 2))
    return struct.pack(">IHBB", 0x60000000, len(payload), protocol, 64) + source + target + payload


CALL = (40_000, 17_379)
NATIVE = 253
HEADERS = (
    lambda datagram, ports=CALL: ipv4(17, udp(datagram, ports)),
    # Some with the identification that a packet of a segment cannot have.
    lambda datagram, ports=CALL: ipv4(NATIVE, native(datagram, ports), identification=len(datagram) % 4),
    lambda datagram, ports=CALL: ipv6(17, udp(datagram, ports)),
    lambda datagram, ports=CALL: ipv6(NATIVE, native(datagram, ports)),
)
PSP_PORT = 1_000
PSP_HEADERS = (
    lambda datagram, ports=CALL: ipv4(17, sealed(datagram, ports)),
    lambda datagram, ports=CALL: ipv6(17, sealed(datagram, ports)),
    lambda datagram, ports=CALL: ipv4(17, sealed(datagram, ports, extension=2)),
)
# Packets of the protocol that are nobody's: cut short, empty, and of another port. Four are of PSP:
# another protocol, ports that are sealed, more clear bytes than there are, and cut short.
ALIEN = [
    ipv4(NATIVE, bytes(7)),
    ipv6(NATIVE, b""),
    ipv4(NATIVE, native(b"", CALL)),
    ipv6(NATIVE, native(bytes(60), (1, 2))),
    ipv4(17, psp(native(bytes(60), CALL), 44, next_header=6)),
    ipv4(17, psp(native(bytes(60), CALL), 4)),
    ipv4(17, psp(native(bytes(60), CALL), 72)),
    ipv4(17, udp(bytes((253, 1, 2, 1)) + bytes(20), (50_000, PSP_PORT))),
]


def damage_psp(rng, frame):
    """A byte of PSP's header changed."""
    frame = bytearray(frame)
    frame[(28 if frame[0] >> 4 == 4 else 48) + rng.randrange(24)] = rng.choice((0, 1, 2, 11, rng.randrange(256)))
    return bytes(frame)


def write_capture(path, frames, kept=len):
    """Each frame's time in microseconds is its number. `kept` says how many bytes of it are written."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, LINKTYPE_RAW))
        for number, frame in enumerate(frames):
            length = kept(frame)
            file.write(struct.pack("<IIII", number // 1_000_000, number % 1_000_000, length, len(frame)) + frame[:length])


if __name__ == "__main__":
    if len(sys.argv) > 2:
        compare_one(sys.argv[1], pathlib.Path(sys.argv[2]))
    else:
        main(sys.argv[1])

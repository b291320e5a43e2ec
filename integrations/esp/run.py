# SPDX-License-Identifier: Apache-2.0 OR MIT
"""ESP of smt-esp against scapy's: each opens what the other sealed, for every packet kind.

usage: run.py PATH-OF-esp_packets
"""

import itertools
import logging
import subprocess
import sys

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_Router_Alert
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrHopByHop,
    PadN,
)
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.packet import Raw

SPI = 0xC0FFEE01
V4 = ("10.0.0.1", "10.0.0.2")
V6 = ("fd00::1", "fd00::2")
TUNNELS = {
    "transport": None,
    "tunnel in IPv4": ("192.0.2.1", "192.0.2.2"),
    "tunnel in IPv6": ("2001:db8::1", "2001:db8::2"),
}
# The name here, the names and lengths of scapy, and the bytes of key and salt.
SUITES = {
    "aes128-gcm": ({"crypt_algo": "AES-GCM"}, "crypt_key", 20),
    "aes256-gcm": ({"crypt_algo": "AES-GCM"}, "crypt_key", 36),
    "aes128-ccm8": ({"crypt_algo": "AES-CCM", "crypt_icv_size": 8}, "crypt_key", 19),
    "null-sha256": ({"crypt_algo": "NULL", "auth_algo": "SHA2-256-128"}, "auth_key", 32),
}


class Command:
    """The example, which reads a command a line."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *words):
        """The packets that the command gives, and how it ended."""
        print(*words, file=self.process.stdin, flush=True)
        packets = []
        while line := self.process.stdout.readline():
            kind, *rest = line.split()
            if kind not in ("sealed", "opened"):
                return packets, line.strip()
            packets.append([bytes.fromhex(word) for word in rest])
        raise AssertionError(f"the command ended at {words[0]}")


def is_v6(address):
    return ":" in address


def payloads(addresses):
    """Packets of every kind that travels, with its name."""
    source, destination = addresses
    if is_v6(source):
        header = IPv6(src=source, dst=destination, hlim=61, fl=0x12345, tc=0xB8)
        options = IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])
        last = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
        yield "ICMPv6", header / ICMPv6EchoRequest(data=b"echo")
        yield "hop-by-hop options", header / options / UDP(sport=7, dport=9) / b"options"
        yield "destination options", header / last / UDP(sport=7, dport=9) / b"options"
    else:
        header = IP(src=source, dst=destination, ttl=61, tos=0xB8, id=0xABCD, flags="DF")
        options = header.copy()
        options.options = [IPOption_Router_Alert()]
        yield "ICMP", header / ICMP(seq=3) / b"echo"
        yield "IPv4 options", options / UDP(sport=7, dport=9) / b"options"
    tcp = TCP(sport=4096, dport=80, seq=1, ack=2, flags="PA", options=[("Timestamp", (1, 2))])
    yield "TCP", header / tcp / bytes(range(200))
    for length in range(5):
        yield f"UDP of {length} bytes", header / UDP(sport=7, dport=9) / Raw(b"x" * length)


def parse(packet):
    return (IPv6 if packet[0] >> 4 == 6 else IP)(packet)


def association(suite, tunnel, in_udp, extended, high):
    """The same association in scapy, and the words for the command."""
    names, key_name, key_length = SUITES[suite]
    key = bytes(range(1, key_length + 1))
    words = ["association", f"suite={suite}", f"key={key.hex()}"]
    more = {}
    if tunnel:
        words.append(f"tunnel={','.join(tunnel)}")
        header = IPv6 if is_v6(tunnel[0]) else IP
        more["tunnel_header"] = header(src=tunnel[0], dst=tunnel[1])
    if in_udp:
        words.append("udp")
        more["nat_t_header"] = UDP(sport=4500, dport=4500)
    if extended:
        words += ["extended", f"first={(high << 32) + 1}"]
        more |= {"esn_en": True, "esn": high}
    return SecurityAssociation(ESP, spi=SPI, **names, **{key_name: key}, **more), words


def check_kind(command, kind, addresses):
    suite, tunnel_name, in_udp, high = kind
    tunnel = TUNNELS[tunnel_name]
    peer, words = association(suite, tunnel, in_udp, high is not None, high or 0)
    assert command(*words)[1] == "done"
    count = 0
    for name, packet in payloads(addresses):
        if in_udp and not tunnel and "options" in name and IPv6 in packet:
            # Scapy takes UDP for the first header of an IPv6 packet, and loses the others.
            continue
        original = bytes(packet)
        # The command seals, scapy opens. Scapy has no window, and is told the number's upper half.
        [[sealed]], end = command("seal", original.hex())
        assert end == "done", end
        assert original[-4:] not in sealed or suite == "null-sha256" or len(original) < 40
        opened = bytes(peer.decrypt(parse(sealed)))
        assert same(opened, original, tunnel), f"{kind} {name}: scapy opened another packet"
        # Scapy seals, the command opens.
        sealed = bytes(peer.encrypt(parse(original), seq_num=1000 + count))
        packets, end = command("open", sealed.hex())
        assert end == "done", f"{kind} {name}: {end}"
        packets += command("flush")[0]
        [[opened, _]] = packets
        assert same(opened, original, tunnel), f"{kind} {name}: the command opened another packet"
        # Once only, and not with a bit changed.
        assert "replayed" in command("open", sealed.hex())[1]
        damaged = bytes(peer.encrypt(parse(original), seq_num=2000 + count))
        damaged = damaged[:-1] + bytes([damaged[-1] ^ 1])
        assert "integrity" in command("open", damaged.hex())[1]
        count += 2
    return count


def same(opened, original, tunnel):
    """Scapy decrements the hops of a tunnel's packet, as a router does."""
    if not tunnel:
        return opened == original
    opened, original = parse(opened), parse(original)
    hops = "hlim" if IPv6 in original else "ttl"
    setattr(opened, hops, getattr(original, hops))
    if IP in original:
        opened.chksum = original.chksum
    return bytes(opened) == bytes(original)


def virtio(packet, size):
    """The virtio-net header of a super-packet of TCP, whose checksum is still to be computed."""
    v6 = IPv6 in packet
    header = 40 if v6 else 20
    field = lambda value: value.to_bytes(2, "little")
    kind = 4 if v6 else 1
    return bytes([1, kind]) + field(header + 32) + field(size) + field(header) + field(16)


def check_super_packet(command, suite, addresses):
    """A super-packet leaves in segments that scapy opens; scapy's segments come back as one."""
    peer, words = association(suite, None, False, False, 0)
    assert command(*words)[1] == "done"
    source, destination = addresses
    header = IPv6(src=source, dst=destination) if is_v6(source) else IP(
        src=source, dst=destination, id=0xFFFE, flags="DF"
    )
    payload = bytes(index * 7 % 251 for index in range(20_000))
    options = [("NOP", None), ("NOP", None), ("Timestamp", (1, 2))]
    tcp = TCP(sport=4096, dport=80, seq=2**32 - 5000, ack=2, flags="PAC", options=options)
    packet = header / tcp / payload
    size = 1300
    sealed, end = command("seal", bytes(packet).hex(), virtio(packet, size).hex())
    assert end == "done", end
    assert len(sealed) == -(-len(payload) // size)
    received = b""
    for index, [segment] in enumerate(sealed):
        assert len(segment) <= 1500
        opened = peer.decrypt(parse(segment))
        wanted = opened.copy()
        last = index == len(sealed) - 1
        flags = "A" + ("C" if index == 0 else "") + ("P" if last else "")
        assert set(str(opened[TCP].flags)) == set(flags), opened[TCP].flags
        assert opened[TCP].seq == (2**32 - 5000 + index * size) % 2**32
        if IP in opened:
            assert opened[IP].id == (0xFFFE + index) % 2**16
            del wanted[IP].chksum
        # Scapy computes each checksum anew.
        del wanted[TCP].chksum
        assert bytes(wanted) == bytes(opened), f"segment {index} has a wrong checksum"
        received += bytes(opened[TCP].payload)
    assert received == payload
    # The same segments, sealed by scapy.
    packets = []
    for index, [segment] in enumerate(sealed):
        opened = peer.decrypt(parse(segment))
        again = bytes(peer.encrypt(parse(bytes(opened)), seq_num=500 + index))
        packets += command("open", again.hex())[0]
    packets += command("flush")[0]
    [[whole, offload]] = packets
    assert bytes(parse(whole)[TCP].payload) == payload
    assert int.from_bytes(offload[4:6], "little") == size
    assert offload[1] & 0x7F == (4 if is_v6(source) else 1)
    return len(sealed)


def check_dummy(command, suite):
    peer, words = association(suite, None, False, False, 0)
    assert command(*words)[1] == "done"
    packet = bytes(IP(src=V4[0], dst=V4[1]) / UDP(sport=7, dport=9) / b"nothing")
    [[sealed]], _ = command("dummy", packet.hex())
    assert peer.decrypt(parse(sealed)).proto == 59
    sealed = peer.encrypt(IP(src=V4[0], dst=V4[1], proto=59) / Raw(b"nothing"), seq_num=9)
    assert command("open", bytes(sealed).hex()) == ([], "dummy")


def main():
    command = Command(sys.argv[1])
    packets = kinds = 0
    for suite, tunnel, in_udp, high, addresses in itertools.product(
        SUITES, TUNNELS, (False, True), (None, 0, 7), (V4, V6)
    ):
        packets += check_kind(command, (suite, tunnel, in_udp, high), addresses)
        kinds += 1
    for suite, addresses in itertools.product(SUITES, (V4, V6)):
        packets += 2 * check_super_packet(command, suite, addresses)
        kinds += 1
    for suite in SUITES:
        check_dummy(command, suite)
    print(f"ESP: {packets} packets of {kinds} kinds were sealed by one and opened by the other")


main()

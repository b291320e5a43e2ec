#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An attacker on the wire who knows a connection's addresses, ports and next sequence number.

    resets.py watch DEVICE                            prints them by the segments in, at SIGTERM
    resets.py send DEVICE FROM PORT TO PORT NUMBER    sends a reset by this device, without ESP
"""
import signal
import socket
import struct
import subprocess
import sys
import time

from kills import EndlessTransfer
from tunnel import HERE, LIMIT, Path, Tunnel, run

ALL_PROTOCOLS, OUTGOING, TCP_RESET, SO_RCVBUFFORCE = 3, 4, 0x04, 33


def watch(device):
    taken = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ALL_PROTOCOLS))
    taken.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    taken.bind((device, ALL_PROTOCOLS))
    ended, ends, following = [], None, 0
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    taken.settimeout(0.05)
    print("ready", flush=True)
    while not ended:
        try:
            packet, (_, _, kind, _, _) = taken.recvfrom(1 << 17)
        except TimeoutError:
            continue
        if kind == OUTGOING or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            continue
        header = 4 * (packet[0] & 15)
        length = struct.unpack_from("!H", packet, 2)[0] or len(packet)
        source, target, number = struct.unpack_from("!HHI", packet, header)
        payload = length - header - 4 * (packet[header + 12] >> 4)
        end = (number + payload) % (1 << 32)
        # The last segment may be one that was repeated.
        if ends is None or (end - following) % (1 << 32) < 1 << 31:
            following = end
        addresses = [socket.inet_ntoa(packet[at : at + 4]) for at in (12, 16)]
        ends = addresses[0], source, addresses[1], target
    print(*ends, following, flush=True)


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def send(device, source, source_port, target, target_port, number):
    ends = socket.inet_aton(source) + socket.inet_aton(target)
    tcp = struct.pack("!HHIIBBHHH", int(source_port), int(target_port), int(number), 0, 5 << 4, TCP_RESET, 0, 0, 0)
    pseudo = ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp))
    tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0) + ends
    wire = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
    for _ in range(3):
        wire.sendto(ip + tcp, (target, 0))


def forge(spaces, transfer):
    """Stops the sender, and sends a reset of its connection with the number that comes next."""
    watcher = subprocess.Popen([*spaces.inside("b"), sys.executable, str(HERE / "resets.py"), "watch", "esp0"],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert watcher.stdout.readline() == "ready\n"
        transfer.wait_until_it_moves(transfer.came)
        transfer.sender.send_signal(signal.SIGSTOP)
        # The sender's kernel still has some bytes.
        came = -1
        while came != transfer.came:
            came = transfer.came
            time.sleep(0.5)
        watcher.send_signal(signal.SIGTERM)
        words = watcher.communicate(timeout=LIMIT)[0].split()
    finally:
        watcher.kill()
    run(*spaces.inside("a"), sys.executable, str(HERE / "resets.py"), "send", "wire", *words)
    transfer.sender.send_signal(signal.SIGCONT)


def filter_reverse_paths(spaces, is_strict):
    """Whether a packet is dropped that comes by another device than its answer leaves by."""
    for device in ("all", "wire"):
        run(*spaces.inside("b"), "sh", "-c", f"echo {int(is_strict)} >/proc/sys/net/ipv4/conf/{device}/rp_filter")


def ends_by_reset(spaces, transfer):
    """The exit code of the receiver, by a reset that came in time. On a machine with much to do the
    sender's last bytes may come after the attacker has looked: the attacker looks again."""
    for _ in range(5):
        forge(spaces, transfer)
        try:
            return transfer.receiver.wait(LIMIT / 10)
        except subprocess.TimeoutExpired:
            pass
    return 0


def a_forged_reset_ends_no_connection_in_the_tunnel(smt, spaces, seed):
    """A reset with the right sequence number, outside ESP. In the end the filter is taken away, and
    the same reset ends the connection: it was a good one."""
    path = Path(mode="tunnel")
    with Tunnel(smt, spaces, "a", path.config("a")), Tunnel(smt, spaces, "b", path.config("b")):
        transfer = EndlessTransfer(spaces, path, seed)
        try:
            filter_reverse_paths(spaces, True)
            for _ in range(2):
                forge(spaces, transfer)
                transfer.wait_until_it_moves(transfer.came)
            filter_reverse_paths(spaces, False)
            assert ends_by_reset(spaces, transfer) != 0, "the reset was none"
            assert "ConnectionResetError" in transfer.receiver.stderr.read()
        finally:
            filter_reverse_paths(spaces, False)
            transfer.sender.kill()
            transfer.receiver.kill()


CASES = [a_forged_reset_ends_no_connection_in_the_tunnel]

if __name__ == "__main__":
    {"watch": watch, "send": send}[sys.argv[1]](*sys.argv[2:])

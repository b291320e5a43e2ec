# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Captures what passes an interface as pcap, until SIGTERM: capture.py INTERFACE FILE [SECONDS]"""

import signal
import socket
import struct
import sys
import time

ETH_P_ALL = 3
ETHERNET = 1

interface, path = sys.argv[1:3]
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
packets.bind((interface, ETH_P_ALL))
packets.settimeout(0.1)
is_over = False


def end(*_):
    global is_over
    is_over = True


signal.signal(signal.SIGTERM, end)
with open(path, "wb") as file:
    # With nanoseconds, so that no two frames have one time.
    file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, ETHERNET))
    print("capturing", flush=True)
    while True:
        try:
            frame = packets.recv(1 << 18)
        except TimeoutError:
            if is_over:
                break
            continue
        now = time.time_ns()
        file.write(struct.pack("<IIII", now // 10**9, now % 10**9, len(frame), len(frame)) + frame)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A transfer by TCP or UDP between two namespaces.

    transfer.py receive ADDRESS [EVERY]    prints its port, "progress" and the bytes so far after EVERY
                                           bytes, then SHA-256, bytes and seconds
    transfer.py send ADDRESS PORT BYTES SEED    prints SHA-256 of what it has sent; SIGTERM ends it early
    transfer.py echo ADDRESS BYTES         prints its port, and answers each message of so many bytes
    transfer.py ask ADDRESS PORT COUNT BYTES    prints the median round trip in microseconds
"""
import hashlib
import random
import signal
import socket
import sys
import time

CHUNK = 1 << 18


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def listen(address):
    listener = socket.socket(family(address), socket.SOCK_STREAM)
    listener.bind((address, 0))
    listener.listen(1)
    print(listener.getsockname()[1], flush=True)
    stream, _ = listener.accept()
    stream.settimeout(60)
    return stream


def connect(address, port):
    stream = socket.socket(family(address), socket.SOCK_STREAM)
    stream.settimeout(60)
    stream.connect((address, int(port)))
    return stream


def receive(address, every=0):
    stream = listen(address)
    digest, length, begun, told = hashlib.sha256(), 0, time.monotonic(), 0
    while chunk := stream.recv(CHUNK):
        digest.update(chunk)
        length += len(chunk)
        if int(every) and length - told >= int(every):
            print("progress", length, flush=True)
            told = length
    print(digest.hexdigest(), length, time.monotonic() - begun, flush=True)


def send(address, port, length, seed):
    stream, left = connect(address, port), int(length)
    # A few megabytes of random bytes, each time from another place: quick, and no two chunks alike.
    chance = random.Random(int(seed))
    block = chance.randbytes(4 << 20)
    digest, stopped = hashlib.sha256(), []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    while left and not stopped:
        at = chance.randrange(len(block) - CHUNK)
        chunk = block[at : at + min(CHUNK, left)]
        stream.sendall(chunk)
        digest.update(chunk)
        left -= len(chunk)
    stream.shutdown(socket.SHUT_WR)
    print(digest.hexdigest(), flush=True)


def take(stream, memory):
    """Fills the memory; says whether it was filled."""
    have = 0
    while have < len(memory):
        came = stream.recv_into(memory[have:])
        if came == 0:
            return False
        have += came
    return True


def echo(address, length):
    stream, memory = listen(address), memoryview(bytearray(int(length)))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while take(stream, memory):
        stream.sendall(memory)


def ask(address, port, count, length):
    stream, memory, times = connect(address, port), memoryview(bytearray(int(length))), []
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(int(count)):
        begun = time.perf_counter()
        stream.sendall(memory)
        assert take(stream, memory), "the other end has gone"
        times.append(time.perf_counter() - begun)
    print(sorted(times)[len(times) // 2] * 1e6, flush=True)


if __name__ == "__main__":
    {"receive": receive, "send": send, "echo": echo, "ask": ask}[sys.argv[1]](*sys.argv[2:])

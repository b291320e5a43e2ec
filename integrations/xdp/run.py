# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The XDP programs of kernel/xdp, on single packets and with real traffic: run.py SMT

CALLS=N has other numbers of calls than 60 over each carrier and version of IP.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile

import programs
import topology
from programs import Program, Refused

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMT = sys.argv[1]
CALLS = int(os.environ.get("CALLS", "60"))
# Bytes of requests: within a record, around its end, several packets, several records.
SIZES = (0, 64, 1_100, 1_500, 9_000, 40_000)
PORT = 17_379
CARRIERS = ("udp", "native")
# Bytes a second that a switch's phantom queue drains by, and what it holds at most.
RATE, QUEUE_LIMIT = 10_000_000, 12_000
PASS = 2
ETHERNET = bytes.fromhex("020000000002020000000001")


def check(is_right, told):
    if not is_right:
        sys.exit(f"integrations/xdp: {told}")


def at(address):
    return f"[{address}]:{PORT}" if ":" in address else f"{address}:{PORT}"


def vectors(network, folder):
    """The programs do to each packet of vectors/in_network.json what crates/smt-switch does."""
    told = json.loads((ROOT / "vectors/in_network.json").read_text())
    of = {}
    for name in ("smt_balance", "smt_trim", "smt_mark", "smt_count"):
        of[name] = Program.attach(network.switch, "in", name)
        if name != "smt_count":
            of[name].configure(seed=told["seed"], paths=told["paths"], is_counting_only=True)
        for vector in told["vectors"]:
            packet = bytes.fromhex(vector["packet"])
            kind = {4: b"\x08\x00", 6: b"\x86\xdd"}[packet[0] >> 4]
            header = ETHERNET + kind
            verdict, out = of[name].test(header + packet, folder)
            expected, left = PASS, packet
            if name == "smt_balance" and vector["path"] is not None:
                expected = 100 + vector["path"]
            if name == "smt_trim" and vector["trimmed"]:
                left = bytes.fromhex(vector["trimmed"])
            if name == "smt_mark" and vector["marked"]:
                left = bytes.fromhex(vector["marked"])
            check(verdict == expected, f"{name}, {vector['name']}: {verdict} is not {expected}")
            check(out == header + left, f"{name}, {vector['name']}: {out[14:].hex()} is not {left.hex()}")
        if name == "smt_count":
            packets = sum(counts[0] for counts in of[name].messages().values())
            expected = sum(vector["message"] is not None for vector in told["vectors"])
            check(packets == expected, f"{packets} DATA packets were counted, of {expected}")
        Program.detach(network.switch, "in")
    print(f"{len(told['vectors'])} packets: four programs act as crates/smt-switch does")


class Test:
    def __init__(self, network, folder):
        self.network, self.folder = network, folder
        self.processes = []
        programs.run(SMT, "keys", "ca", "--out", folder)
        programs.run(SMT, "keys", "server", "localhost", *topology.SERVER, "--ca", folder, "--out", folder)

    def calls(self, address, carrier):
        """Calls of mixed sizes, each reply compared."""
        command = ["ip", "netns", "exec", self.network.server, SMT, "serve", at(address), "--carrier", carrier, "--cert",
                   self.folder / "localhost.pem", "--key", self.folder / "localhost.key", "--echo"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(server)
        check(server.stdout.readline(), f"{command} has ended")
        for size in SIZES:
            body = random.Random(size).randbytes(size)
            path = self.folder / f"body-{size}"
            path.write_bytes(body)
            count = CALLS // len(SIZES)
            call = ["ip", "netns", "exec", self.network.client, SMT, "call", at(address), "--carrier", carrier, "--ca",
                    self.folder / "ca.pem", "--in", path, "--count", str(count)]
            done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
            check(done.returncode == 0, f"a call to {address} failed: {done.stderr.decode()}")
            check(done.stdout == body * count, f"{address}: {count} replies of {size} bytes are not the requests")
        server.send_signal(signal.SIGTERM)
        _, told = server.communicate(timeout=30)
        self.processes.remove(server)
        check(server.returncode == 0, f"a server ended with {server.returncode}: {told}")

    def all_calls(self):
        for carrier in CARRIERS:
            for address in topology.SERVER:
                self.calls(address, carrier)

    def received(self, path):
        """Packets that a path's interface has received, by the kernel's own count."""
        told = programs.run("ip", "-n", self.network.server, "-s", "-j", "link", "show", "dev", f"path{path}")
        return json.loads(told)[0]["stats64"]["rx"]["packets"]

    def counted(self, counter):
        """Packets of SMT that a program has counted."""
        return sum(counts[0] for counts in counter.messages().values()) + counter.sum(programs.SMT_OTHER)[0]

    def uncounted(self, path, counter):
        """Packets that a path has received before its counter was attached."""
        while True:
            received = self.received(path)
            counted = self.counted(counter) + counter.sum(programs.OTHER)[0]
            # A packet that came in between belongs to one count and not to the other.
            if received == self.received(path):
                return received - counted

    def balance(self):
        """A message keeps its path, messages spread, and the counters equal the kernel's counts."""
        counters = [Program.attach(self.network.server, f"path{path}", "smt_count") for path in range(topology.PATHS)]
        uncounted = [self.uncounted(path, counter) for path, counter in enumerate(counters)]
        balancer = Program.attach(self.network.switch, "in", "smt_balance")
        balancer.configure(seed=7, paths=topology.PATHS)
        for path in range(topology.PATHS):
            balancer.set_path(path, f"out{path}")
        self.all_calls()
        for path, counter in enumerate(counters):
            # The kernel adds to its count after a batch of packets.
            is_equal = any(self.uncounted(path, counter) == uncounted[path] for _ in range(50))
            check(is_equal, f"path {path}: the kernel has received other packets than were counted")
        messages = [counter.messages() for counter in counters]
        sent = balancer.sum(programs.SENT)[0]
        smt = sum(self.counted(counter) for counter in counters)
        check(smt == sent, f"{smt} packets were counted, and {sent} balanced")
        both = set(messages[0]) & set(messages[1])
        check(not both, f"{len(both)} messages changed their path")
        least, all_ = min(map(len, messages)), sum(map(len, messages))
        check(least * 3 > all_, f"messages do not spread: {list(map(len, messages))}")
        Program.detach(self.network.switch, "in")
        for path in range(topology.PATHS):
            Program.detach(self.network.server, f"path{path}")
        print(f"balanced: {list(map(len, messages))} messages by two paths, none by both; {sent} packets, all counted")

    def trim(self):
        """Trimmed packets are asked for, and every reply is right."""
        trimmer = Program.attach(self.network.switch, "in", "smt_trim")
        trimmer.configure(rate=RATE, queue_limit=QUEUE_LIMIT)
        self.all_calls()
        packets = trimmer.sum(programs.TRIMMED)[0]
        check(packets > 0, "nothing was trimmed")
        # Even a switch that trims all leaves other protocols alone.
        trimmer.configure()
        self.tcp()
        check(trimmer.sum(programs.TRIMMED)[0] == packets, "a packet of TCP was trimmed")
        Program.detach(self.network.switch, "in")
        print(f"trimmed: {packets} packets, and every reply was right; TCP passed whole")

    def tcp(self):
        """A megabyte by TCP, through whatever is attached."""
        script = ("import socket,sys,hashlib\n"
                  "server=socket.create_server((sys.argv[1],7000))\nprint('ready',flush=True)\n"
                  "end,_=server.accept()\nhash=hashlib.sha256()\n"
                  "while data:=end.recv(65536): hash.update(data)\nprint(hash.hexdigest())")
        server = subprocess.Popen(["ip", "netns", "exec", self.network.server, sys.executable, "-c", script,
                                   topology.SERVER[0]], stdout=subprocess.PIPE, text=True)
        self.processes.append(server)
        check(server.stdout.readline() == "ready\n", "no server of TCP")
        sender = ("import socket,sys,random,hashlib\n"
                  "data=random.Random(1).randbytes(1000000)\n"
                  "end=socket.create_connection((sys.argv[1],7000),timeout=20)\nend.sendall(data)\n"
                  "end.shutdown(socket.SHUT_WR)\nprint(hashlib.sha256(data).hexdigest())")
        sent = self.network.inside(self.network.client, sys.executable, "-c", sender, topology.SERVER[0], timeout=60)
        received, _ = server.communicate(timeout=60)
        self.processes.remove(server)
        check(sent == received, "TCP's bytes are others")

    def mark(self):
        """Packets of capable senders are marked, and arrive so; those of others are not."""
        # A bridge may send by either port: it learns also from what hosts say of themselves.
        ports = [f"path{path}" for path in range(topology.PATHS)]
        counters = [Program.attach(self.network.server, port, "smt_count") for port in ports]
        marker = Program.attach(self.network.switch, "in", "smt_mark")
        marker.configure(rate=RATE, queue_limit=QUEUE_LIMIT)
        self.calls(topology.SERVER[0], "native")
        check(marker.sum(programs.MARKED)[0] == 0, "a packet was marked whose sender knows nothing of ECN")
        self.network.make_capable()
        self.all_calls()
        marked = marker.sum(programs.MARKED)[0]
        arrived = sum(sum(counts[3] for counts in counter.messages().values()) + counter.sum(programs.SMT_OTHER)[3]
                      for counter in counters)
        check(0 < marked == arrived, f"{marked} packets were marked, and {arrived} arrived so")
        Program.detach(self.network.switch, "in")
        for port in ports:
            Program.detach(self.network.server, port)
        print(f"marked: {marked} packets, all arrived so, and every reply was right")

    def end(self):
        for process in self.processes:
            process.kill()


def main():
    # Namespaces and folders go also when a limit ends the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as folder, topology.Topology() as network:
        folder = pathlib.Path(folder)
        try:
            Program.attach(network.switch, "in", "smt_count")
            Program.detach(network.switch, "in")
        except Refused as why:
            print(f"integrations/xdp: this kernel takes no XDP program on veth: left out ({why})")
            sys.exit(77)
        vectors(network, folder)
        test = Test(network, folder)
        try:
            test.balance()
            test.trim()
            test.mark()
        finally:
            test.end()


main()

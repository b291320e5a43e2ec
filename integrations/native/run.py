# SPDX-License-Identifier: Apache-2.0 OR MIT
"""SMT over an IP protocol of its own, between namespaces: run.py SMT

CALLS=N has other numbers of calls than 2,000, and SEED=N other garbage.
"""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import topology

HERE = pathlib.Path(__file__).resolve().parent
SMT = sys.argv[1]
CALLS = int(os.environ.get("CALLS", "2000"))
SEED = int(os.environ.get("SEED", "1"))
# Bytes of requests: within a record, around its end, several packets, several records.
SIZES = (0, 64, 1_100, 1_500, 9_000, 40_000)
PORT = 17_379


def at(address, port=PORT):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class Test:
    def __init__(self, network, folder):
        self.network, self.folder = network, folder
        self.processes = []
        subprocess.run([SMT, "keys", "ca", "--out", folder], check=True, capture_output=True)
        names = ["localhost", *topology.SERVER, *topology.SERVER_NIC]
        subprocess.run([SMT, "keys", "server", *names, "--ca", folder, "--out", folder], check=True,
                       capture_output=True)

    def serve(self, address, *how, carrier="native", name=None):
        """Starts a server, and waits until it listens. One with a TUN device gets no right."""
        command = [SMT, "serve", address, "--carrier", carrier, "--cert", self.folder / "localhost.pem",
                   "--key", self.folder / "localhost.key", *how]
        if carrier == "nic":
            command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
        return self.start(name or self.network.server, command)

    def start(self, name, command):
        process = subprocess.Popen(["ip", "netns", "exec", name, *map(str, command)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        line = process.stdout.readline()
        if not line:
            sys.exit(f"{command} has ended: {process.stderr.read()}")
        return process

    def end(self, process):
        """Ends a process as Ctrl-C does, and gives its last words."""
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=30)
        self.processes.remove(process)
        if process.returncode != 0:
            sys.exit(f"a server ended with {process.returncode}: {told}")
        return told

    def call(self, address, *how, carrier="native"):
        """A client, which may be waited for."""
        if carrier == "nic":
            own = topology.CLIENT_NIC["[" in address]
            how = [*how, "--tun", topology.TUN, "--tun-address", own]
        command = [SMT, "call", address, "--carrier", carrier, "--ca", self.folder / "ca.pem", *how]
        return subprocess.Popen(["ip", "netns", "exec", self.network.client, *map(str, command)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def calls(self, address, count, carrier="native"):
        """Calls of mixed sizes, `count` in all; each reply is compared. Some are at once, but for clients over XDP or
        behind a NIC, of which an interface has one at a time."""
        clients = []
        for number, size in enumerate(SIZES):
            body = random.Random(size).randbytes(size)
            path = self.folder / f"body-{size}"
            path.write_bytes(body)
            own = count // len(SIZES) + (number < count % len(SIZES))
            if own == 0:
                continue
            clients.append((body, own, self.call(address, "--in", path, "--count", own, carrier=carrier)))
            if carrier in ("xdp", "nic"):
                self.finish(address, clients.pop())
        for client in clients:
            self.finish(address, client)

    def finish(self, address, call):
        body, own, client = call
        replies, told = client.communicate(timeout=3_000)
        check(client.returncode == 0, f"a call to {address} failed: {told.decode()}")
        check(replies == body * own, f"{address}: {own} replies of {len(body)} bytes each are not the requests")

    def many(self, carrier="native", calling=None):
        """Nothing is lost and nothing runs twice, though the router loses packets."""
        calling = calling or carrier
        self.network.lose(1)
        for address in topology.SERVER:
            log = self.folder / "log"
            log.unlink(missing_ok=True)
            server = self.serve(at(address), "--echo", "--access-log", log, carrier=carrier)
            lost, began = self.network.lost(), time.monotonic()
            by_kernel = self.network.through_kernel(self.network.server)
            self.calls(at(address), CALLS // 2, calling)
            took, lost = time.monotonic() - began, self.network.lost() - lost
            by_kernel = self.network.through_kernel(self.network.server) - by_kernel
            self.end(server)
            served = len(log.read_text().splitlines())
            check(served == CALLS // 2, f"{served} requests ran, of {CALLS // 2}")
            check(lost > 0, "the router has lost nothing")
            # A call is two packets at least. The first ones to a peer, one a second, and those of a
            # native peer that are longer than a frame go through the kernel.
            is_past = by_kernel < CALLS // 2
            check(calling != carrier or is_past == (carrier == "xdp"),
                  f"{by_kernel} packets went through the server's kernel over {carrier}")
            print(f"{calling} to {carrier}, {address}: {served} calls in {took:.1f} s, each ran once; {lost} packets were lost")
        self.network.lose(0)

    def two_endpoints(self):
        """Two servers at one address get their own packets alone; a third has no such port."""
        for address in topology.SERVER:
            first = self.serve(at(address), "--echo")
            second = self.serve(at(address, PORT + 1), "--anyone", "--exec", "tr", "a-z", "A-Z")
            path = self.folder / "words"
            path.write_text("two words")
            for port, reply in ((PORT, b"two words"), (PORT + 1, b"TWO WORDS")) * 3:
                got, told = self.call(at(address, port), "--in", path).communicate(timeout=30)
                check(got == reply, f"{at(address, port)} replied {got}: {told.decode()}")
            third = subprocess.run(
                ["ip", "netns", "exec", self.network.server, SMT, "serve", at(address), "--carrier", "native", "--cert",
                 self.folder / "localhost.pem", "--key", self.folder / "localhost.key", "--echo"],
                capture_output=True, text=True)
            check(third.returncode == 1 and at(address) in third.stderr and "choose another" in third.stderr,
                  f"a third server said {third.stderr}")
            self.end(first)
            self.end(second)
        print("two endpoints at one address: each got its own")

    def alien_packets(self):
        """Packets of the protocol that are nobody's, or garbage for the port, do no harm."""
        script = self.folder / "garbage.py"
        script.write_text(GARBAGE)
        for address in topology.SERVER:
            server = self.serve(at(address), "--echo")
            garbage = subprocess.Popen(
                ["ip", "netns", "exec", self.network.client, sys.executable, script, address, str(PORT), str(SEED)])
            self.calls(at(address), 60)
            check(garbage.wait(timeout=60) == 0, "the sender of garbage failed")
            self.calls(at(address), 60)
            told = self.end(server)
            check("served 120 requests" in told, told)
        print(f"20,000 alien packets (SEED={SEED}): no harm")

    def shrinking_mtu(self, carrier="native"):
        """The way of a message carries less from one moment to the next."""
        size = 48_000_000
        path = self.folder / "long"
        body = random.Random(7).randbytes(size)
        path.write_bytes(body)
        for address in topology.SERVER:
            # On a busy machine the request may be over before this process looks: then once more.
            for _ in range(5):
                shrunk = self.shrink_once(address, carrier, path, body)
                if shrunk < size:
                    break
            check(shrunk < size, "the request was over before the MTU shrank")
            print(f"{carrier}, {address}: the MTU shrank after {shrunk} of {size} bytes, and the message arrived")

    def shrink_once(self, address, carrier, path, body):
        """Sends the body, and shrinks the MTU meanwhile. Returns how many bytes had gone by then."""
        server = self.serve(at(address), "--echo", carrier=carrier)
        before = self.network.forwarded(2)
        client = self.call(at(address), "--in", path, "--out", self.folder / "reply", carrier=carrier)
        while self.network.forwarded(2) - before < len(body) // 8:
            check(client.poll() is None, "the client ended early")
        self.network.set_mtu(2, 1_400)
        shrunk = self.network.forwarded(2) - before
        _, told = client.communicate(timeout=120)
        check(client.returncode == 0, told.decode())
        check((self.folder / "reply").read_bytes() == body, f"{address}: the reply is not the request")
        self.end(server)
        self.network.set_mtu(2, 9_000)
        return shrunk

    def xdp_alone(self):
        """A second carrier at an interface is refused, with its name; so is an address of all interfaces."""
        address = topology.SERVER[0]
        server = self.serve(at(address), "--echo", carrier="xdp")
        credentials = ["--cert", self.folder / "localhost.pem", "--key", self.folder / "localhost.key", "--echo"]
        for where, words in ((at(address, PORT + 1), "another process uses XDP at the interface lan"),
                             ("0.0.0.0:1", "needs an address of one interface"),
                             ("192.0.2.1:1", "192.0.2.1")):
            second = subprocess.run(
                ["ip", "netns", "exec", self.network.server, SMT, "serve", where, "--carrier", "xdp", *credentials],
                capture_output=True, text=True)
            check(second.returncode == 1 and words in second.stderr, f"{where}: {second.stderr}")
        # Other packets go their way.
        udp = self.serve(at(address), "--echo", carrier="udp")
        path = self.folder / "words"
        path.write_text("beside XDP")
        got, told = self.call(at(address), "--in", path, carrier="udp").communicate(timeout=30)
        check(got == b"beside XDP", told.decode())
        self.end(udp)
        # A process that is killed leaves nothing behind.
        server.kill()
        server.communicate()
        self.processes.remove(server)
        self.end(self.serve(at(address), "--echo", carrier="xdp"))
        print("XDP: one at an interface, beside UDP at the same port, and gone with its process")

    def behind_a_nic(self):
        """The model of a NIC seals and cuts what a server replies, and then what a client asks, too."""
        self.network.lose(1)
        for address in topology.SERVER_NIC:
            for calling, trusted in (("native", True), ("nic", True), ("native", False)):
                log = self.folder / "log"
                log.unlink(missing_ok=True)
                how = [] if trusted else ["--untrusted-nic"]
                server = self.serve(at(address), "--echo", "--access-log", log, "--tun", topology.TUN, *how,
                                    carrier="nic")
                self.calls(at(address), CALLS // 8, calling)
                told = self.end(server)
                served = len(log.read_text().splitlines())
                check(served == CALLS // 8, f"{served} requests ran, of {CALLS // 8}")
                packets, segments, sealed, in_software, came, arrivals, opened = numbers_of(NIC_REPORT, told)
                check(came > arrivals, f"the NIC merged nothing: {told}")
                check(packets > segments > served, f"the NIC cut nothing: {told}")
                # The driver leaves short payloads and parts of records to the CPU.
                check((sealed > served) == trusted, f"the NIC sealed {sealed} records")
                check((opened > served // 2) == trusted, f"the NIC opened {opened} records")
                check(trusted or in_software == 0, "a NIC that is not trusted has a driver with keys")
                print(f"{calling} to {'a' if trusted else 'an untrusted'} NIC, {address}: {served} calls, each ran once;"
                      f" {packets} packets of {segments} segments, {sealed} records sealed by the NIC; {came} came as {arrivals}, {opened} records opened by it")
        self.network.lose(0)

    def sealed_packets(self):
        """Two NICs seal whole packets by PSP, and replace the keys of their devices meanwhile; with one alone records are
        sealed. No body is in the clear in a capture between them, which opens with the keys."""
        self.network.lose(1)
        psp = ["--psp", "--psp-key-life", "200ms"]
        for address in topology.SERVER_NIC:
            for serving, calling in ((psp, psp), (psp, []), ([], psp)):
                capture, keys = self.folder / "psp.pcap", self.folder / "psp.keys"
                keys.unlink(missing_ok=True)
                catching = self.start(self.network.router, [sys.executable, HERE / "capture.py", "host2", capture])
                server = self.serve(at(address), "--echo", "--tun", topology.TUN, "--key-log", keys, *serving,
                                    carrier="nic")
                body = self.folder / "secrets"
                body.write_bytes(SECRET * 3_000)
                client = self.call(at(address), "--in", body, "--count", 40, *calling, carrier="nic")
                replies, told = client.communicate(timeout=120)
                check(replies == SECRET * 3_000 * 40, told.decode())
                [opened], sealed = numbers_of(PSP_REPORT, self.end(server)), serving == calling
                check((opened > 300) == sealed, f"the NIC opened {opened} packets of PSP")
                self.end(catching)
                seen = capture.read_bytes()
                check(len(seen) > len(replies), "the capture has not all packets")
                check(SECRET not in seen, "a body was in the clear")
                self.opened(capture, keys, 300 if sealed else 0)
                print(f"{'two NICs' if sealed else 'one NIC'} with PSP, {address}: {opened} packets of PSP opened")
        self.network.lose(0)

    def opened(self, capture, keys, least):
        """The dissector and `smt dump` read a capture alike, and with the keys all of it opens: at least so many packets of
        PSP."""
        compare = HERE.parent / "wireshark" / "compare.py"
        topology.run(sys.executable, compare, SMT, capture)
        decrypted = self.folder / "psp-decrypted.pcap"
        decrypted.unlink(missing_ok=True)
        told = subprocess.run([SMT, "dump", "--json", capture, "--key-log", keys, "--decrypt", decrypted],
                              capture_output=True, text=True, check=True)
        check(" 0 FAILED" in told.stderr and " messages whole, 0 not" in told.stderr, told.stderr)
        packets = [json.loads(line) for line in told.stdout.splitlines()]
        in_psp = [packet for packet in packets if packet["carrier"] == "psp"]
        check(len(in_psp) >= least, f"{len(in_psp)} packets of PSP were captured")
        shut = [packet for packet in in_psp if not packet["opened"]]
        check(not shut, f"{len(shut)} packets of PSP did not open, the first of them {shut[:1]}")
        check(SECRET in decrypted.read_bytes(), "the decrypted capture has no plaintext")

    def wrong_nics(self):
        """Wrong options of a NIC and missing rights are refused, with a reason."""
        address, credentials = topology.SERVER_NIC[0], ["--cert", self.folder / "localhost.pem", "--key",
                                                        self.folder / "localhost.key", "--echo"]
        inside = ["ip", "netns", "exec", self.network.server]
        for where, how, status, words in (
                (address, [], 2, "--tun"),
                (address, ["--tun", "a/b"], 1, "is no name of a device"),
                (address, ["--tun", "lan"], 1, "the device lan is in use"),
                ("0.0.0.0", ["--tun", topology.TUN], 1, "a NIC has one address"),
                (address, ["--tun", topology.TUN, "--shards", "2"], 1, "no shards")):
            told = subprocess.run([*inside, SMT, "serve", at(where), "--carrier", "nic", *how, *credentials],
                                  capture_output=True, text=True)
            check(told.returncode == status and words in told.stderr, f"{how}: {told.returncode} {told.stderr}")
        told = subprocess.run([*inside, "setpriv", "--bounding-set=-net_admin", SMT, "serve", at(address), "--carrier",
                               "nic", "--tun", "other0", *credentials], capture_output=True, text=True)
        check(told.returncode == 1 and "CAP_NET_ADMIN" in told.stderr, told.stderr)
        client = ["ip", "netns", "exec", self.network.client, SMT, "call", at(address), "--carrier", "nic", "--tun",
                  topology.TUN, "--tun-address", topology.CLIENT_NIC[1], "--ca", self.folder / "ca.pem"]
        told = subprocess.run(client, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        check(told.returncode != 0 and "is of another IP version than" in told.stderr, told.stderr)
        print("behind a NIC: wrong devices, addresses and rights are refused, with a reason")

    def traced(self):
        """No system call of a server whose NIC is not trusted has plaintext in it, nor a secret of its sessions."""
        address, trace, keys = topology.SERVER_NIC[0], self.folder / "trace", self.folder / "trace.keys"
        how = ["--tun", topology.TUN, "--untrusted-nic", "--cert", self.folder / "localhost.pem", "--key",
               self.folder / "localhost.key", "--echo"]
        server = self.start(self.network.server, [
            "strace", "-D", "-f", "-q", "-xx", "-s", "70000", "-e", f"trace={SENDING_CALLS}", "-o", trace, SMT, "serve",
            at(address), "--carrier", "nic", *how])
        body = self.folder / "secrets"
        body.write_bytes(SECRET * 3_000)
        client = self.call(at(address), "--in", body, "--key-log", keys)
        replies, told = client.communicate(timeout=60)
        check(replies == SECRET * 3_000, told.decode())
        self.end(server)
        # The tracer ends a little later than its server.
        while f"{server.pid} +++ exited" not in re.sub(" +", " ", trace.read_text()):
            time.sleep(0.01)
        seen = bytes.fromhex("".join(re.findall(r"\\x([0-9a-f]{2})", trace.read_text())))
        # The trace has the packets for TUN: the server's port is behind their IP headers.
        check(seen.count(PORT.to_bytes(2, "big")) > 10, "the trace has none of the packets")
        check(len(seen) > len(replies), "the trace has not all packets")
        check(SECRET not in seen, "plaintext was in a system call")
        secrets = [bytes.fromhex(line.split()[-1]) for line in keys.read_text().splitlines() if line[0] != "#"]
        check(len(secrets) >= 2, "no secret was logged")
        check(not any(secret in seen for secret in secrets), "a secret was in a system call")
        print(f"a NIC that is not trusted: {len(seen)} bytes of system calls, no plaintext and no secret in them")

    def captured(self, carrier="native", servers=topology.SERVER):
        """The dissector and `smt dump` read the same, and the plaintext of a decrypted capture."""
        how = ["--tun", topology.TUN] if carrier == "nic" else []
        capture, keys = self.folder / f"{carrier}.pcap", self.folder / f"{carrier}.keys"
        decrypted = self.folder / f"{carrier}-decrypted.pcap"
        catching = self.start(self.network.router, [sys.executable, HERE / "capture.py", "host2", capture])
        for address in servers:
            server = self.serve(at(address), "--echo", "--key-log", keys, *how, carrier=carrier)
            self.calls(at(address), 60)
            secret = self.folder / "secret"
            secret.write_bytes(SECRET)
            self.call(at(address), "--in", secret).communicate(timeout=30)
            self.end(server)
        self.end(catching)
        compare = HERE.parent / "wireshark" / "compare.py"
        print("dissector:", topology.run(sys.executable, compare, SMT, capture), end="")
        told = subprocess.run([SMT, "dump", "--json", capture, "--key-log", keys, "--decrypt", decrypted],
                              capture_output=True, text=True, check=True)
        check(" 0 FAILED" in told.stderr, told.stderr)
        check(told.stdout.count('"carrier":"native"') > 200, "hardly any packet was native")
        # Packets that a NIC has cut have their segment's offset: their own makes messages whole.
        check(" messages whole, 0 not" in told.stderr, told.stderr)
        check(SECRET not in capture.read_bytes(), "plaintext was on the wire")
        shown = topology.run(compare.parent / "dissect", decrypted, "-Y", "smt.inner.kind", "-T", "fields",
                             "-e", "smt_native.dstport", "-e", "smt.plaintext")
        requests = [line for line in shown.splitlines()
                    if SECRET.hex() in line.replace(":", "") and line.startswith(f"{PORT}\t")]
        check(len(requests) == 2, f"the dissector shows {len(requests)} requests in plaintext")
        print("a decrypted capture: the dissector shows its plaintext")

    def without_rights(self):
        """Without CAP_NET_RAW both commands and the doctor say what is missing."""
        for command in (["serve", "127.0.0.1:0", "--carrier", "native", "--cert", self.folder / "localhost.pem",
                         "--key", self.folder / "localhost.key", "--echo"],
                        ["call", "127.0.0.1:1", "--carrier", "native", "--ca", self.folder / "ca.pem"],
                        ["doctor"]):
            told = subprocess.run(["setpriv", "--bounding-set=-net_raw", SMT, *map(str, command)],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            words = told.stdout + told.stderr
            check("cap_net_raw+ep" in words, f"{command[0]} says: {words}")
            check(told.returncode == (0 if command[0] == "doctor" else 1), f"{command[0]}: {told.returncode}")
        print("without the right: serve, call and doctor say which one is missing")


GARBAGE = f"""
import random, socket, struct, sys
address, port, rng = sys.argv[1], int(sys.argv[2]), random.Random(int(sys.argv[3]))
family = socket.AF_INET6 if ":" in address else socket.AF_INET
raw = socket.socket(family, socket.SOCK_RAW, {topology.PROTOCOL})
for number in range(10_000):
    bytes_ = rng.randbytes(rng.randrange(200))
    if number % 2:
        kind = rng.choice((1, 0x10, 0x21, 0x35))
        bytes_ = struct.pack(">HHIBBBBBBHI", rng.randrange(65536), port, 0, 1, kind, 0, 0, 0xB0 if kind == 1 else 0x50,
                             0, 0, 0) + bytes_
    raw.sendto(bytes_, (address, 0))
"""
SECRET = b"what nobody on the way may read"
NIC_REPORT = (r"the NIC sent (\d+) packets of (\d+) segments and sealed (\d+) records; the driver sealed (\d+), "
              r".* (\d+) packets came as (\d+), and the NIC opened (\d+) of their records")
PSP_REPORT = r"it opened (\d+) packets of PSP"
SENDING_CALLS = "sendto,sendmsg,sendmmsg,write,writev,pwrite64,pwritev"


def numbers_of(pattern, text):
    """The numbers in a line that was told."""
    found = re.search(pattern, text)
    check(found, f"no {pattern} in {text}")
    return map(int, found.groups())


def check(holds, otherwise):
    if not holds:
        raise AssertionError(otherwise)


def has_xdp():
    """Whether this kernel has it and this process may use it; the doctor says why not."""
    told = subprocess.run([SMT, "doctor", "--json"], capture_output=True, text=True, check=True).stdout
    for line in told.splitlines():
        if '"native IP past the kernel"' in line and '"value":"yes"' in line:
            return True
    print(f"XDP is left out here: {[line for line in told.splitlines() if 'past the kernel' in line]}")
    return False


def main():
    with tempfile.TemporaryDirectory() as folder, topology.Topology() as network:
        test = Test(network, pathlib.Path(folder))
        try:
            test.without_rights()
            test.two_endpoints()
            test.alien_packets()
            test.captured()
            test.wrong_nics()
            test.captured("nic", topology.SERVER_NIC)
            test.traced()
            test.behind_a_nic()
            test.sealed_packets()
            test.shrinking_mtu()
            test.many()
            if has_xdp():
                test.xdp_alone()
                test.shrinking_mtu("xdp")
                test.many("xdp")
                test.many("xdp", calling="native")
        finally:
            for process in test.processes:
                process.kill()
    print("passed")


if __name__ == "__main__":
    main()

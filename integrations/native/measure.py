# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Carriers beside each other, between two namespaces over one veth pair: measure.py SMT

REPEAT=N has other repetitions than 9, DURATION=TIME another time for each case than 500ms. Others may
use the machine too: what is measured has precedence by the scheduler where that may be had, and the
table has the least of the repetitions. A call that keeps both ends busy for longer than the scheduler
leaves them the cores waits for them otherwise, which the least median does not take away.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import topology

SMT = sys.argv[1]
REPEAT = int(os.environ.get("REPEAT", "9"))
DURATION = os.environ.get("DURATION", "500ms")
SIZES = "64,1K,8K,64K"
# The name in the table, and the options of both ends.
CARRIERS = {
    "UDP, GSO": ["--carrier", "udp"],
    "UDP, no GSO": ["--carrier", "udp", "--no-gso"],
    "raw IP": ["--carrier", "native"],
    "AF_XDP": ["--carrier", "xdp"],
}
MTUS = (1_500, 9_000)
# Calls at once where processor time is measured: one alone is mostly a thread that looks for it.
AT_ONCE = "32"
CLIENT, SERVER = "10.78.1.1", "10.78.1.2"


class Pair:
    """Two namespaces with a cable; gone when it is left."""

    def __init__(self):
        self.client, self.server = (f"smt-m{name}-{os.getpid()}" for name in ("c", "s"))

    def __enter__(self):
        try:
            for name in (self.client, self.server):
                topology.run("ip", "netns", "add", name)
                topology.run("ip", "-n", name, "link", "set", "lo", "up")
            topology.run("ip", "-n", self.client, "link", "add", "lan", "type", "veth", "peer", "name", "lan",
                         "netns", self.server)
            for name, address in ((self.client, CLIENT), (self.server, SERVER)):
                topology.run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "lan")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (self.client, self.server):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def set_mtu(self, mtu):
        for name in (self.client, self.server):
            topology.run("ip", "-n", name, "link", "set", "lan", "mtu", str(mtu), "up")


def take_precedence():
    """For a process before it is measured. The scheduler first shares the cores between sessions (autogroup,
    sched(7)), hence a session of its own."""
    os.setsid()
    with contextlib.suppress(OSError):
        os.nice(-20)
        pathlib.Path("/proc/self/autogroup").write_text("-20")


def measured(pair, folder, options, concurrency):
    """The measurements of one carrier, by size. Each client has one endpoint: XDP has room for no other."""
    inside = ["ip", "netns", "exec"]
    credentials = ["--cert", folder / "localhost.pem", "--key", folder / "localhost.key"]
    server = subprocess.Popen(
        [*inside, pair.server, SMT, "perf", "server", f"{SERVER}:17379", "--core", "1", "--until-input-ends",
         *credentials, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=take_precedence)
    try:
        if not server.stdout.readline():
            sys.exit(f"the server has ended: {server.stderr.read()}")
        client = subprocess.run(
            [*inside, pair.client, SMT, "perf", "client", SERVER, "--ca", folder / "ca.pem", "--core", "0", "--sizes",
             SIZES, "--concurrency", concurrency, "--api", "blocking", "--duration", DURATION, "--json", *options],
            capture_output=True, text=True, preexec_fn=take_precedence)
    finally:
        has_ended = end(server)
    if client.returncode != 0:
        sys.exit(f"{options}: {client.stderr}")
    if not has_ended:
        sys.exit(f"{options}: the server did not end within a minute, and was killed")
    lines = [json.loads(line) for line in client.stdout.splitlines()]
    return {line["size"]: line for line in lines if line["kind"] == "measurement"}


def end(server):
    """Lets a server end, and kills one that does not. Returns whether it has ended by itself."""
    server.stdin.close()
    try:
        server.wait(timeout=60)
        return True
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
        return False


def table(mtu, results):
    print(f"\nMTU {mtu}: round trip of a call alone, us / processor time of both ends a call, {AT_ONCE} at once, us\n")
    sizes = sorted(next(iter(results.values()))[0][0])
    print("| carrier |" + "".join(f" {size} B |" for size in sizes))
    print("|:--|" + "--:|" * len(sizes))
    for carrier, runs in results.items():
        cells = []
        for size in sizes:
            trip = min(alone[size]["p50_us"] for alone, _ in runs)
            ends = ("client_cpu_us_per_rpc", "server_cpu_us_per_rpc")
            cpu = min(sum(loaded[size][end] for end in ends) for _, loaded in runs)
            cells.append(f" {trip:.1f} / {cpu:.1f} |")
        print(f"| {carrier} |" + "".join(cells))


def main():
    with tempfile.TemporaryDirectory() as path, Pair() as pair:
        folder = pathlib.Path(path)
        subprocess.run([SMT, "keys", "ca", "--out", folder], check=True, capture_output=True)
        subprocess.run([SMT, "keys", "server", "localhost", SERVER, "--ca", folder, "--out", folder], check=True,
                       capture_output=True)
        for mtu in MTUS:
            pair.set_mtu(mtu)
            results = {carrier: [] for carrier in CARRIERS}
            # In turn, so that whatever else the machine does meets all of them alike.
            for _ in range(REPEAT):
                for carrier, options in CARRIERS.items():
                    runs = (measured(pair, folder, options, calls) for calls in ("1", AT_ONCE))
                    results[carrier].append(tuple(runs))
            table(mtu, results)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Carriers beside each other, between two namespaces over one veth pair: measure.py SMT

REPEAT=N has other repetitions than 5, DURATION=TIME another time for each case than 1s.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import topology

SMT = sys.argv[1]
REPEAT = int(os.environ.get("REPEAT", "5"))
DURATION = os.environ.get("DURATION", "1s")
SIZES = "64,1K,8K,64K"
# The name in the table, and the options of both ends.
CARRIERS = {
    "UDP, GSO": ["--carrier", "udp"],
    "UDP, no GSO": ["--carrier", "udp", "--no-gso"],
    "raw IP": ["--carrier", "native"],
    "AF_XDP": ["--carrier", "xdp"],
}
MTUS = (1_500, 9_000)
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


def measured(pair, folder, options):
    """The measurements of one carrier, by size."""
    inside = ["ip", "netns", "exec"]
    credentials = ["--cert", folder / "localhost.pem", "--key", folder / "localhost.key"]
    server = subprocess.Popen(
        [*inside, pair.server, SMT, "perf", "server", f"{SERVER}:17379", "--core", "1", "--until-input-ends",
         *credentials, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if not server.stdout.readline():
            sys.exit(f"the server has ended: {server.stderr.read()}")
        client = subprocess.run(
            [*inside, pair.client, SMT, "perf", "client", SERVER, "--ca", folder / "ca.pem", "--core", "0", "--sizes",
             SIZES, "--concurrency", "1", "--duration", DURATION, "--json", *options], capture_output=True, text=True)
    finally:
        server.stdin.close()
        server.wait(timeout=60)
    if client.returncode != 0:
        sys.exit(f"{options}: {client.stderr}")
    lines = [json.loads(line) for line in client.stdout.splitlines()]
    return {line["size"]: line for line in lines if line["kind"] == "measurement"}


def table(mtu, results):
    print(f"\nMTU {mtu}: median round trip, us / processor time of both ends a call, us\n")
    sizes = sorted(next(iter(results.values()))[0])
    print("| carrier |" + "".join(f" {size} B |" for size in sizes))
    print("|:--|" + "--:|" * len(sizes))
    for carrier, runs in results.items():
        cells = []
        for size in sizes:
            trip = statistics.median(run[size]["p50_us"] for run in runs)
            cpu = statistics.median(
                run[size]["client_cpu_us_per_rpc"] + run[size]["server_cpu_us_per_rpc"] for run in runs)
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
                    results[carrier].append(measured(pair, folder, options))
            table(mtu, results)


if __name__ == "__main__":
    main()

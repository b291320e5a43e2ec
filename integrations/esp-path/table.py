#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The table of the slides on IPsec's cost (netdev 1.1, 2016), on a cable between two namespaces.

    table.py SMT [--clear SMT] [--seconds N] [--round-trips N] [--only WORD] [--json FILE] [--svg FILE]

Prints Markdown: the seven cases of the slides, all permutations of offloads of the clear and each
offload of ESP by itself beside them, ratios beside the slides', and what each layer of protection
costs a message of 64 B to 1 MB. One stream of iperf3 for each case. SMT is the command; a debug
build of it is told in the heading. Takes root, iperf3 and ethtool.

The two ends, and the workers between them, share this machine's cores: figures in Gb/s tell of the
machine, ratios of the offloads. CPU is the share of all cores that was busy.
"""
import argparse
import contextlib
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time

import plot
from tunnel import HERE, LIMIT, Namespaces, Path, Tunnel, run

SWITCHES = ("segmentation", "coalescing")
OFF = {"segmentation": False, "coalescing": False, "batched-send": False, "batched-receive": False, "checksums": False}
# The features of a device that ethtool switches.
FEATURES = ("tso", "gso", "gro", "tx")
# The slides' own words for their four cases in the clear, and what they switch off. Without
# checksums of the device (tx) there is no TSO, and without GSO no segmentation at all.
CLEAR = {
    "clear, defaults": "",
    "clear, GSO on the sender, GRO, no checksum offload": "tso tx",
    "clear, GRO only": "tso gso tx",
    "clear, GSO only": "tso gro",
}
SUITES = {"NULL": "null-hmac-sha-256", "AES-GCM-256": "aes-256-gcm", "AES-CCM-128": "aes-128-ccm-8"}
# On the slides: Gb/s and CPU, without and with segmentation before ESP and coalescing after it.
SLIDES = {"NULL": ((2.6, 71), (8.0, 95)), "AES-GCM-256": ((2.17, 83), (4.2, 100))}
SIZES = [64, 1 << 10, 8 << 10, 64 << 10, 1 << 20]


def busy():
    """Ticks of all cores, busy and all, so far."""
    fields = [int(word) for word in open("/proc/stat").readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


class Bench:
    def __init__(self, arguments, spaces):
        self.smt, self.smt_clear = arguments.smt, arguments.clear
        self.seconds, self.asked = arguments.seconds, arguments.round_trips
        self.only, self.spaces, self.rows = arguments.only, spaces, []

    def measure(self, name, address, group):
        """One stream, and round trips of a byte beside nothing else."""
        server = subprocess.Popen([*self.spaces.inside("b"), "iperf3", "-s", "-1", "-B", address, "--forceflush"],
                                  stdout=subprocess.PIPE, text=True)
        while "listening" not in server.stdout.readline():
            assert server.poll() is None, "iperf3 does not listen"
        before = busy()
        said = run(*self.spaces.inside("a"), "iperf3", "-c", address, "-t", str(self.seconds), "-J")
        after = busy()
        server.communicate(timeout=LIMIT)
        report = json.loads(said)["end"]
        self.rows.append({
            "case": name, "group": group,
            "gbps": report["sum_received"]["bits_per_second"] / 1e9,
            "retransmits": report["sum_sent"]["retransmits"],
            "cpu": (after[0] - before[0]) / max(after[1] - before[1], 1),
            "round_trip_us": self.round_trip(address, 1),
        })
        print(f"{name}: {self.rows[-1]['gbps']:.2f} Gb/s", file=sys.stderr, flush=True)

    def round_trip(self, address, size):
        """The median of round trips of messages over TCP, in microseconds."""
        program = [sys.executable, str(HERE / "transfer.py")]
        server = subprocess.Popen([*self.spaces.inside("b"), *program, "echo", address, str(size)],
                                  stdout=subprocess.PIPE, text=True)
        port = server.stdout.readline().strip()
        count = max(self.asked * 1024 // max(size, 1024), 10)
        median = run(*self.spaces.inside("a"), *program, "ask", address, port, str(count), str(size))
        server.communicate(timeout=LIMIT)
        return float(median)

    def is_wanted(self, name):
        return self.only in name

    def clear(self):
        named = {frozenset(off.split()): name for name, off in CLEAR.items()}
        for number in range(1 << len(FEATURES)):
            off = frozenset(name for at, name in enumerate(FEATURES) if number >> at & 1)
            # The kernel switches TSO off with the checksums: that case is the one with both off.
            if "tx" in off and "tso" not in off:
                continue
            words = "clear" + "".join(f", no {name}" for name in FEATURES if name in off)
            name = named.get(off, words)
            if not self.is_wanted(name):
                continue
            for end in ("a", "b"):
                for feature in FEATURES:
                    value = "off" if feature in off else "on"
                    run(*self.spaces.inside(end), "ethtool", "-K", "wire", feature, value)
            self.measure(name, "192.0.2.2", "slides" if off in named else "permutations")
        for end in ("a", "b"):
            for feature in ("tx", "tso", "gso", "gro"):
                run(*self.spaces.inside(end), "ethtool", "-K", "wire", feature, "on")

    def sealed(self):
        for label, suite in SUITES.items():
            cases = {"no offloads": OFF, "all offloads": {}}
            cases |= {f"no {name}": {name: False} for name in (*SWITCHES, "batched-send", "batched-receive")}
            for words, offloads in cases.items():
                name = f"ESP {label}, {words}"
                if not self.is_wanted(name):
                    continue
                group = "slides" if words.endswith(" offloads") else "permutations"
                with self.tunnel(suite, offloads) as address:
                    self.measure(name, address, group)

    def unprotected(self):
        """The same path with a transform that does nothing."""
        for words, offloads in {"no offloads": OFF, "all offloads": {}}.items():
            name = f"the same TUN in the clear, {words}"
            if self.smt_clear and self.is_wanted(name):
                with both_ends(self.smt_clear, self.spaces, Path("clear", offloads=offloads)) as address:
                    self.measure(name, address, "permutations")

    def tunnel(self, suite, offloads):
        return both_ends(self.smt, self.spaces, Path(suite, offloads=offloads))

    def layers(self):
        """The cost of each layer to a message: medians of round trips in microseconds, by size."""
        rows = {}
        if not self.is_wanted("layers"):
            return rows
        rows["TCP"] = [self.round_trip("192.0.2.2", size) for size in SIZES]
        for label, suite in SUITES.items():
            with self.tunnel(suite, {}) as address:
                rows[f"TCP over ESP {label}"] = [self.round_trip(address, size) for size in SIZES]
        with tempfile.TemporaryDirectory() as keys:
            run(self.smt, "keys", "ca", "--out", keys)
            run(self.smt, "keys", "server", "bench", "192.0.2.2", "--ca", keys, "--out", keys)
            rows |= self.perf(keys)
        return rows

    def perf(self, keys):
        """SMT and TLS over TCP by `smt perf`, over the same cable."""
        files = ["--cert", f"{keys}/bench.pem", "--key", f"{keys}/bench.key", "--until-input-ends"]
        servers = [subprocess.Popen([*self.spaces.inside("b"), self.smt, "perf", "server", *words, *files],
                                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                   for words in (["192.0.2.2:17379"], ["192.0.2.2:17380", "--tls"])]
        try:
            words = ["--ca", f"{keys}/ca.pem", "--against-tls", "192.0.2.2:17380", "--concurrency", "1", "--json",
                     "--duration", f"{self.seconds * 1000:.0f}ms", "--sizes", ",".join(map(str, SIZES)), "192.0.2.2:17379"]
            said = None
            while said is None:
                done = subprocess.run([*self.spaces.inside("a"), self.smt, "perf", "client", *words],
                                      capture_output=True, text=True, timeout=LIMIT + 20 * self.seconds)
                if done.returncode == 0:
                    said = done.stdout
                elif any(server.poll() is not None for server in servers) or "refused" not in done.stderr:
                    raise AssertionError(done.stderr)
        finally:
            for server in servers:
                server.stdin.close()
                server.wait(LIMIT)
        found = [json.loads(line) for line in said.splitlines()]
        found = [each for each in found if each["kind"] == "measurement"]
        names = {"smt": "SMT", "tls": "TLS over TCP"}
        return {names[kind]: [each["p50_us"] for size in SIZES for each in found
                              if each["transport"] == kind and each["size"] == size] for kind in names}


@contextlib.contextmanager
def both_ends(smt, spaces, path):
    """Tunnels at both ends, and the address of the second."""
    with Tunnel(smt, spaces, "a", path.config("a")), Tunnel(smt, spaces, "b", path.config("b")):
        yield path.inner("b")


def heading(smt, seconds):
    said = subprocess.run([smt, "perf", "loopback", "--sizes", "64", "--concurrency", "1", "--duration", "10ms"],
                          capture_output=True, text=True, timeout=LIMIT)
    build = "a debug build" if "debug build" in said.stderr else "a release build"
    version = subprocess.run(["iperf3", "--version"], capture_output=True, text=True).stdout.split()[1]
    return (f"{time.strftime('%Y-%m-%d')}, Linux {platform.release()}, {os.cpu_count()} cores, load "
            f"{os.getloadavg()[0]:.1f} before, {build}, iperf {version}, {seconds:g} s for each figure")


def by_name(rows):
    return {row["case"]: row for row in rows}


def ratios(rows):
    """Ours beside the slides': what all offloads gain, of which the slides have two."""
    found, lines = by_name(rows), []
    for label in SUITES:
        without, all_on = found.get(f"ESP {label}, no offloads"), found.get(f"ESP {label}, all offloads")
        if without and all_on:
            said = "not given"
            if label in SLIDES:
                (slow, slow_cpu), (fast, fast_cpu) = SLIDES[label]
                said = f"{fast / slow:.2f} ({slow} Gb/s at {slow_cpu} % to {fast} at {fast_cpu} %)"
            clear = found.get("the same TUN in the clear, all offloads")
            of_clear = f"{all_on['gbps'] / clear['gbps']:.2f}" if clear else "not measured"
            lines.append((label, all_on["gbps"] / without["gbps"], said, of_clear))
    return lines


def markdown(title, rows, layers):
    lines, found = [title], ratios(rows)
    for group, words in (("slides", "the slides' cases"), ("permutations", "permutations beside")):
        lines += ["", f"| {words} | Gb/s | CPU | of the first | round trip, us | repeated |", "|---|---|---|---|---|---|"]
        lines += [f"| {row['case']} | {row['gbps']:.2f} | {row['cpu']:.0%} | {row['gbps'] / rows[0]['gbps']:.2f} | "
                  f"{row['round_trip_us']:.0f} | {row['retransmits']} |" for row in rows if row["group"] == group]
    if found:
        lines += ["", "| ESP | all offloads to none | on the slides | all offloads to the same TUN in the clear |",
                  "|---|---|---|---|"]
        lines += [f"| {label} | {ratio:.2f} | {said} | {of_clear} |" for label, ratio, said, of_clear in found]
    if layers:
        lines += ["", "| median round trip, us | " + " | ".join(f"{size} B" for size in SIZES) + " |",
                  "|---|" + "---|" * len(SIZES)]
        lines += [f"| {name} | " + " | ".join(f"{value:.0f}" for value in values) + " |" for name, values in layers.items()]
    return "\n".join(lines)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("smt")
    arguments.add_argument("--clear", help="the command with the suite \"clear\", which protects nothing")
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--round-trips", type=int, default=2000)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--json", type=pathlib.Path)
    arguments.add_argument("--svg", type=pathlib.Path)
    arguments = arguments.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    title = heading(arguments.smt, arguments.seconds)
    with Namespaces() as spaces:
        spaces.veth()
        bench = Bench(arguments, spaces)
        bench.clear()
        bench.sealed()
        bench.unprotected()
        layers = bench.layers()
    print(markdown(title, bench.rows, layers))
    if arguments.json:
        arguments.json.write_text(json.dumps({"title": title, "rows": bench.rows, "layers": layers}, indent=1) + "\n")
    if arguments.svg:
        rows = [row for row in bench.rows if row["group"] == "slides"]
        arguments.svg.write_text(plot.bars("One stream of iperf3, Gb/s", title, [(row["case"], row["gbps"]) for row in rows]))


if __name__ == "__main__":
    main()

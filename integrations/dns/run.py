# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Publishes tickets of `smt serve` in Knot DNS and BIND, and calls by them: run.py PATH-TO-SMT.

1. A ticket by dynamic update and one by zone file: the session begins by it, with DNSSEC.
2. Each thing that may go wrong: the call succeeds by TLS, and one line says why.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from name_servers import FILES, UPDATES, Bind, Knot, free_port, until
from proxy import Proxy, with_long_ttls, without_signatures

SMT = str(pathlib.Path(sys.argv[1]).resolve())
HOSTS = ["db7", "loop"]


class Serve:
    """An `smt serve` that echoes."""

    def __init__(self, pki, *more, port=0):
        files = ["--cert", f"{pki}/server.pem", "--key", f"{pki}/server.key"]
        words = [SMT, "serve", f"127.0.0.1:{port}", "--echo", *files, *more]
        self.log = (pki / "serve.log").open("ab")
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1])

    def end(self, kill=False):
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Test:
    def __init__(self, server, pki):
        self.server, self.pki, self.shown = server, pki, 0

    def call(self, port, name, resolver=None, dnssec=True):
        """Calls, and gives the lines that were told."""
        words = [SMT, "call", f"127.0.0.1:{port}", "--name", name, "--ca", f"{self.pki}/ca.pem",
                 "--tickets", "--resolver", resolver or self.server.address, "-v"]
        if dnssec:
            words += ["--dnssec", f"{self.server.directory}/anchors"]
        done = subprocess.run(words, input=b"hello", capture_output=True, timeout=60)
        told = re.sub(r"\x1b\[[0-9;]*m", "", done.stderr.decode())
        if done.returncode or done.stdout != b"hello":
            raise SystemExit(f"{self.server}: the call failed: {told}")
        return told

    def by_ticket(self, what, *where, **how):
        told = self.call(*where, **how)
        if "began by a ticket" not in told or " WARN " in told:
            raise SystemExit(f"{self.server}, {what}: no session by ticket: {told}")
        self.say(what, "by ticket")

    def by_tls(self, what, why, *where, **how):
        told = self.call(*where, **how)
        warnings = [line for line in told.splitlines() if " WARN " in line]
        if len(warnings) != 1 or why not in warnings[0] or "began by a ticket" in told:
            raise SystemExit(f"{self.server}, {what}: expected one warning of {why!r}: {told}")
        self.say(what, "by TLS, told once")

    def say(self, what, how):
        self.shown += 1
        print(f"{self.server}: {what}: {how}", flush=True)

    def ticket(self, port, name, resolver=None, dnssec=True):
        """The ticket as `smt ticket show` has it, or nothing."""
        words = [SMT, "ticket", "show", "--json", "--dns", f"{name}:{port}",
                 "--resolver", resolver or self.server.address]
        if dnssec:
            words += ["--dnssec", f"{self.server.directory}/anchors"]
        done = subprocess.run(words, capture_output=True, timeout=60)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def updates(self):
        name = f"db7.{UPDATES}"
        place = f"{self.server.address}#{UPDATES}"
        more = ["--tickets-dns-update", place, "--tsig-key", f"{self.server.directory}/tsig.key"]
        serve = Serve(self.pki, *more)
        port = serve.port
        until("the ticket by update", lambda: self.ticket(port, name))
        self.by_ticket("a dynamic update", port, name)
        # SMT [6.9-5]
        proxy = Proxy(free_port(), with_long_ttls, self.server.port)
        found = self.ticket(port, name, proxy.address, dnssec=False)
        assert found["ttl_s"] > 86_000, found
        self.by_ticket("a stretched TTL", port, name, proxy.address, dnssec=False)
        proxy = Proxy(free_port(), without_signatures, self.server.port)
        self.by_tls("an unsigned record", "DNSSEC", port, name, proxy.address)
        self.by_ticket("the same without DNSSEC", port, name, proxy.address, dnssec=False)
        silent = Proxy(free_port(), None)
        self.by_tls("no answer", "no resolver has answered", port, name, silent.address)
        serve.end(kill=True)
        # The next process does not have the keys of the one that died.
        serve = Serve(self.pki, port=port)
        self.by_tls("a ticket of a process that died", "did not take", port, name)
        serve.end()
        serve = Serve(self.pki, *more, "--tickets-life", "2s", port=port)
        until("the short ticket", lambda: (self.ticket(port, name) or {}).get("seconds_left", 99) < 3)
        serve.end(kill=True)
        serve = Serve(self.pki, port=port)
        until("its end", lambda: self.ticket(port, name)["seconds_left"] == 0)
        verify = [SMT, "ticket", "verify", "--ca", f"{self.pki}/ca.pem", "--dns", f"{name}:{port}",
                  "--resolver", self.server.address]
        until("its refusal", lambda: subprocess.run(verify, capture_output=True).returncode)
        self.by_tls("a stale record", "is over", port, name)
        serve.end()
        serve = Serve(self.pki, *more, port=port)
        until("the next ticket", lambda: self.ticket(port, name)["seconds_left"] > 2)
        self.by_ticket("a server that is there again", port, name)
        serve.end()
        until("the withdrawal", lambda: self.ticket(port, name) is None)
        serve = Serve(self.pki, port=port)
        self.by_tls("an absent record", "no ticket", port, name)
        serve.end()

    def files(self):
        name = f"db7.{FILES}"
        fragment = self.server.directory / "ticket.zone"
        serve = Serve(self.pki, "--tickets-zone-file", str(fragment), "--tickets-name", name)
        until("the zone file", fragment.exists)
        loop = "".join(f"_{serve.port}._smt.{a} CNAME _{serve.port}._smt.{b}\n"
                       for a, b in (("loop", "pool"), ("pool", "loop")))
        self.server.write_zone(FILES, f"$INCLUDE {fragment}\n{loop}")
        self.server.load(FILES)
        until("the ticket by file", lambda: self.ticket(serve.port, name))
        self.by_ticket("a zone file", serve.port, name)
        self.by_tls("a CNAME loop", "no ticket of", serve.port, f"loop.{FILES}")
        before = self.ticket(serve.port, name)["ticket_sha256"]
        lines = fragment.read_text().splitlines(keepends=True)
        # One bit of the share, far behind what is parsed first.
        digits = list(lines[20])
        digits[10] = format(int(digits[10], 16) ^ 1, "x")
        lines[20] = "".join(digits)
        (self.server.directory / "tampered.zone").write_text("".join(lines))
        self.server.write_zone(FILES, f"$INCLUDE {self.server.directory}/tampered.zone\n{loop}")
        self.server.load(FILES)
        until("the tampered one",
              lambda: (self.ticket(serve.port, name) or {}).get("ticket_sha256", before) != before)
        self.by_tls("a tampered record", "signature", serve.port, name)
        serve.end()


def main():
    with tempfile.TemporaryDirectory() as scratch:
        pki = pathlib.Path(scratch)
        names = [f"{host}.{zone}" for zone in (UPDATES, FILES) for host in HOSTS]
        quiet = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run([SMT, "keys", "ca", "--out", pki], **quiet)
        subprocess.run([SMT, "keys", "server", *names, "--ca", pki, "--out", pki], **quiet)
        for kind in ("pem", "key"):
            (pki / f"{names[0]}.{kind}").rename(pki / f"server.{kind}")
        for kind in (Knot, Bind):
            server = kind(pki / kind.__name__)
            try:
                test = Test(server, pki)
                test.updates()
                test.files()
            finally:
                server.end()
    print("tickets in DNS: all as expected")


main()

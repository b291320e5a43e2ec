# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Knot DNS and BIND on loopback, each with a zone for updates and one for files, both signed."""

import socket
import subprocess
import time

KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
UPDATES, FILES = "update.test", "file.test"


def free_port():
    """A port that is free for UDP and TCP on loopback."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp, socket.socket() as tcp:
            udp.bind(("127.0.0.1", 0))
            try:
                tcp.bind(udp.getsockname())
            except OSError:
                continue
            return udp.getsockname()[1]


def until(what, ready, seconds=30):
    """Asks again and again, since servers tell nobody when they are ready."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = ready()
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit(f"{what} did not come within {seconds} s")


class NameServer:
    """The parts that both servers have."""

    def __init__(self, directory):
        directory.mkdir()
        self.directory, self.port, self.serial = directory, free_port(), 1
        self.log = (directory / "log").open("wb")
        self.write_zone(UPDATES, "")
        self.write_zone(FILES, "")
        (directory / "tsig.key").write_text(
            f'key "smt-key" {{\n\talgorithm hmac-sha256;\n\tsecret "{KEY}";\n}};\n'
        )
        self.process = self.start()
        for zone in (UPDATES, FILES):
            until(f"the keys of {zone} at {self}", lambda zone=zone: self.keys(zone))
        anchors = "".join(self.keys(zone) for zone in (UPDATES, FILES))
        (directory / "anchors").write_text(anchors)

    def __str__(self):
        return type(self).__name__

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def run(self, *words):
        return subprocess.Popen(words, stdout=self.log, stderr=self.log, cwd=self.directory)

    def write_zone(self, zone, records):
        self.serial += 1
        (self.directory / f"{zone}.zone").write_text(
            f"$ORIGIN {zone}.\n$TTL 60\n"
            f"@ SOA ns hostmaster {self.serial} 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n{records}"
        )

    def keys(self, zone):
        """The zone's DNSKEY records as text, once they are signed."""
        asked = ["kdig", "@127.0.0.1", "-p", str(self.port), "+dnssec", "+short", "+timeout=1",
                 "+retry=0", zone, "DNSKEY"]
        lines = subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()
        keys = [line for line in lines if line.split()[:1] in (["257"], ["256"])]
        if len(keys) == len(lines):
            return ""
        parts = (key.split(None, 3) for key in keys)
        return "".join(
            f"{zone}. 60 IN DNSKEY {a} {b} {c} {key.replace(' ', '')}\n" for a, b, c, key in parts
        )

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Knot(NameServer):
    def start(self):
        place = self.directory
        (place / "knot.conf").write_text(f"""
server:
    rundir: {place}
    listen: 127.0.0.1@{self.port}
log:
  - target: stderr
    any: info
database:
    storage: {place}
key:
  - id: smt-key
    algorithm: hmac-sha256
    secret: {KEY}
acl:
  - id: update
    key: smt-key
    action: update
policy:
  - id: one-key
    single-type-signing: on
template:
  - id: default
    storage: {place}
    file: "%s.zone"
    dnssec-signing: on
    dnssec-policy: one-key
    zonefile-sync: -1
    journal-content: all
    semantic-checks: off
zone:
  - domain: {UPDATES}
    acl: update
  - domain: {FILES}
    zonefile-load: difference
""")
        return self.run("knotd", "-c", str(place / "knot.conf"))

    def load(self, zone):
        self.run("knotc", "-s", str(self.directory / "knot.sock"), "-b", "zone-reload", zone).wait()


class Bind(NameServer):
    def start(self):
        place, self.control = self.directory, free_port()
        (place / "named.conf").write_text(f"""
include "{place}/tsig.key";
options {{
    directory "{place}";
    key-directory "{place}";
    managed-keys-directory "{place}";
    pid-file "{place}/pid";
    session-keyfile none;
    listen-on port {self.port} {{ 127.0.0.1; }};
    listen-on-v6 {{ none; }};
    recursion no;
    notify no;
    dnssec-validation no;
}};
controls {{ inet 127.0.0.1 port {self.control} allow {{ 127.0.0.1; }} keys {{ smt-key; }}; }};
zone "{UPDATES}" {{
    type primary; file "{UPDATES}.zone"; allow-update {{ key smt-key; }};
    dnssec-policy default; inline-signing yes;
}};
zone "{FILES}" {{ type primary; file "{FILES}.zone"; dnssec-policy default; inline-signing yes; }};
""")
        return self.run("named", "-g", "-c", str(place / "named.conf"))

    def load(self, zone):
        key = str(self.directory / "tsig.key")
        port = str(self.control)
        self.run("rndc", "-s", "127.0.0.1", "-p", port, "-k", key, "reload", zone).wait()

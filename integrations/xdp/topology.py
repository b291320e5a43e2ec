# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Three network namespaces: a client, a switch (a bridge), and a server with two paths from it."""

import os
import subprocess

from programs import run

CLIENT, SERVER = ("10.78.0.1", "fd78::1"), ("10.78.0.2", "fd78::2")
PATHS = 2


class Topology:
    """Made when it is entered, and gone when it is left."""

    def __init__(self):
        self.client, self.switch, self.server = (f"smt-x{name}-{os.getpid()}" for name in ("c", "b", "s"))

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (self.client, self.switch, self.server):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def make(self):
        for name in (self.client, self.switch, self.server):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", self.switch, "link", "add", "name", "bridge0", "type", "bridge")
        run("ip", "-n", self.switch, "link", "set", "bridge0", "up")
        self.cable("in", self.client, "lan")
        for path in range(PATHS):
            self.cable(f"out{path}", self.server, f"path{path}")
        # Any path leads to the one address, so all have the server's link address.
        for path in range(PATHS):
            run("ip", "-n", self.server, "link", "set", f"path{path}", "address", "02:00:00:00:00:02")
        for end, interface, addresses in ((self.client, "lan", CLIENT), (self.server, "path0", SERVER)):
            four, six = addresses
            run("ip", "-n", end, "addr", "add", f"{four}/24", "dev", interface)
            run("ip", "-n", end, "addr", "add", f"{six}/64", "dev", interface, "nodad")
        self.inside(self.server, "sh", "-c", "for one in all path1; do echo 0 >/proc/sys/net/ipv4/conf/$one/rp_filter; done")

    def cable(self, port, end, interface):
        run("ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", interface, "netns", end)
        run("ip", "-n", self.switch, "link", "set", port, "master", "bridge0", "up")
        run("ip", "-n", end, "link", "set", interface, "up")
        # XDP sees frames as they are in memory: whole, and with their checksums.
        for name, own in ((self.switch, port), (end, interface)):
            self.inside(name, "ethtool", "-K", own, "tx", "off", "gso", "off", "tso", "off", "gro", "off")

    def inside(self, name, *command, **more):
        """The output of a command in a namespace."""
        return run("ip", "netns", "exec", name, *command, **more)

    def make_capable(self):
        """From now on the client's packets of SMT say that their sender knows of ECN."""
        self.inside(self.client, "nft", "-f", "-", input="""
            table inet capable {
                chain out {
                    type filter hook output priority 0;
                    meta l4proto 253 ip ecn set ect0
                    meta l4proto 253 ip6 ecn set ect0
                    udp dport 17379 ip ecn set ect0
                    udp dport 17379 ip6 ecn set ect0
                }
            }""")

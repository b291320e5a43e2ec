# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Three network namespaces: a client and a server, and a router between them that loses packets."""

import json
import os
import subprocess

# The last number of an address tells the namespace.
CLIENT, SERVER = ("10.77.1.2", "fd77:1::2"), ("10.77.2.2", "fd77:2::2")
# Addresses behind TUN devices of the client and the server, for a NIC that is a process.
CLIENT_NIC, SERVER_NIC = ("10.77.3.2", "fd77:3::2"), ("10.77.4.2", "fd77:4::2")
TUN = "nic0"
PROTOCOL = 253


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stderr}{done.stdout}")
    return done.stdout


class Topology:
    """Made when it is entered, and gone when it is left."""

    def __init__(self):
        self.client, self.router, self.server = (f"smt-{name}-{os.getpid()}" for name in ("c", "r", "s"))

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (self.client, self.router, self.server):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def make(self):
        for name in (self.client, self.router, self.server):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for number, end in ((1, self.client), (2, self.server)):
            inner = f"host{number}"
            run("ip", "-n", self.router, "link", "add", inner, "type", "veth", "peer", "name", "lan", "netns", end)
            for name, interface, host in ((self.router, inner, 1), (end, "lan", 2)):
                run("ip", "-n", name, "addr", "add", f"10.77.{number}.{host}/24", "dev", interface)
                run("ip", "-n", name, "addr", "add", f"fd77:{number}::{host}/64", "dev", interface, "nodad")
                run("ip", "-n", name, "link", "set", interface, "mtu", "9000", "up")
            run("ip", "-n", end, "route", "add", "default", "via", f"10.77.{number}.1")
            run("ip", "-n", end, "route", "add", "default", "via", f"fd77:{number}::1")
            self.make_tun(number, end)
        for name in (self.client, self.router, self.server):
            for setting in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
                self.inside(name, "sh", "-c", f"echo 1 >/proc/sys/net/{setting}")

    def make_tun(self, number, end):
        """A TUN device that outlives its processes, with a network behind it."""
        behind = number + 2
        run("ip", "-n", end, "tuntap", "add", "dev", TUN, "mode", "tun")
        run("ip", "-n", end, "addr", "add", f"10.77.{behind}.1/24", "dev", TUN)
        run("ip", "-n", end, "addr", "add", f"fd77:{behind}::1/64", "dev", TUN, "nodad")
        run("ip", "-n", end, "link", "set", TUN, "mtu", "9000", "up")
        run("ip", "-n", self.router, "route", "add", f"10.77.{behind}.0/24", "via", f"10.77.{number}.2")
        run("ip", "-n", self.router, "route", "add", f"fd77:{behind}::/64", "via", f"fd77:{number}::2")

    def inside(self, name, *command, **more):
        """The output of a command in a namespace."""
        return run("ip", "netns", "exec", name, *command, **more)

    def lose(self, percent):
        """Lets the router lose so many of a hundred packets of SMT, at random."""
        self.inside(self.router, "nft", "-f", "-", input=f"""
            table inet loss
            delete table inet loss
            table inet loss {{
                counter lost {{ }}
                chain forward {{
                    type filter hook forward priority 0;
                    meta l4proto {PROTOCOL} numgen random mod 100 < {percent} counter name lost drop
                }}
            }}""")

    def lost(self):
        """Packets that the router has lost."""
        told = json.loads(self.inside(self.router, "nft", "-j", "list", "counters"))
        return sum(one["counter"]["packets"] for one in told["nftables"] if "counter" in one)

    def forwarded(self, number):
        """Bytes that the router has sent to a host."""
        told = json.loads(run("ip", "-n", self.router, "-s", "-j", "link", "show", f"host{number}"))
        return told[0]["stats64"]["tx"]["bytes"]

    def through_kernel(self, name):
        """Packets that the IP of a namespace's kernel has received or sent."""
        counters = self.inside(name, "cat", "/proc/net/snmp").splitlines()
        names, values = (line.split() for line in counters if line.startswith("Ip: "))
        four = dict(zip(names, values))
        six = dict(line.split() for line in self.inside(name, "cat", "/proc/net/snmp6").splitlines())
        told = [four["InReceives"], four["OutRequests"], six["Ip6InReceives"], six["Ip6OutRequests"]]
        return sum(map(int, told))

    def set_mtu(self, number, bytes_):
        """Changes the MTU of the link to a host, at both ends."""
        end = self.client if number == 1 else self.server
        for name, interface in ((self.router, f"host{number}"), (end, "lan")):
            run("ip", "-n", name, "link", "set", interface, "mtu", str(bytes_))

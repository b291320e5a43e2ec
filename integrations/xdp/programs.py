# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The XDP programs of kernel/xdp: attached to interfaces, run on single packets, and their maps."""

import json
import pathlib
import struct
import subprocess

OBJECT = pathlib.Path(__file__).resolve().parent.parent.parent / "kernel/xdp/smt_xdp.o"
# The places of smt_sums.
SMT_OTHER, OTHER, TRIMMED, MARKED, SENT = range(5)


class Refused(Exception):
    """The kernel takes no XDP program."""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stderr}{done.stdout}")
    return done.stdout


def words(data):
    return [f"0x{byte:02x}" for byte in data]


class Program:
    """A program with maps of its own, by its number in the kernel."""

    def __init__(self, number, netns=None):
        self.number, self.netns = number, netns
        told = json.loads(self.bpftool("-j", "prog", "show", "id", number))
        shown = (json.loads(self.bpftool("-j", "map", "show", "id", one)) for one in told["map_ids"])
        self.maps = {one["name"]: one["id"] for one in shown}

    def bpftool(self, *words):
        inside = ["ip", "netns", "exec", self.netns] if self.netns else []
        return run(*inside, "bpftool", *words)

    @classmethod
    def attach(cls, netns, interface, name):
        """Attaches a program of the object, which is loaded anew, by the driver."""
        try:
            run("ip", "-n", netns, "link", "set", "dev", interface, "xdpdrv", "obj", OBJECT, "program", name)
        except RuntimeError as why:
            # A verifier that rejects the object is no machine without XDP.
            text = str(why).lower()
            lacks = any(words in text for words in ("not supported", "operation not permitted"))
            if lacks and "processed" not in text and "verif" not in text:
                raise Refused(why) from why
            raise
        (link,) = json.loads(run("ip", "-n", netns, "-j", "link", "show", "dev", interface))
        return cls(link["xdp"]["prog"]["id"], netns)

    @staticmethod
    def detach(netns, interface):
        run("ip", "-n", netns, "link", "set", "dev", interface, "xdpdrv", "off")

    def update(self, name, key, value):
        self.bpftool("map", "update", "id", self.maps[name], "key", *words(key), "value", *words(value))

    def configure(self, seed=0, rate=0, queue_limit=0, paths=0, is_counting_only=False):
        value = struct.pack("=QQQII", seed, rate, queue_limit, paths, is_counting_only)
        self.update("smt_config", bytes(4), value)

    def set_path(self, path, interface):
        (link,) = json.loads(run("ip", "-n", self.netns, "-j", "link", "show", "dev", interface))
        self.update("smt_paths", struct.pack("=I", path), struct.pack("=I", link["ifindex"]))

    def dump(self, name):
        told = json.loads(self.bpftool("-j", "map", "dump", "id", self.maps[name]))
        raw = lambda text: bytes(int(byte, 16) for byte in text)
        return [(raw(one["key"]), raw(one["value"])) for one in told]

    def sum(self, which):
        """Packets, bytes, retransmissions and marked packets of a sum."""
        sums = {struct.unpack("=I", key)[0]: struct.unpack("=QQQQ", value) for key, value in self.dump("smt_sums")}
        return sums[which]

    def messages(self):
        """The same by message: its ends, the session and the id."""
        return {key: struct.unpack("=QQQQ", value) for key, value in self.dump("smt_messages")}

    def test(self, frame, folder):
        """The verdict of a program on a frame, and the frame that is left."""
        (folder / "in").write_bytes(frame)
        told = json.loads(run("bpftool", "-j", "prog", "run", "id", self.number, "data_in", folder / "in", "data_out",
                              folder / "out", "data_size_out", 4096))
        return told["retval"], (folder / "out").read_bytes()

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Two namespaces, tunnels of the command between them, and transfers through them."""
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ENDS = {"a": 1, "b": 2}
KEY_BYTES = {"aes-128-gcm": 20, "aes-256-gcm": 36, "aes-128-ccm-8": 19, "null-hmac-sha-256": 32, "clear": 32}
LIMIT = 60


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Namespaces:
    """Two namespaces of this process's own, removed at the end."""

    def __init__(self):
        self.prefix = f"esp{os.getpid()}"

    def __enter__(self):
        for end in ENDS:
            run("ip", "netns", "add", self.name(end))
            run(*self.inside(end), "ip", "link", "set", "lo", "up")
            # A strict filter would drop what comes by another device than its answer leaves by.
            for device in ("all", "default"):
                path = f"net.ipv4.conf.{device}.rp_filter"
                run(*self.inside(end), "sh", "-c", f"echo 0 >/proc/sys/{path.replace('.', '/')}")
        return self

    def __exit__(self, *_):
        for end in ENDS:
            subprocess.run(["ip", "netns", "del", self.name(end)], check=False)

    def name(self, end):
        return f"{self.prefix}{end}"

    def inside(self, end):
        return ["ip", "netns", "exec", self.name(end)]

    def address_wire(self):
        for end, number in ENDS.items():
            inside = self.inside(end)
            run(*inside, "ip", "address", "add", f"192.0.2.{number}/24", "dev", "wire")
            run(*inside, "ip", "address", "add", f"fd00::{number}/64", "dev", "wire", "nodad")
            run(*inside, "ip", "link", "set", "wire", "up")

    def veth(self):
        first, second = self.name("a"), self.name("b")
        run("ip", "link", "add", "wire", "netns", first, "type", "veth", "peer", "name", "wire", "netns", second)
        self.address_wire()


class Hop:
    """The network that loses, reorders, replays and forges."""

    def __init__(self, program, spaces, rates, seed):
        self.words = [program, spaces.name("a"), spaces.name("b"), *map(str, rates), str(seed)]
        self.spaces = spaces

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)
        try:
            assert self.process.stdout.readline() == "ready\n"
            self.spaces.address_wire()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(LIMIT)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        words = self.process.communicate(timeout=LIMIT)[0].split()
        return {name: int(value) for name, value in zip(words[::2], words[1::2])}


class Path:
    """How two ends are configured: suite, mode, IP version, encapsulation, offloads."""

    # No two tunnels have the same keys: the attacker replays packets of earlier ones.
    serials = itertools.count()

    def __init__(self, suite="aes-256-gcm", mode="transport", version=4, encapsulation="udp", **more):
        self.suite, self.mode, self.version, self.encapsulation = suite, mode, version, encapsulation
        self.serial = next(self.serials)
        self.more = {"first": 1, "extended": True, "offloads": {}, "queues": 1, "replay_window": 1024} | more

    def __str__(self):
        return f"{self.suite} {self.mode} IPv{self.version} {self.encapsulation}"

    def outer(self, end):
        return f"192.0.2.{ENDS[end]}" if self.version == 4 else f"fd00::{ENDS[end]}"

    def inner(self, end):
        """The address that applications have: in transport mode the one that ESP has."""
        if self.mode == "transport":
            return self.outer(end)
        return f"10.9.0.{ENDS[end]}"

    def key(self, number):
        return random.Random(f"{self.suite} {self.serial} {number}").randbytes(KEY_BYTES[self.suite]).hex()

    def association(self, end, direction, generation=0, **changes):
        """The association that `end` has in this direction; its peer has the same in the other."""
        other = "b" if end == "a" else "a"
        sender = end if direction == "out" else other
        number = ENDS[sender] + 16 * generation
        fields = {
            "direction": f'"{direction}"',
            "spi": 0x1000 + 64 * number,
            "suite": f'"{self.suite}"',
            "key": f'"{self.key(number)}"',
            "mode": f'"{self.mode}"',
            "peer": f'"{self.outer(other)}"',
            "extended-numbers": str(self.more["extended"]).lower(),
            "first-number": self.more["first"],
            "replay-window": self.more["replay_window"],
        } | changes
        return "[[association]]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())

    def spi(self, sender, generation=0):
        return 0x1000 + 64 * (ENDS[sender] + 16 * generation)

    def config_without_keys(self, end):
        return self.config(end).split("[[association]]")[0]

    def config(self, end, **changes):
        other = "b" if end == "a" else "a"
        bits = 32 if self.version == 4 else 128
        if self.mode == "transport":
            device = f'routes = ["{self.outer(other)}/{bits}"]'
        else:
            device = f'addresses = ["{self.inner(end)}/24"]'
        offloads = "".join(f"{name} = {str(value).lower()}\n" for name, value in self.more["offloads"].items())
        return "\n".join([
            "[device]", device, f"queues = {self.more['queues']}",
            "[underlay]", f'local = "{self.outer(end)}"', 'device = "wire"',
            f'encapsulation = "{self.encapsulation}"',
            "[offloads]", offloads,
            self.association(end, "out", **changes.get("out", {})),
            self.association(end, "in", **changes.get("in_", {})),
        ])


class Tunnel:
    """`smt esp up` in a namespace."""

    def __init__(self, smt, spaces, end, config):
        self.smt, self.spaces, self.end, self.config = smt, spaces, end, config
        self.folder = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self.folder.name, "esp.toml")
        self.control = pathlib.Path(self.folder.name, "control")
        self.write(self.file, f'control = "{self.control}"\nused-keys = "{self.folder.name}/used"\n' + config)

    @staticmethod
    def write(path, text):
        path.touch(mode=0o600)
        path.write_text(text)

    def __enter__(self):
        words = [*self.spaces.inside(self.end), self.smt, "esp", "up", "--json", "--config", str(self.file)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.told = [], threading.Condition()
        self.reader = threading.Thread(target=self.read_lines, daemon=True)
        self.reader.start()
        self.wait_until_said("is up")
        return self

    def read_lines(self):
        for line in self.process.stderr:
            with self.told:
                self.lines.append(line)
                self.told.notify_all()
        with self.told:
            self.lines.append("end of standard error\n")
            self.told.notify_all()

    def said(self):
        """All that has been told on standard error so far."""
        with self.told:
            return "".join(self.lines)

    def wait_until_said(self, words, anew=False):
        """Until the words have been told, or with `anew` once more than so far."""
        enough = self.said().count(words) + 1 if anew else 1

        def has_said():
            return self.lines.count("end of standard error\n") or "".join(self.lines).count(words) >= enough

        with self.told:
            self.told.wait_for(has_said, LIMIT)
        assert self.said().count(words) >= enough, f"{words!r} was not told in:\n{self.said()}"

    def ask(self, *words):
        return run(self.smt, "esp", *words, "--control", str(self.control))

    def status(self):
        return Status(json.loads(self.ask("status", "--json")))

    def begin_again(self):
        """The same end, after its process was killed."""
        again = Tunnel(self.smt, self.spaces, self.end, self.config)
        again.file, again.control, again.folder = self.file, self.control, self.folder
        return again.__enter__()

    def kill(self):
        """As kill -9 does: the device is gone, and with it all that the tunnel knew."""
        self.process.kill()
        self.process.wait(LIMIT)
        self.reader.join(LIMIT)

    def add(self, associations):
        file = pathlib.Path(self.folder.name, "more.toml")
        self.write(file, associations)
        self.ask("add", str(file))

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            output = self.process.stdout.read()
            self.process.wait(LIMIT)
            self.reader.join(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.folder.cleanup()
        if kind is not None:
            print(self.said(), file=sys.stderr)
            return
        assert self.process.returncode == 0, self.said()
        self.last = Status(json.loads(output))


class KeyDaemon:
    """`smt keyd` in a namespace. It talks by IPv6, which leads into no tunnel of IPv4."""

    def __init__(self, smt, tunnel, keys, *words):
        other = "b" if tunnel.end == "a" else "a"
        spaces, is_listener = tunnel.spaces, tunnel.end == "b"
        trust = ["--client-ca" if is_listener else "--ca", f"{keys}/ca.pem"]
        name = [] if is_listener else ["--name", "listener"]
        who = "listener" if is_listener else "connector"
        self.words = [*spaces.inside(tunnel.end), smt, "keyd", "listen" if is_listener else "connect",
                      "[fd00::2]:17379", "--cert", f"{keys}/{who}.pem", "--key", f"{keys}/{who}.key", *trust, *name,
                      "--control", str(tunnel.control), "--peer", f"192.0.2.{ENDS[other]}", *words]
        self.begin()

    def begin(self):
        self.process = subprocess.Popen(self.words, stderr=subprocess.PIPE, text=True)
        self.lines, self.told = [], threading.Condition()
        self.reader = threading.Thread(target=self.read_lines, daemon=True)
        self.reader.start()

    read_lines, said, wait_until_said = Tunnel.read_lines, Tunnel.said, Tunnel.wait_until_said

    def wait_for_keys(self, times):
        """Until so many agreements more have come."""
        self.wait_for_keys_since_start(self.said().count("new keys") + times)

    def wait_for_keys_since_start(self, enough):
        with self.told:
            came = self.told.wait_for(lambda: "".join(self.lines).count("new keys") >= enough, LIMIT)
        assert came, self.said()

    def kill(self):
        """As kill -9 does."""
        self.process.kill()
        self.process.wait(LIMIT)
        self.reader.join(LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.kill()
        if kind is not None:
            print(" ".join(self.words[4:7]), self.said(), file=sys.stderr)


class Status:
    """Counts of a tunnel."""

    def __init__(self, fields):
        self.fields = fields
        self.calls = fields["calls"]

    def count(self, name):
        found = [count["value"] for count in self.fields["counts"] if count["name"] == name]
        assert found, f"no count {name}"
        return found[0]

    def sum(self, field, direction):
        return sum(each[field] for each in self.fields["associations"] if each["direction"] == direction)


class Transfer:
    """A transfer from `a` to `b` that runs."""

    def __init__(self, spaces, path, length, seed, to="b", progress=0):
        program = [sys.executable, str(HERE / "transfer.py")]
        other = "a" if to == "b" else "b"
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        address = path.inner(to)
        self.receiver = subprocess.Popen([*spaces.inside(to), *program, "receive", address, str(progress)], **options)
        port = self.receiver.stdout.readline().strip()
        words = ["send", address, port, str(length), str(seed)]
        self.sender = subprocess.Popen([*spaces.inside(other), *program, *words], **options)
        self.length = length

    def wait(self, more=0):
        """Waits for the end, compares, and tells the seconds; large files take some more."""
        sent, errors = self.sender.communicate(timeout=4 * LIMIT + more)
        assert self.sender.returncode == 0, errors
        received, errors = self.receiver.communicate(timeout=LIMIT)
        assert self.receiver.returncode == 0, errors
        digest, length, seconds = received.split()
        assert (digest, int(length)) == (sent.strip(), self.length), "other bytes came than were sent"
        return float(seconds)

    def kill(self):
        for process in (self.sender, self.receiver):
            process.kill()
            process.communicate()

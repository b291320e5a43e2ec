# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The processes of two hosts, both on this one: two key daemons, one data process that serves and
one that calls."""
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

LIMIT = 60


class Process:
    """A process whose words are kept."""

    def __init__(self, *words):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.errors, self.output, self.progress = [], [], 0
        self.told = threading.Condition()
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stderr, self.errors), (self.process.stdout, self.output))]
        for reader in self.readers:
            reader.start()

    def read(self, stream, lines):
        for line in stream:
            with self.told:
                if line.startswith("progress"):
                    self.progress = int(line.split()[1])
                else:
                    lines.append(line)
                self.told.notify_all()

    def said(self):
        with self.told:
            return "".join(self.errors)

    def wait_for(self, pattern):
        """Until a line has come in which the pattern is, which gives its first group."""
        def found():
            return re.search(pattern, "".join(self.errors + self.output))

        with self.told:
            self.told.wait_for(found, LIMIT)
            assert found(), f"{pattern!r} was not said in {LIMIT} s: {self.errors} {self.output}"
            return found()[1]

    def wait_for_progress(self, after):
        """Until more calls have succeeded."""
        with self.told:
            moved = self.told.wait_for(lambda: self.progress > after, LIMIT)
        assert moved, f"the caller hangs at {self.progress} calls: {self.said()}"

    def kill(self):
        """As kill -9 does."""
        self.process.kill()
        self.process.wait(LIMIT)
        for reader in self.readers:
            reader.join(LIMIT)


class Host:
    """All processes, by their names."""

    def __init__(self, smt):
        self.smt, self.folder, self.processes = smt, tempfile.TemporaryDirectory(), {}
        self.address = {"listener": "127.0.0.1:0", "server": "127.0.0.1:0"}
        keys = self.folder.name
        for words in (("ca",), ("server", "localhost", "--ca", keys), ("client", "web", "--ca", keys)):
            done = subprocess.run([smt, "keys", *words, "--out", keys], capture_output=True, text=True, timeout=LIMIT)
            assert done.returncode == 0, done.stderr

    def socket(self, name):
        return str(pathlib.Path(self.folder.name, name))

    def process(self, name):
        return self.processes[name]

    def begin(self, name):
        """Begins a process, for the first time or again."""
        keys = self.folder.name
        daemon = [self.smt, "keyd", "hand-over"]
        if name == "listener":
            words = [*daemon, "listen", self.address[name], "--cert", f"{keys}/localhost.pem",
                     "--key", f"{keys}/localhost.key", "--client-ca", f"{keys}/ca.pem", "--socket", self.socket(name)]
        elif name == "connector":
            words = [*daemon, "connect", self.address["listener"], "--cert", f"{keys}/web.pem", "--key",
                     f"{keys}/web.key", "--ca", f"{keys}/ca.pem", "--name", "localhost", "--socket", self.socket(name)]
        elif name == "server":
            words = [self.smt, "adopt", "serve", self.address[name], "--socket", self.socket("listener")]
        else:
            words = self.call_words("--count", str(1 << 40), "--progress", "20", "--deadline", "2s")
        process = self.processes[name] = Process(*words)
        if name in self.address:
            # The same address at the next begin.
            self.address[name] = process.wait_for(r"listening (?:at|on) (\S+)")
        elif name == "connector":
            process.wait_for(r"listening at (\S+)")

    @contextlib.contextmanager
    def second_server(self):
        """Another process that serves at the same key daemon."""
        process = Process(self.smt, "adopt", "serve", "127.0.0.1:0", "--socket", self.socket("listener"))
        try:
            process.wait_for(r"listening (?:at|on) (\S+)")
            yield process
        finally:
            process.kill()

    def call_words(self, *words):
        return [self.smt, "adopt", "call", "--socket", self.socket("connector"), *words]

    def call(self, *words):
        done = subprocess.run(self.call_words(*words), capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        return done.stderr

    @contextlib.contextmanager
    def both(self):
        """Both hosts, but for the process that calls."""
        try:
            for name in ("listener", "server", "connector"):
                self.begin(name)
            self.processes["listener"].wait_for("serves at (.*)")
            yield
        except BaseException:
            for name, process in self.processes.items():
                print(f"{name}: {process.said()}", file=sys.stderr)
            raise
        finally:
            for process in self.processes.values():
                process.kill()
            self.folder.cleanup()

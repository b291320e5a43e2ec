# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A copy of the tree in which mutants are planted, and commands that run in it."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass

from mutant_lists import ROOT, files


class Copy:
    """The copy. It stays at one place, so that cargo builds again what a mutant reaches alone."""

    def __init__(self, target):
        self.root = target / "copy"
        self.target = target
        self.logs = target / "logs"

    def update(self):
        """Has the copy be the tree. A file that is the same stays, since cargo judges by times."""
        wanted = files()
        self.root.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(exist_ok=True)
        for name in wanted:
            source, own = ROOT / name, self.root / name
            if not own.is_file() or own.read_bytes() != source.read_bytes():
                own.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, own)
        git = lambda *words: subprocess.run(
            ["git", *words], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout
        # Some checks ask git for the files.
        if not (self.root / ".git").exists():
            git("init", "--quiet")
        git("add", "--all")
        for name in set(git("ls-files", "-z").split("\0")) - {""} - set(wanted):
            (self.root / name).unlink(missing_ok=True)
        git("add", "--all")

    def plant(self, mutant):
        """Breaks a rule; returns what to restore, the last change first."""
        before = []
        for change in mutant.changes:
            path = self.root / change.file
            text = path.read_text()
            before.insert(0, (path, text))
            path.write_text(text.replace(change.there, change.instead))
        return before

    def run(self, command, name, text=None, is_endless=False):
        """Runs a command up to its end, or up to a text if it is endless. A log of this name has its
        words."""
        log = self.logs / f"{name.replace('/', '-')}.log"
        environment = {
            "CARGO_TARGET_DIR": str(self.target / "build"),
            "RUST_BACKTRACE": "0",
            "SMT_MUTANT": name.split("/")[-1],
        }
        found, is_compiled = None, True
        with log.open("w") as output, subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.root,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                for line in process.stdout:
                    output.write(line)
                    is_compiled = is_compiled and "could not compile" not in line
                    if text and text in line and not found:
                        found = line.strip()
                        if is_endless:
                            break
                if not (is_endless and found):
                    process.wait()
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        return Ran(process.returncode, found, is_compiled, log)


@dataclass(frozen=True)
class Ran:
    """The end of a command: its exit code, the line that has the text, whether all compiled."""

    code: int
    found: str | None
    is_compiled: bool
    log: object


def restore(before):
    for path, text in before:
        path.write_text(text)

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""kill -9 of key daemons and tunnels, at moments of chance, while one TCP connection carries bytes
through the tunnel. KILLS says how often; SMT_SEED gives the same order again."""
import os
import random
import signal
import threading
import time

from keys import QUICK, Ends
from tunnel import LIMIT, Path, Transfer

KILLS = int(os.environ.get("KILLS", 8))
# Killed at once, by the names that `Ends` has. Tunnel and key daemon of one host are its
# data process and its control process.
VICTIMS = [
    ("connector",),
    ("listener",),
    ("connector", "listener"),
    ("first",),
    ("second",),
    ("first", "connector"),
    ("second", "listener"),
    ("first", "second"),
]
DAEMON_OF = {"first": "connector", "second": "listener"}


class EndlessTransfer(Transfer):
    """A transfer that goes on until it is told to end, and tells how far it has come."""

    def __init__(self, spaces, path, seed):
        super().__init__(spaces, path, 1 << 40, seed, progress=1 << 16)
        self.came, self.last_line = 0, ""
        self.moved = threading.Condition()
        self.reader = threading.Thread(target=self.read_progress, daemon=True)
        self.reader.start()

    def read_progress(self):
        for line in self.receiver.stdout:
            with self.moved:
                if line.startswith("progress"):
                    self.came = int(line.split()[1])
                else:
                    self.last_line = line
                self.moved.notify_all()

    def wait_until_it_moves(self, after):
        """Until a megabyte more has come than `after`, which gives the seconds."""
        begun = time.monotonic()
        with self.moved:
            moved = self.moved.wait_for(lambda: self.came > after + (1 << 20), LIMIT)
        assert moved, f"the connection hangs at {self.came} bytes"
        return time.monotonic() - begun

    def end(self):
        """Ends it; the bytes that came are those that were sent."""
        self.sender.send_signal(signal.SIGTERM)
        sent, errors = self.sender.communicate(timeout=LIMIT)
        assert self.sender.returncode == 0, errors
        self.reader.join(LIMIT)
        assert self.receiver.wait(LIMIT) == 0, self.receiver.stderr.read()
        assert self.last_line.split()[0] == sent.strip(), "other bytes came than were sent"


def kill(ends, victims):
    for name in victims:
        getattr(ends, name).kill()
    tunnels = [name for name in DAEMON_OF if name in victims]
    if tunnels and not set(DAEMON_OF.values()) & set(victims):
        # The key daemon beside it says so at its next look. The listening one is not asked while
        # the tunnel of the other is gone.
        getattr(ends, DAEMON_OF[tunnels[0]]).wait_until_said("no tunnel answers at", anew=True)


def begin_again(ends, victims):
    for name in victims:
        if name in DAEMON_OF:
            setattr(ends, name, getattr(ends, name).begin_again())
    for name in ("listener", "connector"):
        if name in victims:
            getattr(ends, name).begin()
            if name == "listener":
                ends.listener.wait_until_said("listening")


def killed_processes_leave_no_connection_hanging(smt, spaces, seed):
    path, chance, waits = Path(mode="tunnel"), random.Random(seed), {}
    with Ends(smt, spaces, path, *QUICK) as ends:
        ends.connector.wait_for_keys(1)
        transfer = EndlessTransfer(spaces, path, seed)
        transfer.wait_until_it_moves(0)
        for turn in range(KILLS):
            # Each in its turn, in an order of chance.
            if turn % len(VICTIMS) == 0:
                order = chance.sample(VICTIMS, len(VICTIMS))
            victims = order[turn % len(VICTIMS)]
            # A moment of chance: within an agreement, before it or behind it.
            time.sleep(chance.uniform(0, 0.7))
            before = transfer.came
            kill(ends, victims)
            if not set(DAEMON_OF) & set(victims):
                # Data needs no control process.
                transfer.wait_until_it_moves(transfer.came)
            begin_again(ends, victims)
            if "first" in victims or "second" in victims or "connector" in victims:
                ends.connector.wait_for_keys(1)
            seconds = transfer.wait_until_it_moves(max(before, transfer.came))
            waits.setdefault(" and ".join(victims), []).append(seconds)
        transfer.end()
    for victims, seconds in waits.items():
        print(f"  kill -9 of {victims}: {len(seconds)} times, bytes again after at most {max(seconds):.1f} s", flush=True)


CASES = [killed_processes_leave_no_connection_hanging]

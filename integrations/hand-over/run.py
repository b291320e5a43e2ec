#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Sessions that `smt keyd hand-over` agrees on and `smt adopt` uses, as processes: what each end
says, and kill -9 of each under load.

    run.py SMT [WORD …]      only cases whose name has one of the words
"""
import os
import random
import signal
import subprocess
import sys
import time

from processes import LIMIT, Host

KILLS = int(os.environ.get("KILLS", 12))
# Killed at once: the key daemons of both hosts, the data process that serves, the one that calls.
VICTIMS = [
    ("listener",),
    ("connector",),
    ("listener", "connector"),
    ("server",),
    ("server", "listener"),
    ("server", "connector"),
    ("caller",),
    ("caller", "server"),
    ("caller", "connector"),
    ("server", "caller", "listener", "connector"),
]
# Words that tell which process a caller misses: a key daemon of either host, or the other data
# process (whose session is gone, or whose socket is).
TOLD = [
    "no key daemon answers at",
    "the key daemon has ended",
    "the other end of the socket of sessions has gone",
    "no data process serves",
    "the data process that served is not used any more",
    "deadline",
    "is the peer running and reachable?",
    "no server there",
    "nothing answered",
]


class Skipped(Exception):
    """A case that cannot be tried here, and why."""


def a_call_goes_by_a_session_that_was_handed_over(host, seed):
    with host.both():
        told = host.call("--count", "100", "--once")
        assert "100 calls in 1 sessions" in told, told


def a_process_of_another_user_gets_no_session(host, seed):
    with host.both():
        if os.geteuid() != 0:
            raise Skipped("only root can be another user")
        # The socket is its owner's. A stranger who may open it all the same is told by the kernel.
        os.chmod(host.folder.name, 0o755)
        os.chmod(host.socket("connector"), 0o777)
        stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        done = subprocess.run([*stranger, *host.call_words("--once")], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode != 0, "a stranger has called"
        host.process("connector").wait_for("(between processes of user 0 alone, and user 65534)")


def a_caller_is_told_which_process_is_missing(host, seed):
    with host.both():
        for name, words in {
            "server": "the data process that served is not used any more",
            "listener": "no server there",
            "connector": "no key daemon answers at",
        }.items():
            host.process(name).kill()
            done = subprocess.run(host.call_words("--once", "--deadline", "2s"), capture_output=True, text=True,
                                  timeout=LIMIT)
            assert done.returncode != 0, f"a call has succeeded without {name}"
            assert words in done.stderr, done.stderr
            assert len(done.stderr.splitlines()) == 1, done.stderr
            host.begin(name)
        host.process("listener").wait_for("serves at (.*)")
        assert "1 calls in 1 sessions" in host.call("--once")


def sessions_go_on_without_key_daemons(host, seed):
    with host.both():
        host.begin("caller")
        caller = host.process("caller")
        caller.wait_for_progress(caller.progress)
        host.process("listener").kill()
        host.process("connector").kill()
        for _ in range(5):
            caller.wait_for_progress(caller.progress)
        assert caller.said() == "", caller.said()


def a_second_server_gets_the_sessions_from_then_on(host, seed):
    """The first is told, and keeps the sessions that it has."""
    with host.both():
        host.begin("caller")
        caller = host.process("caller")
        caller.wait_for_progress(caller.progress)
        first = host.process("server")
        with host.second_server() as second:
            first.wait_for("(another process serves at this key daemon now)")
            caller.wait_for_progress(caller.progress)
            assert caller.said() == "", caller.said()
            assert "1 calls in 1 sessions" in host.call("--once")
            first.kill()
            assert "1 calls in 1 sessions" in host.call("--once")
            assert second.said() == "", second.said()


def a_standby_takes_the_address_over(host, seed):
    """The process that serves is replaced by another at the same address. Its sessions end, and
    the next ones are the standby's own."""
    with host.both():
        host.begin("caller")
        caller = host.process("caller")
        caller.wait_for_progress(caller.progress)
        for _ in range(3):
            host.process("server").kill()
            host.begin("server")
            caller.wait_for_progress(caller.progress)
        errors = caller.said().splitlines()
        assert errors and all(any(words in line for words in TOLD) for line in errors), errors


def killed_processes_leave_no_session_hanging(host, seed):
    """Sessions go on, or end with an error that tells which process is missing; none hangs."""
    chance, waits = random.Random(seed), {}
    with host.both():
        host.begin("caller")
        for turn in range(KILLS):
            # Each in its turn, in an order of chance.
            if turn % len(VICTIMS) == 0:
                order = chance.sample(VICTIMS, len(VICTIMS))
            victims = order[turn % len(VICTIMS)]
            # A moment of chance: in a call, in a handshake, while a value is on its way.
            time.sleep(chance.uniform(0, 0.3))
            for name in victims:
                host.process(name).kill()
            survivor = host.process("caller")
            if not {"caller", "server"} & set(victims):
                # The data processes need no key daemon, and say nothing.
                survivor.wait_for_progress(survivor.progress)
            begun = time.monotonic()
            for name in chance.sample(victims, len(victims)):
                host.begin(name)
            caller = host.process("caller")
            caller.wait_for_progress(caller.progress)
            waits.setdefault(" and ".join(victims), []).append(time.monotonic() - begun)
            for line in caller.said().splitlines():
                assert any(words in line for words in TOLD), f"this tells nothing: {line}"
    for victims, seconds in waits.items():
        print(f"  kill -9 of {victims}: {len(seconds)} times, calls again after at most {max(seconds):.1f} s", flush=True)


CASES = [
    a_call_goes_by_a_session_that_was_handed_over,
    a_second_server_gets_the_sessions_from_then_on,
    a_process_of_another_user_gets_no_session,
    a_caller_is_told_which_process_is_missing,
    sessions_go_on_without_key_daemons,
    a_standby_takes_the_address_over,
    killed_processes_leave_no_session_hanging,
]


def main():
    # Processes and folders go also when a limit ends the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    smt, words = sys.argv[1], sys.argv[2:]
    seed = int(os.environ.get("SMT_SEED", random.randrange(1 << 32)))
    print(f"SMT_SEED={seed}")
    passed = skipped = 0
    for case in CASES:
        if words and not any(word in case.__name__ for word in words):
            continue
        begun = time.monotonic()
        try:
            case(Host(smt), seed)
            passed += 1
            print(f"{case.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
        except Skipped as why:
            skipped += 1
            print(f"{case.__name__}: skipped, {why}", flush=True)
    assert passed + skipped, f"no case has one of the words {words}"
    print(f"{passed} passed, {skipped} skipped, 0 failed")


main()

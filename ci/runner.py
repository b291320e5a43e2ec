# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Steps of a check: each runs as processes of its own, and is reported with its seconds.

`Step` says what runs, `run` runs it, `table` shows what came of all. A step may say by exit code 77
that something cannot be had on this machine.
"""

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = 77


@dataclass(frozen=True)
class Step:
    """A command of bash, run at the root of the tree."""

    name: str
    command: str
    # For tables.
    about: str = ""
    environment: dict = field(default_factory=dict)
    # The rooms that it tests (`rooms.py`), beside those of the workspace that cargo tests.
    rooms: frozenset = frozenset()
    # Whether it may be left out where something cannot be had (exit code 77).
    is_optional: bool = False


@dataclass(frozen=True)
class Result:
    """The end of a step: its `seconds` by the clock, `cpu` of all its processes, its exit code."""

    name: str
    seconds: float
    cpu: float
    code: int

    @property
    def word(self):
        return {0: "passed", LEFT_OUT: "left out"}.get(self.code, f"FAILED ({self.code})")

    @property
    def has_failed(self):
        return self.code not in (0, LEFT_OUT)


def cpu_seconds():
    """Seconds of user and system time of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kill_session(session):
    """Kills all processes of a session. Some have process groups of their own, as below `timeout`."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            continue


def default_signals():
    """Steps test what signals do to programs, and nohup and a shell's `&` have some ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def run(step, begun=lambda session: None, output=None):
    """Runs a step in a session of its own, which `begun` learns and which ends with this process;
    its words go to a file, or where this process's go."""
    print(f"\n== {time.strftime('%T')} {step.name}: {step.command}", flush=True)
    began, cpu = time.monotonic(), cpu_seconds()
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", step.command],
        cwd=ROOT,
        env=os.environ | step.environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        start_new_session=True,
        preexec_fn=default_signals,
    )
    begun(process.pid)
    try:
        code = process.wait()
    except BaseException:
        kill_session(process.pid)
        process.wait()
        raise
    if code == LEFT_OUT and not step.is_optional:
        code = 1
    result = Result(step.name, time.monotonic() - began, cpu_seconds() - cpu, code)
    print(f"== {result.name}: {result.word}, {result.seconds:.0f} s", flush=True)
    return result


def table(results):
    """A table of Markdown, the slowest step first."""
    rows = sorted(results, key=lambda result: -result.seconds)
    total, cpu = sum(row.seconds for row in rows), sum(row.cpu for row in rows)
    lines = ["| step | seconds | CPU seconds | result |", "|---|---|---|---|"]
    lines += [f"| {row.name} | {row.seconds:.0f} | {row.cpu:.0f} | {row.word} |" for row in rows]
    return "\n".join([*lines, f"| all | {total:.0f} | {cpu:.0f} | |"])


def end_by_signal():
    """Has SIGTERM end this process as Ctrl-C does, with its steps."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def run_all(steps, keep_going=False, keep=lambda result: None):
    """Runs steps up to the first that fails, or all, and shows the table of their times. `keep` gets
    each result."""
    end_by_signal()
    results = []
    for step in steps:
        results.append(run(step))
        keep(results[-1])
        if results[-1].has_failed and not keep_going:
            break
    print(f"\n{table(results)}", flush=True)
    failed = [result.name for result in results if result.has_failed]
    left = len(steps) - len(results)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; {left} steps were not run")

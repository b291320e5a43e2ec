# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Call stacks of Python, sampled by CPU time: perf sees the interpreter alone.

A signal comes each millisecond of CPU time; its handler runs between two instructions of Python,
so that the time of a function in C is that of its caller. The file has a line for each stack, the
innermost function first, and how often it was met: `module:function;module:function COUNT`.
"""

import collections
import signal

INTERVAL = 0.001
DEPTH_MAX = 24


class Sampler:
    """Samples while it is entered, if there is a file to write to."""

    def __init__(self, path):
        self.path = path
        self.stacks = collections.Counter()

    def __enter__(self):
        if self.path:
            signal.signal(signal.SIGPROF, self.sample)
            signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def sample(self, _signal, frame):
        names = []
        while frame is not None and len(names) < DEPTH_MAX:
            module = frame.f_globals.get("__name__", "?")
            names.append(f"{module}:{frame.f_code.co_qualname}")
            frame = frame.f_back
        self.stacks[";".join(names)] += 1

    def __exit__(self, *_error):
        if not self.path:
            return
        signal.setitimer(signal.ITIMER_PROF, 0)
        with open(self.path, "w", encoding="utf-8") as file:
            for stack, count in sorted(self.stacks.items()):
                file.write(f"{stack} {count}\n")

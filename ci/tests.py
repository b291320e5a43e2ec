# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tests of the checks: `python3 ci/tests.py`."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import gate
from mutant_copy import Copy, restore
from mutant_lists import faults_of, list_of
from rooms import READERS, ROOT, Rooms

# A deep run of three steps, whose second one waits until the file `go` is there.
DEEP = """
import sys, pathlib
sys.dont_write_bytecode = True
sys.path.insert(0, {ci!r})
import deep
folder = pathlib.Path({folder!r})
deep.FOLDER, deep.RESULTS, deep.RUNNING = folder, folder / "results.jsonl", folder / "running.json"
deep.commit = lambda: "0123456789ab"
deep.STEPS = [
    deep.step("first", "", f"echo ran >>{{folder}}/first", []),
    deep.step("second", "", f"timeout 60 bash -c 'echo $$ >>{{folder}}/second; until [[ -e {{folder}}/go ]]; do sleep 0.01; done; exit 3'", []),
    deep.step("third", "", f"echo ran >>{{folder}}/third", []),
]
deep.main(sys.argv[1:])
"""

# A list of mutants: the text of the first is there once.
MUTANTS = """
system = "counter"
about = ""
[commands]
test = "true"
[[mutant]]
name = "one"
rule = ""
caught = { "test" = "" }
change = [{ file = "counter", there = "x += 1", instead = "" }]
[[mutant]]
name = "gone"
rule = ""
caught = { "tset" = "" }
change = [{ file = "counter", there = "x += 2", instead = "" }]
[[mutant]]
name = "twice"
rule = ""
caught = {}
change = [{ file = "counter", there = "x", instead = "" }]
"""


class MutantsTest(unittest.TestCase):
    def test_a_place_that_is_gone_or_there_twice_is_reported_and_a_command_without_beginning(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "counter").write_text("x += 1\nprint(x)\n")
            found = faults_of(list_of("mutants.toml", MUTANTS), Path(folder))
        self.assertEqual([it.split(": ")[1] for it in found], ["gone", "gone", "twice", "twice"])

    def test_a_mutant_is_planted_and_its_place_restored(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Copy(Path(folder))
            copy.root.mkdir()
            (copy.root / "counter").write_text("x += 1\n")
            before = copy.plant(list_of("mutants.toml", MUTANTS).mutants[0])
            self.assertEqual((copy.root / "counter").read_text(), "\n")
            restore(before)
            self.assertEqual((copy.root / "counter").read_text(), "x += 1\n")

    def test_a_command_is_judged_by_its_code_its_text_and_whether_it_compiled(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = Copy(Path(folder))
            copy.root.mkdir()
            copy.logs.mkdir()
            ran = copy.run("echo seed 3: Differ; exit 4", "a/b", "Differ")
            self.assertEqual((ran.code, ran.found, ran.is_compiled), (4, "seed 3: Differ", True))
            ran = copy.run("echo 'error: could not compile it' >&2; exit 1", "a/b", "Differ")
            self.assertEqual((ran.found, ran.is_compiled), (None, False))
            ran = copy.run("echo Differ; sleep 600", "a/b", "Differ", is_endless=True)
            self.assertEqual((ran.code < 0, ran.found), (True, "Differ"))


class RoomsTest(unittest.TestCase):
    rooms = Rooms()

    def test_a_file_is_of_the_innermost_room(self):
        for path, room in [
            ("crates/smt-proto/src/session.rs", "crates/smt-proto"),
            ("crates/smt-proto/core-check/src/lib.rs", "crates/smt-proto/core-check"),
            ("trusted/size", "trusted"),
            ("fuzz/corpus/packet/short", "fuzz"),
            ("README.md", "docs"),
            ("kernel/xdp/README.md", "kernel/xdp"),
            ("clippy.toml", None),
        ]:
            self.assertEqual(self.rooms.of_path(path), room, path)

    def test_users_are_found_over_rooms_between_and_across_workspaces(self):
        users = self.rooms.with_users({"crates/smt-wire"})
        self.assertLessEqual({"crates/smt-proto", "crates/smt", "bench", "fuzz", "interop"}, users)
        self.assertLessEqual({"trusted/minbft", "examples/key-value", "docs/guide"}, users)
        self.assertNotIn("crates/smt-report", users)
        users = self.rooms.with_users({"trusted/chain"})
        self.assertEqual(users, {"trusted/chain", "trusted/cli", "trusted/figures", "trusted/models"})

    def test_a_file_that_sources_of_another_room_name_reaches_that_room(self):
        listed = subprocess.run(["git", "ls-files", "*.rs"], cwd=ROOT, check=True, capture_output=True, text=True)
        missed = set()
        for name in listed.stdout.split():
            room = self.rooms.of_path(name)
            for text in re.findall(r'"((?:\.\./)+[\w./-]+)"', (ROOT / name).read_text()):
                for start in (ROOT / name).parent, ROOT / room:
                    read = (start / text).resolve()
                    if read.is_file() and read.is_relative_to(ROOT) and not read.is_relative_to(ROOT / room):
                        path = str(read.relative_to(ROOT))
                        users = self.rooms.with_users(self.rooms.of_change(path))
                        missed |= {(path, room)} if room not in users else set()
        self.assertEqual(missed, set())

    def test_each_room_that_is_named_exists(self):
        named = set(self.rooms.uses) | {room for uses in self.rooms.uses.values() for room in uses}
        named |= {room for rooms in READERS.values() for room in rooms}
        steps = {room for step in gate.STEPS for room in step.rooms}
        self.assertEqual([room for room in named | steps if not (ROOT / room).is_dir()], [])
        self.assertLessEqual(steps, set(self.rooms.uses))

    def test_each_script_of_tests_is_in_a_room(self):
        told = subprocess.run(["git", "ls-files", "test", "*/test"], cwd=ROOT, check=True, capture_output=True, text=True)
        folders = {str(Path(path).parent) for path in told.stdout.split()}
        self.assertEqual(folders - set(self.rooms.uses), set())


def is_alive(pid):
    """Whether the process is there, and no zombie."""
    stat = Path("/proc", pid, "stat")
    return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


class RunnerTest(unittest.TestCase):
    def test_a_step_has_the_signals_that_its_starter_ignores(self):
        script = (
            f"import sys; sys.path.insert(0, {str(ROOT / 'ci')!r}); sys.dont_write_bytecode = True\n"
            "from runner import Step, run\n"
            "sys.exit(run(Step('hangup', 'kill -HUP $$')).code)"
        )
        run = ["bash", "-c", "trap '' HUP INT; exec \"$@\"", "-", sys.executable, "-c", script]
        self.assertEqual(subprocess.run(run, stdout=subprocess.DEVNULL).returncode, 256 - 1)


class DeepTest(unittest.TestCase):
    def deep(self, folder, *arguments):
        script = DEEP.format(ci=str(ROOT / "ci"), folder=str(folder))
        return subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.DEVNULL)

    def test_a_run_that_was_killed_resumes_where_it_was(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            killed = self.deep(folder)
            while not (folder / "second").exists() or not (folder / "second").read_text():
                self.assertIsNone(killed.poll())
            killed.kill()
            killed.wait()
            (left,) = (folder / "second").read_text().split()
            self.assertTrue(Path("/proc", left).exists())
            # The kill cut a line.
            with (folder / "results.jsonl").open("a") as results:
                results.write('{"name": "second", "sec')

            again = self.deep(folder)
            while len((folder / "second").read_text().split()) < 2:
                self.assertIsNone(again.poll())
            self.assertFalse(is_alive(left))
            (folder / "go").touch()
            self.assertEqual(again.wait(), 1)
            for step, count in [("first", 1), ("second", 2), ("third", 1)]:
                self.assertEqual(len((folder / step).read_text().split()), count, step)
            table = (folder / "table.md").read_text()
            self.assertIn("| FAILED (3) |", table)
            self.assertEqual(table.count("| passed |"), 2)
            # All have run at this commit: nothing runs again, unless it is named.
            self.deep(folder).wait()
            self.deep(folder, "third").wait()
            counts = [len((folder / step).read_text().split()) for step in ("first", "third")]
            self.assertEqual(counts, [1, 2])

    def test_a_second_run_in_the_same_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            first = self.deep(folder)
            while not (folder / "second").exists():
                self.assertIsNone(first.poll())
            second = self.deep(folder)
            self.assertEqual(second.wait(), 1)
            self.assertIsNone(first.poll())
            (folder / "go").touch()
            first.wait()


if __name__ == "__main__":
    unittest.main()

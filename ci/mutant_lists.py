# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Mutants as data: each `mutants.toml` of the tree has those of a system.

A list begins with keys for all of its mutants:

    system       its name, for `--system`
    about        what its mutants are, in words
    check        the command that compiles them (`--check`); without, they are left out there
    needs        programs that must be there
    is_endless   whether a command is ended at the text that is looked for: it goes on after a find
    [settings]   words in braces of the commands, with their usual values (`--set`)
    [commands]   beginnings of commands, by name

Each mutant has a name, the rule that it breaks, and its changes; `there` is once in the file:

    [[mutant]]
    name = "commit-quorum"
    rule = "a batch is executed on f + 1 COMMITs"
    caught = { "search Silence 0 300" = "Differ" }
    [[mutant.change]]
    file = "trusted/bft/src/follow.rs"
    there = "let quorum = self.group.quorum();"
    instead = "let quorum = 1;"

`caught` has the commands that must fail with the mutant, each with a text of what it says then. The
first word of a command stands for a beginning in `[commands]`.
"""

import subprocess
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Change:
    """A place: the text that is there once in a file, and the text instead."""

    file: str
    there: str
    instead: str

    def is_in(self, root):
        path = root / self.file
        return path.exists() and path.read_text().count(self.there) == 1


@dataclass(frozen=True)
class Mutant:
    """A rule that is broken, and the commands that catch it: command to text."""

    name: str
    rule: str
    caught: dict
    changes: tuple

    def caught_by(self, names):
        """The mutant with the commands alone that begin so; with all, if no beginning is given."""
        caught = {words: text for words, text in self.caught.items() if not names or words.split(" ")[0] in names}
        return replace(self, caught=caught)


@dataclass(frozen=True)
class MutantList:
    """The mutants of a system, and what all of them share."""

    file: str
    system: str
    about: str
    check: str | None
    needs: tuple
    is_endless: bool
    settings: dict
    commands: dict
    mutants: tuple

    def command(self, words, settings):
        """The command of bash that these words stand for."""
        first, _, rest = words.partition(" ")
        command = f"{self.commands[first]} {rest}".strip()
        for name, value in (self.settings | settings).items():
            command = command.replace(f"{{{name}}}", str(value))
        return command


def mutant_of(table):
    changes = tuple(Change(it["file"], it["there"], it["instead"]) for it in table["change"])
    return Mutant(table["name"], table["rule"], table["caught"], changes)


def list_of(file, text):
    table = tomllib.loads(text)
    mutants = tuple(mutant_of(it) for it in table["mutant"])
    return MutantList(
        file,
        table["system"],
        table["about"],
        table.get("check"),
        tuple(table.get("needs", ())),
        table.get("is_endless", False),
        table.get("settings", {}),
        table["commands"],
        mutants,
    )


def files(pattern=()):
    """The files of the tree, those that git does not know yet as well, but for ignored ones."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *pattern]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in sorted(set(found.split("\0")) - {""}) if (ROOT / name).is_file()]


def all_lists():
    return [list_of(file, (ROOT / file).read_text()) for file in files(["*mutants.toml"])]


def faults_of(mutants, root=ROOT):
    """The faults of a list: places that are gone or there twice, names that are there twice,
    commands without a beginning."""
    names = [mutant.name for mutant in mutants.mutants]
    found = [f"{name}: the name is there twice" for name in sorted(set(names)) if names.count(name) > 1]
    for mutant in mutants.mutants:
        found += [f"{mutant.name}: {it.file} has not {it.there!r} once"
                  for it in mutant.changes if not it.is_in(root)]
        found += [f"{mutant.name}: no command {words.split(' ')[0]!r}"
                  for words in mutant.caught if words.split(" ")[0] not in mutants.commands]
        found += [f"{mutant.name}: nothing catches it"] * (not mutant.caught)
    return [f"{mutants.file}: {it}" for it in found]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks the numbers of docs/draft-smt-00.md, and what cites them.

Requirements are list items `- [5.7-3] ...`: unique, dense in each section, in the section whose number they have, with a
word of RFC 2119. Sections are numbered as their anchors say. Each `[5.7-3]` and each `SPEC §5.7` in the repository's files
exists. Types and offsets are those of vectors/smt_offsets.json. A test cites what it shows by a comment `// SMT [5.7-3]`; how many requirements no file cites is said, and with
--uncited which. Each requirement with MUST is cited, or stands in docs/requirements-uncited.txt, perhaps with a
reason behind it; the list only gets shorter: `--update` takes those out that are cited now.

Usage: requirements.py [--uncited | --update]
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRAFT = "docs/draft-smt-00.md"
UNCITED = "docs/requirements-uncited.txt"
# Where requirements and sections are cited. In other files brackets and section signs mean other
# things.
CITING = ("crates", "fuzz", "bench", "interop", "vectors", "README.md", "docs")

HEADING = re.compile(r"^(#+) .*\{#s([0-9A-Z]+(?:-[0-9]+)?)\}$")
REQUIREMENT = re.compile(r"^- \[([0-9]+(?:\.[0-9]+)?)-([0-9]+)\] (.+)$")
# `[8-1]` may be a class of characters, so it counts behind SMT alone.
CITATION = re.compile(r"\[([0-9]+\.[0-9]+-[0-9]+)\]|(?<=SMT )\[([0-9]+-[0-9]+)\]|(?<=\], )\[([0-9]+-[0-9]+)\]")
SECTION_CITED = re.compile(r"SPEC §([0-9]+(?:\.[0-9]+)?)")
SECTION_IN_DRAFT = re.compile(r"§([0-9]+(?:\.[0-9]+)?)")
FORCE = re.compile(r"\b(MUST|SHOULD|MAY|OPTIONAL)\b")


def read_draft(text, wrong):
    """Sections and requirements, in order, and those of the latter with MUST."""
    sections, requirements, musts = [], [], set()
    place, in_back = [0, 0], False
    for number, line in enumerate(text.split("\n"), 1):
        if line == "--- back":
            in_back, place = True, [0, 0]
        heading = HEADING.match(line)
        if heading:
            place = [place[0] + 1, 0] if heading[1] == "#" else [place[0], place[1] + 1]
            first = chr(ord("A") + place[0] - 1) if in_back else str(place[0])
            expected = first if heading[1] == "#" else f"{first}-{place[1]}"
            if heading[2] != expected:
                wrong.append(f"{DRAFT}:{number}: section {expected} has the anchor s{heading[2]}")
            sections.append(expected.replace("-", "."))
        elif re.match(r"^#+ ", line) and sections:
            wrong.append(f"{DRAFT}:{number}: a heading without an anchor")
        requirement = REQUIREMENT.match(line)
        if requirement:
            section, count, words = requirement[1], int(requirement[2]), requirement[3]
            name = f"{section}-{count}"
            if section != sections[-1]:
                wrong.append(f"{DRAFT}:{number}: [{name}] stands in section {sections[-1]}")
            before = sum(1 for other in requirements if other.rsplit("-", 1)[0] == section)
            if count != before + 1:
                wrong.append(f"{DRAFT}:{number}: [{name}] is number {before + 1} of its section")
            if not FORCE.search(words):
                wrong.append(f"{DRAFT}:{number}: [{name}] says neither MUST, SHOULD nor MAY")
            requirements.append(name)
            if "MUST" in words:
                musts.add(name)
    return sections, requirements, musts


def compare_uncited(musts, cited, wrong):
    """The list of requirements without a test has those that there are, and no others."""
    listed = [line for line in (ROOT / UNCITED).read_text(encoding="utf-8").split("\n") if line.startswith("[")]
    names = [line.split("]")[0][1:] for line in listed]
    kept = [line for line, name in zip(listed, names) if name in musts and name not in cited]
    if "--update" in sys.argv[1:]:
        (ROOT / UNCITED).write_text("\n".join(kept) + "\n", encoding="utf-8")
        return
    for name in sorted(musts - set(cited) - set(names)):
        wrong.append(f"{DRAFT}: [{name}] says MUST, and no test cites it (// SMT [{name}])")
    for name in names:
        if name not in musts or name in cited:
            wrong.append(f"{UNCITED}: [{name}] is cited, or says no MUST; take it out, or run docs/requirements.py --update")


LAYOUTS = {"prefix": "PREFIX", "data": "DATA", "control": "CONTROL", "inner": "INNER", "member": "MEMBER",
           "handshake": "HANDSHAKE", "cookie": "COOKIE", "reset": "RESET", "unavailable": "UNAVAILABLE"}
# Fields that the draft has as several.
NOT_ALONE = {("INNER", "ACK"), ("INNER", "RESERVED")}


def rows_of(text, table):
    """Cells of a table that is named by the line behind it."""
    before = text.split("{: #tab-" + table + " ")[0].rsplit("\n\n", 1)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in before.strip().split("\n")[2:]]


def compare_layouts(text, wrong):
    layouts = json.loads((ROOT / "vectors/smt_offsets.json").read_text(encoding="utf-8"))
    types = {row[1]: int(row[0], 16) for row in rows_of(text, "types") if not row[1].startswith("reserved")}
    if types != layouts["types"]:
        wrong.append(f"{DRAFT}: the types are not those of vectors/smt_offsets.json")
    tags = sorted(int(row[0]) for row in rows_of(text, "params") if row[2] != "reserved")
    if tags != sorted(layouts["params"].values()):
        wrong.append(f"{DRAFT}: the tags of parameters are not those of vectors/smt_offsets.json")
    tables = {table["name"]: table["fields"] for table in layouts["tables"]}
    for name, layout in LAYOUTS.items():
        places = [(row[0], row[1]) for row in rows_of(text, name)]
        for field in tables[layout]:
            place = (str(field["offset"]), str(field["size"]))
            if place not in places and (layout, field["name"]) not in NOT_ALONE:
                wrong.append(f"{DRAFT}: table {name} has no field at {place[0]} of {place[1]} bytes, {field['name']}")


def main():
    wrong = []
    text = (ROOT / DRAFT).read_text(encoding="utf-8")
    sections, requirements, musts = read_draft(text, wrong)
    if len(requirements) < 400:
        wrong.append(f"{DRAFT}: only {len(requirements)} requirements were found")
    for name in SECTION_IN_DRAFT.findall(text):
        if name not in sections:
            wrong.append(f"{DRAFT}: there is no section {name}")

    compare_layouts(text, wrong)

    cited = collections.Counter()
    listed = subprocess.run(["git", "ls-files", "--", *CITING], cwd=ROOT, check=True, capture_output=True, text=True)
    for path in listed.stdout.split("\n"):
        file = ROOT / path
        if not path or not file.is_file():
            continue
        try:
            lines = file.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError:
            continue
        # A number that stands in the repository's own explanation of the form is no citation.
        if path in ("docs/requirements.py", "docs/render"):
            continue
        for number, line in enumerate(lines, 1):
            for found in CITATION.findall(line):
                name = "".join(found)
                if name not in requirements:
                    wrong.append(f"{path}:{number}: there is no requirement [{name}]")
                elif path.startswith(("crates/", "fuzz/", "interop/")):
                    cited[name] += 1
            for name in SECTION_CITED.findall(line):
                if name not in sections:
                    wrong.append(f"{path}:{number}: there is no section {name}")

    compare_uncited(musts, cited, wrong)
    for line in wrong:
        print(line, file=sys.stderr)
    uncited = [name for name in requirements if name not in cited]
    if "--uncited" in sys.argv[1:]:
        print("\n".join(f"[{name}]" for name in uncited))
    print(f"{len(requirements)} requirements in {len(sections)} sections; {len(cited)} are cited, {len(uncited)} by no test")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

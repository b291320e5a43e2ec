#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Asks ProVerif every question about every variant of the handshake by ticket, prints the verdicts,
and fails if one is not the expected one. Exit code 77 if ProVerif is not there.

The command is `proverif`, or that of the variable PROVERIF. `check.py --model FS CLIENT` prints the
model of a variant with all questions.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TEMPLATE = pathlib.Path(__file__).with_name("handshake.pv.in")
PROVERIF = os.environ.get("PROVERIF", "proverif")
# Seconds for one variant.
LIMIT = 600

SERVER, CLIENT = "name_of(server_key)", "name_of(client_key)"
# By name: the variables and the formula. A reachability twin is refuted: the event happens.
QUERIES = {
    "early request taken": (
        "h: bitstring, m: bitstring",
        f"event(ServerTakesEarly({CLIENT}, h, m))",
    ),
    "early reply sent": ("h: bitstring", f"event(ServerReplies({CLIENT}, h))"),
    "server accepted": (
        "h: bitstring, k: prk",
        f"event(ClientAccepts({SERVER}, h, k))",
    ),
    "session live": (
        "h: bitstring, k: prk",
        f"event(ServerIsLive({CLIENT}, h, k))",
    ),
    "client takes data": ("h: bitstring", f"event(ClientTakesData({SERVER}, h))"),
    "server takes data": ("h: bitstring", f"event(ServerTakesData({CLIENT}, h))"),
    "early data secret": ("", f"attacker(early_for({SERVER})) phase 0"),
    "early data secret later": ("", f"attacker(early_for({SERVER})) phase 1"),
    "early reply secret": ("", f"attacker(reply_for({CLIENT})) phase 0"),
    "early reply secret later": ("", f"attacker(reply_for({CLIENT})) phase 1"),
    "client data secret": ("", f"attacker(data_for({SERVER})) phase 0"),
    "client data secret later": ("", f"attacker(data_for({SERVER})) phase 1"),
    "server data secret": ("", f"attacker(data_for({CLIENT})) phase 0"),
    "server data secret later": ("", f"attacker(data_for({CLIENT})) phase 1"),
    "server authentic, injective": (
        "r: bitstring, h: bitstring, k: prk",
        f"inj-event(ClientAccepts({SERVER}, h, k)) ==> inj-event(ServerAnswers(r, h, k))",
    ),
    "runs have their own keys": (
        "r: bitstring, s: bitstring, h: bitstring, i: bitstring, k: prk",
        "event(ServerAnswers(r, h, k)) && event(ServerAnswers(s, i, k)) ==> r = s",
    ),
    "no unknown key share": (
        "x: name, r: bitstring, h: bitstring, i: bitstring, k: prk",
        "event(ClientAccepts(x, h, k)) && event(ServerAnswers(r, i, k))"
        f" ==> x = {SERVER}",
    ),
    "client authentic, injective": (
        "h: bitstring, k: prk",
        f"inj-event(ServerIsLive({CLIENT}, h, k))"
        f" ==> inj-event(ClientConfirms({CLIENT}, {SERVER}, h, k))",
    ),
    "early data authentic": (
        "h: bitstring, m: bitstring",
        f"event(ServerTakesEarly({CLIENT}, h, m))"
        f" ==> event(ClientSendsEarly({CLIENT}, {SERVER}, h, m))",
    ),
    "early data taken once": (
        "h: bitstring, m: bitstring",
        f"inj-event(ServerTakesEarly({CLIENT}, h, m))"
        f" ==> inj-event(ClientSendsEarly({CLIENT}, {SERVER}, h, m))",
    ),
}
TWINS = list(QUERIES)[:6]

# Expected verdicts of the protocol; those that a variant changes stand with the variant.
HOLDS = {name: name not in TWINS for name in QUERIES} | {"early data secret later": False}
NO_FS = {
    "early reply secret later": False,
    "client data secret later": False,
    "server data secret later": False,
}
# Anyone may be the client: what is said of it, and secret from all others, is not.
ANYONE = {
    "early reply secret": False,
    "early reply secret later": False,
    "server data secret": False,
    "server data secret later": False,
    "client authentic, injective": False,
    "early data authentic": False,
    "early data taken once": False,
}


def changed(**differences):
    """Questions about a broken variant, by their names with _ for spaces, and its verdicts."""
    return {name.replace("_", " ").replace(" injective", ", injective"): verdict
            for name, verdict in differences.items()}


# By name: the words of the variant, the expected verdicts that differ, and whether the others are
# asked for too.
VARIANTS = {
    "Init-FS, client certificate": ("FS CLIENT", {}, True),
    "Init, client certificate": ("CLIENT", NO_FS, True),
    "Init-FS": ("FS", ANYONE, True),
    "Init": ("", NO_FS | ANYONE, True),
    "client's key known (KCI)": (
        "FS CLIENT LEAK_CLIENT",
        changed(
            server_authentic_injective=True,
            client_data_secret=True,
            client_authentic_injective=False,
        ),
        False,
    ),
    "ticket's key known, Init-FS": (
        "FS CLIENT LEAK_TICKET",
        changed(
            client_authentic_injective=True,
            server_data_secret=True,
            server_authentic_injective=False,
            early_data_secret=False,
            early_data_authentic=True,
        ),
        False,
    ),
    "early data not signed, ticket's key known": (
        "FS CLIENT LEAK_TICKET NO_EARLY_SIGNED",
        changed(client_authentic_injective=True, early_data_authentic=False),
        False,
    ),
    "ticket's key known, Init": (
        "CLIENT LEAK_TICKET",
        changed(
            client_authentic_injective=False,
            server_data_secret=False,
            server_authentic_injective=False,
        ),
        False,
    ),
    "without server random [6.7-6]": (
        "CLIENT NO_SERVER_RANDOM",
        changed(runs_have_their_own_keys=False, client_data_secret=True),
        False,
    ),
    "without replay memory [6.8-4]": (
        "FS CLIENT NO_MEMORY",
        changed(early_data_taken_once=False, early_data_authentic=True),
        False,
    ),
    "ticket hash not in hello": (
        "FS CLIENT NO_TICKET_IN_HELLO",
        changed(no_unknown_key_share=False, client_authentic_injective=False),
        False,
    ),
    "ticket not verified [6.7-3]": (
        "FS CLIENT NO_TICKET_SIGNATURE",
        changed(server_authentic_injective=False, early_data_secret=False),
        False,
    ),
    "finished not checked [6.7-11]": (
        "FS CLIENT NO_FINISHED",
        changed(server_authentic_injective=False, early_data_secret=True),
        False,
    ),
    "hello not signed [6.7-10]": (
        "FS CLIENT NO_HELLO_SIGNED",
        changed(client_authentic_injective=False, server_authentic_injective=True),
        False,
    ),
    "live without CONFIRM [6.7-13]": (
        "CLIENT NO_CONFIRM",
        changed(client_authentic_injective=False, runs_have_their_own_keys=True),
        False,
    ),
    "without binder [6.7-8]": (
        "FS CLIENT NO_BINDER",
        changed(early_data_authentic=True, client_authentic_injective=True),
        False,
    ),
}


def query(name):
    variables, formula = QUERIES[name]
    return f"(* {name} *)\nquery {variables}{'; ' if variables else ''}{formula}."


def model(words, names):
    """The template with the text of these words, and the questions."""
    lines, kept = [], [True]
    for line in TEMPLATE.read_text().splitlines():
        if line.startswith("#ifnot "):
            kept.append(line.split()[1] not in words)
        elif line.startswith("#if "):
            kept.append(line.split()[1] in words)
        elif line == "#end":
            kept.pop()
        elif all(kept):
            lines.append(line)
    assert kept == [True], "each #if has its #end"
    return "\n".join(lines).replace("(*QUERIES*)", "\n".join(map(query, names))) + "\n"


def verdicts(variant):
    """Expected and found verdicts of a variant, by question, and the seconds that it took."""
    words, differences, is_whole = VARIANTS[variant]
    expected = HOLDS | differences if is_whole else differences
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "handshake.pv")
        path.write_text(model(words.split(), expected))
        begin = time.monotonic()
        try:
            run = subprocess.run([PROVERIF, path], capture_output=True, text=True, timeout=LIMIT)
            output = run.stdout
        except subprocess.TimeoutExpired as stopped:
            output = (stopped.stdout or b"").decode()
        seconds = time.monotonic() - begin
    lines = re.findall(r"^RESULT .*(is true|is false|cannot be proved)\.$", output, re.MULTILINE)
    found = [{"is true": True, "is false": False}.get(line) for line in lines]
    found += [None] * (len(expected) - len(found))
    return {name: (expected[name], verdict) for name, verdict in zip(expected, found)}, seconds


def word(name, verdict):
    if verdict is None:
        return "NOT DECIDED"
    if name in TWINS:
        return "never" if verdict else "happens"
    return "holds" if verdict else "ATTACK"


def main(arguments):
    if arguments[:1] == ["--model"]:
        print(model(arguments[1:], QUERIES), end="")
        return 0
    if not shutil.which(PROVERIF):
        print("models/tickets: proverif is not installed (opam install proverif): left out")
        return 77
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for variant, (table, seconds) in zip(VARIANTS, pool.map(verdicts, VARIANTS)):
            print(f"{variant} ({seconds:.0f} s)")
            for name, (expected, found) in table.items():
                is_right = expected == found
                wrong += not is_right
                remark = "" if is_right else f"   but expected: {word(name, expected)}"
                print(f"    {name:<30}{word(name, found)}{remark}", flush=True)
    count = sum(len(HOLDS if whole else names) for _, names, whole in VARIANTS.values())
    print(f"{count - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

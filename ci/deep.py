# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks that take long, discover, measure, or wait for guests: `.ci/deep`.

    .ci/deep                 all steps but those that have run at this commit
    .ci/deep STEP...         these steps, again if they have run
    .ci/deep --list          the steps
    .ci/deep --again         all of them, whatever has run

A failure does not end the run. Each result is on disk before the next step begins, so a run that
was killed resumes where it was. The lengths are chosen for a whole run to end within some hours on
two cores; docs/HACKING.md has the commands of longer searches. target/deep/table.md has the table, with the commit of each row;
target/deep/STEP.log has what a step printed. A find becomes a seed, an input or a test of the gate,
with its fix.
"""

import fcntl
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

sys.dont_write_bytecode = True
from runner import LEFT_OUT, ROOT, Result, Step, end_by_signal, kill_session, run

FOLDER = ROOT / "target/deep"
RESULTS = FOLDER / "results.jsonl"
RUNNING = FOLDER / "running.json"

TRUSTED = "cargo run --release -p smt-trusted --"
SMT = "cargo run --release -p smt-cli --features full --"


def step(name, about, command, rooms, environment=None):
    return Step(name, command, about, environment or {}, frozenset(rooms), is_optional=True)


def mutants(system, what, *rooms):
    """Rules of a system that are broken on purpose: each compiles, and is caught."""
    command = f"ci/mutants --system {system} --check && ci/mutants --system {system}"
    return step(f"{system}-mutants", f"{what}, broken on purpose", command, rooms)


STEPS = [
    step(
        "random",
        "tests that draw at random, with fresh seeds",
        "ci/tools; source target/tools/environment\n"
        "cargo test --workspace\n"
        "SMT_SEED=$RANDOM interop/run target/debug/smt $KIT_PYTHON",
        rooms={"crates/smt-proto", "crates/smt-handshake", "crates/smt-sim", "crates/smt", "trusted/device"},
    ),
    step(
        "features",
        "smaller builds: without default features, and each part of the command alone",
        "cargo test -p smt --no-default-features --features async --test other_runtimes\n"
        "cargo test -p smt-record --no-default-features --test vectors\n"
        "for feature in dns dump esp man nic perf sim; do\n"
        "    cargo clippy -p smt-cli --features $feature -- -D warnings\n"
        "done",
        rooms={"crates/smt", "crates/smt-cli", "crates/smt-record"},
    ),
    step(
        "punctual",
        "calls and deadlines by the clock, on a machine without other work",
        "cargo test -p smt --test endpoints",
        rooms={"crates/smt"},
        environment={"SMT_PUNCTUAL": "1"},
    ),
    step(
        "apart",
        "lints of the workspaces apart",
        "for folder in examples/key-value fuzz trusted/minbft; do\n"
        "    cargo clippy --manifest-path $folder/Cargo.toml --workspace --all-targets --target-dir target -- -D warnings\n"
        "done",
        rooms={"examples/key-value", "fuzz", "trusted/minbft"},
    ),
    step(
        "threads",
        "orders of threads, tried by a model checker",
        "crates/smt/check-models",
        rooms={"crates/smt"},
    ),
    step(
        "fuzz",
        "discovery for each fuzz target, half a minute",
        "fuzz/run 30",
        rooms={"fuzz"},
    ),
    step(
        "swarm",
        "fresh seeds of the simulator",
        f"{SMT} sim swarm --time 10m",
        rooms={"crates/smt-sim"},
    ),
    step(
        "trusted-kills",
        "processes of replicated systems under load, 200 kill -9 of each system",
        "cargo test -p smt-trusted --test replication killed_under_load -- --nocapture\n"
        "cargo test -p smt-trusted --test chain killed_under_load -- --nocapture\n"
        "cargo test -p smt-trusted --test peer_review though_they_are_killed -- --nocapture\n"
        "cargo test -p smt-transform-counter killed_under_load -- --nocapture",
        rooms={"trusted/cli", "trusted/transform-process"},
        environment={"SMT_KILLS": "200"},
    ),
    step(
        "memory",
        "a hostile peer looks for memory beyond a server's bound",
        "cargo run --release -p smt-sim --example memory_search -- 20000",
        rooms={"crates/smt-sim"},
    ),
    step(
        "bft",
        "replicas and clients that lie",
        f"{TRUSTED} bft sim --count 10000 && {TRUSTED} bft sim --plans --count 10000 && "
        f"{TRUSTED} bft sim --plans --logs --count 2000",
        rooms={"trusted/bft"},
    ),
    step(
        "chain",
        "chains that lie, and are killed",
        f"{TRUSTED} chain sim --count 10000 --logs && {TRUSTED} chain sim --plans --count 4000 && "
        f"{TRUSTED} chain sim --plans --logs --count 500",
        rooms={"trusted/chain"},
    ),
    step(
        "transform",
        "a transformed counter",
        f"{TRUSTED} transform sim --count 10000 --logs && "
        f"{TRUSTED} transform sim --plans --count 4000 && "
        f"{TRUSTED} transform sim --plans --logs --count 1000",
        rooms={"trusted/transform"},
    ),
    step(
        "peer-review",
        "nodes that lie, and witnesses",
        f"{TRUSTED} peer-review sim --count 10000 && "
        f"{TRUSTED} peer-review sim --plans --count 4000 && "
        f"{TRUSTED} peer-review sim --plans --logs --count 1000",
        rooms={"trusted/peer-review"},
    ),
    step(
        "device",
        "a host that is hostile to the trusted device",
        "cargo run --release -p smt-device --example hostile_host -- 1000000 1",
        rooms={"trusted/device"},
    ),
    step(
        "models",
        "models of the security rules, all states",
        "models/test",
        rooms={"models", "models/tickets"},
    ),
    step(
        "trusted-models",
        "states of the trusted systems",
        "cargo test --release -p smt-trusted-models -- --nocapture",
        rooms={"trusted/models"},
        environment={"SMT_MODELS": "all"},
    ),
    step(
        "minbft",
        "minbft beside smt-bft, and its own tests over the device",
        "cargo test --manifest-path trusted/minbft/Cargo.toml --target-dir target && "
        "trusted/minbft/test --target-dir $PWD/target && trusted/minbft/own-tests --target-dir $PWD/target",
        rooms={"trusted/minbft"},
    ),
    mutants("smt-sim", "rules of the protocol", "crates/smt-sim"),
    mutants("device", "rules of the device", "trusted/device"),
    mutants("replica", "rules of requests, replies and clients", "trusted/replica", "trusted/models"),
    mutants("bft", "rules of replicas and their clients", "trusted/bft", "trusted/models"),
    mutants("chain", "rules of chains and their clients", "trusted/chain", "trusted/models"),
    mutants("transform", "rules of transformed protocols", "trusted/transform", "trusted/models"),
    mutants("peer-review", "rules of nodes and witnesses", "trusted/peer-review", "trusted/models"),
    step(
        "faults",
        "faults that were made here, put back: the gate turns red",
        "ci/mutants --system faults",
        rooms=[],
    ),
    step(
        "native",
        "SMT without UDP between namespaces",
        "integrations/native/test",
        rooms={"integrations/native"},
    ),
    step(
        "xdp",
        "functions of switches as XDP programs",
        "integrations/xdp/test",
        rooms={"integrations/xdp"},
    ),
    step(
        "esp-path",
        "ESP over a hostile network",
        "integrations/esp-path/test",
        rooms={"integrations/esp-path"},
    ),
    step(
        "hand-over",
        "sessions handed over, kill -9",
        "integrations/hand-over/test",
        rooms={"integrations/hand-over"},
        environment={"KILLS": "30", "LIMIT": "3600"},
    ),
    step(
        "valkey",
        "Valkey in three versions with kills, and its module fuzzed",
        "integrations/valkey/test --valkey all",
        rooms={"integrations/valkey"},
        environment={"SMT_VALKEY_KILLS": "20", "SMT_VALKEY_FUZZ": "180"},
    ),
    step(
        "ktls",
        "the kernel's TLS, in guests",
        "integrations/ktls/test",
        rooms={"integrations/ktls"},
    ),
    step(
        "esp-xfrm",
        "the kernel's ESP, in guests",
        "integrations/esp-xfrm/test all",
        rooms={"integrations/esp-xfrm"},
    ),
    step(
        "esp-workloads",
        "VXLAN, RDS and others, in guests",
        "integrations/esp-workloads/test all",
        rooms={"integrations/esp-workloads"},
    ),
    step(
        "quic",
        "stacks of QUIC, real transfers",
        "quic-kit/test --all-stacks",
        rooms={"quic-kit"},
    ),
    step(
        "bench",
        "SMT beside its peers",
        "cargo run --release -p smt-bench -- run --smoke",
        rooms={"bench"},
    ),
    step(
        "soak",
        "a million RPCs",
        "cargo test --release -p smt --test soak -- --ignored --nocapture",
        rooms={"crates/smt"},
    ),
]


def commit():
    """The commit of the tree, and whether it has changes beyond."""
    git = lambda *words: subprocess.run(
        ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain") else "")


def results():
    """All results on disk, the newest of each step. A line that a kill cut is no result."""
    newest = {}
    for line in RESULTS.read_text().splitlines() if RESULTS.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        newest[row["name"]] = row
    return newest


def keep(row):
    """Appends a result, and has it on disk."""
    with RESULTS.open("a") as file:
        # A kill may have cut the line before.
        file.write(f"\n{json.dumps(row)}\n")
        file.flush()
        os.fsync(file.fileno())


def write_table():
    newest = results()
    rows = [newest[step.name] for step in STEPS if step.name in newest]
    lines = ["| step | what | seconds | CPU seconds | result | commit |", "|---|---|---|---|---|---|"]
    about = {step.name: step.about for step in STEPS}
    for row in rows:
        word = Result(row["name"], 0, 0, row["code"]).word
        lines.append(f"| {row['name']} | {about[row['name']]} | {row['seconds']:.0f} | {row['cpu']:.0f} "
                     f"| {word} | {row['commit']} |")
    (FOLDER / "table.md").write_text("\n".join(lines) + "\n")
    return "\n".join(lines)


def began(pid):
    """When a process began, in ticks since the machine did; `None` if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def end_orphans():
    """Ends what a run that was killed has left at work."""
    if not RUNNING.exists():
        return
    left = json.loads(RUNNING.read_text() or "{}")
    # Its first process may have ended before others: then its number is nobody's.
    if left and began(left["session"]) in (left["began"], None):
        kill_session(left["session"])
    RUNNING.unlink()


def run_step(step):
    """Runs a step, whose words go to its log, and keeps what came of it."""
    log, at = FOLDER / f"{step.name}.log", commit()
    note = lambda pid: RUNNING.write_text(json.dumps({"session": pid, "began": began(pid)}))
    with log.open("wb") as output:
        result = run(step, note, output)
    RUNNING.unlink(missing_ok=True)
    keep(asdict(result) | {"commit": at, "date": time.strftime("%F %T")})
    write_table()
    if result.has_failed:
        print("".join(log.read_text(errors="replace").splitlines(keepends=True)[-20:]), flush=True)


def chosen(arguments):
    """The steps that these arguments ask for."""
    names = {step.name: step for step in STEPS}
    unknown = [word for word in arguments if word not in names and word != "--again"]
    if unknown:
        sys.exit(f".ci/deep: no step {' '.join(unknown)}: --list has all\n{__doc__}")
    named = [names[word] for word in arguments if word in names]
    if named or "--again" in arguments:
        return named or STEPS
    now = commit()
    done = {name for name, row in results().items() if row["commit"] == now and row["code"] != LEFT_OUT}
    return [step for step in STEPS if step.name not in done or now.endswith("+changes")]


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(f"{step.name:20}{step.about}" for step in STEPS))
        return
    steps = chosen(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    lock = (FOLDER / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(".ci/deep: another run is at work in this folder")
    end_orphans()
    passed_over = len(STEPS) - len(steps) if not arguments else 0
    if passed_over:
        print(f"{passed_over} steps have run at this commit: --again runs them too")
    end_by_signal()
    for step in steps:
        run_step(step)
    print(f"\n{write_table()}")
    now = commit()
    failed = [name for name, row in results().items()
              if row["commit"] == now and row["code"] not in (0, LEFT_OUT)]
    if failed:
        sys.exit(f"failed at this commit: {', '.join(failed)}; {FOLDER}/STEP.log says how")


if __name__ == "__main__":
    main(sys.argv[1:])

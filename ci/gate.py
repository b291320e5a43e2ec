# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks that every commit must pass, on a clean clone: `.ci/run`.

    .ci/run                   all steps, up to the first that fails
    .ci/run --keep-going      all steps, also after a failure
    .ci/run STEP...           these steps, which need those before them to have run

A step belongs here if it decides the same each time, on any machine and under any load: nothing is
discovered, nothing is measured, nothing waits for a guest. The rest is in `deep.py`. Steps that end
in seconds come first; one build then serves all that follow.
"""

import sys

sys.dont_write_bytecode = True
from rooms import APART
from runner import ROOT, Step, run_all

# For each workspace apart, whose libraries are built in the same folder.
EACH_APART = f"for folder in {' '.join(APART)}; do"
# Needs cmake and libclang: `quic-kit/test --all-stacks` builds it.
WORKSPACE = "--workspace --exclude kit-quiche"

# The programs that the tests' build has made, and tools that ci/tools has installed.
BUILT = {"SMT_BUILT": str(ROOT / "target/debug")}
TOOLS = "source target/tools/environment"

# Random tests draw the same each time; `.ci/deep random` has others.
SEEDS = {
    "PROPTEST_RNG_SEED": "1",
    "SMT_BFT_SEED": "0",
    "SMT_CHAIN_SEED": "0",
    "SMT_REVIEW_SEED": "0",
    "SMT_SEED": "1",
    "SMT_TRANSFORM_SEED": "0",
}

STEPS = [
    Step("checks", "python3 ci/tests.py"),
    Step("prose", "ci/prose --self-test && ci/prose"),
    Step("lock files", "ci/lock-files"),
    Step("places of mutants", "ci/mutants --places"),
    Step("requirements", "docs/requirements.py"),
    Step(
        "format",
        "cargo fmt --all -- --check\n"
        f"{EACH_APART} cargo fmt --manifest-path $folder/Cargo.toml --all -- --check; done",
    ),
    Step("tools", "ci/tools"),
    Step("clippy", f"cargo clippy {WORKSPACE} --all-targets --all-features -- -D warnings"),
    Step(
        "clippy of smaller builds",
        "cargo clippy -p smt-cli -- -D warnings\n"
        "cargo clippy -p smt --no-default-features -- -D warnings\n"
        "cargo clippy -p smt --no-default-features --features async -- -D warnings",
        rooms={"crates/smt", "crates/smt-cli"},
    ),
    Step(
        "documentation",
        f"cargo doc {WORKSPACE} --no-deps --all-features",
        environment={"RUSTDOCFLAGS": "-D warnings"},
    ),
    Step("draft", "docs/render", rooms={"docs"}),
    Step(
        "core without std",
        "for target in x86_64-unknown-none aarch64-unknown-none-softfloat; do\n"
        "    rustup target list --installed | grep -qx $target || rustup target add $target\n"
        "    cargo check -p smt-proto --no-default-features --target $target\n"
        "done",
        rooms={"crates/smt-proto/core-check"},
    ),
    Step("stack and panics of the core", "ci/core-checks", rooms={"crates/smt-proto/core-check"}),
    Step("build", "cargo build --workspace --all-targets"),
    Step("tests", f"{TOOLS}; cargo test --workspace", environment=SEEDS),
    Step(
        "tests of unstable features",
        "cargo test --workspace --features smt/unstable-plaintext --test plaintext\n"
        "cargo test --workspace --features smt-esp/unstable-clear --test clear",
        rooms={"crates/smt", "crates/smt-esp"},
    ),
    Step(
        "examples",
        "for example in crates/smt/examples/*.rs; do\n"
        "    name=$(basename $example .rs)\n"
        "    echo $name && target/debug/examples/$name\n"
        "done",
        rooms={"crates/smt"},
    ),
    Step("demo", "target/debug/smt demo", rooms={"crates/smt-cli"}),
    Step("documents", "docs/guide/check target/debug/smt", rooms={"docs/guide"}),
    Step(
        "seeds that failed",
        "target/debug/smt sim swarm --seeds crates/smt-sim/seeds.txt",
        rooms={"crates/smt-sim"},
    ),
    Step(
        "200 other seeds",
        "target/debug/smt sim swarm --first-seed 1 --count 200",
        rooms={"crates/smt-sim"},
    ),
    Step("vectors", f"{TOOLS}; $KIT_PYTHON vectors/check.py", rooms={"vectors"}),
    Step(
        "trusted",
        f"{TOOLS}; PYTHON=$KIT_PYTHON trusted/test",
        environment=BUILT,
        rooms={"trusted"},
    ),
    Step(
        "peer: Go client",
        f"{TOOLS}; interop/run target/debug/smt $KIT_PYTHON",
        environment=BUILT,
        rooms={"interop"},
    ),
    Step(
        "peer: scapy",
        "integrations/esp/test",
        environment=BUILT,
        rooms={"integrations/esp"},
        is_optional=True,
    ),
    Step(
        "peer: Wireshark",
        "integrations/wireshark/test",
        environment=BUILT,
        rooms={"integrations/wireshark"},
        is_optional=True,
    ),
    Step(
        "peer: Knot and BIND",
        "integrations/dns/test",
        environment=BUILT,
        rooms={"integrations/dns"},
        is_optional=True,
    ),
    Step(
        "peer: Valkey",
        "integrations/valkey/test",
        environment=BUILT | {"SMT_VALKEY_FUZZ": "0", "SMT_SEED": "1"},
        rooms={"integrations/valkey"},
        is_optional=True,
    ),
    # Lints of these two are in `.ci/deep apart`: their libraries have other features, and would all
    # be checked once more.
    Step(
        "peer: minbft",
        # The view change of the crate minbft has stood still for a minute, seldom and under load:
        # the deep run has that test.
        "cargo test --manifest-path trusted/minbft/Cargo.toml --target-dir target -- "
        "--skip goes_on_without_its_leader",
        rooms={"trusted/minbft"},
    ),
    Step(
        "peers: quinn and tonic",
        "cargo build --manifest-path examples/key-value/Cargo.toml --workspace --target-dir target\n"
        "cargo test --manifest-path examples/key-value/Cargo.toml --workspace --target-dir target\n"
        "examples/key-value/count --check",
        rooms={"examples/key-value"},
    ),
]


def main(arguments):
    named = [word for word in arguments if word != "--keep-going"]
    names = {step.name: step for step in STEPS}
    unknown = [word for word in named if word not in names]
    if unknown:
        sys.exit(f".ci/run: no step {unknown[0]!r}; there are: {', '.join(names)}")
    run_all([names[word] for word in named] or STEPS, "--keep-going" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The rooms of the tree, and which use which.

A room is a folder that is checked by itself: a package of cargo, a workspace apart, or a folder
whose script tests programs of other rooms. Cargo knows what packages use; `SCRIPTS` says it of the
rest.
"""

import json
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
APART = ("examples/key-value", "fuzz", "trusted/minbft")

# Rooms without a package of cargo, and the rooms that their scripts test.
SCRIPTS = {
    "docs": [],
    "docs/guide": ["crates/smt-cli", "examples/key-value"],
    "interop": ["crates/smt-cli", "crates/smt-sim"],
    "vectors": ["crates/smt-wire", "crates/smt-record", "crates/smt-handshake", "crates/smt-switch"],
    "kernel/rig": [],
    "kernel/xdp": ["crates/smt-switch"],
    "models/tickets": [],
    "trusted": ["trusted/attestation", "trusted/device", "trusted/device-client"],
    "integrations": [],
    "integrations/dns": ["crates/smt-cli"],
    "integrations/esp": ["crates/smt-esp"],
    "integrations/esp-path": ["crates/smt-cli"],
    "integrations/esp-workloads": ["crates/smt-cli", "kernel/rig"],
    "integrations/esp-xfrm": ["crates/smt-cli", "kernel/rig"],
    "integrations/hand-over": ["crates/smt-cli"],
    "integrations/ktls": ["kernel/rig"],
    "integrations/native": ["crates/smt-cli"],
    "integrations/valkey": ["integrations/valkey/client", "integrations/valkey/libsmt"],
    "integrations/wireshark": ["crates/smt-cli", "crates/smt-dump"],
    "integrations/xdp": ["crates/smt-cli", "kernel/xdp"],
    "quic-kit": ["quic-kit/kit", "quic-kit/http3", "quic-kit/offload", "quic-kit/quinn"],
}

INTEGRATIONS = [room for room in SCRIPTS if room.startswith("integrations/")]
# Files and folders that other rooms than their own read, in tests or by includes.
READERS = {
    "ci/core-": ["crates/smt-proto/core-check"],
    "docs/PERFORMANCE.md": ["bench"],
    "docs/draft-smt-00.md": ["crates/smt-proto", "interop"],
    "docs/guide/src/": ["examples/key-value", "trusted/transform-counter"],
    "examples/key-value/README.md": ["docs/guide"],
    "fuzz/corpus/": ["crates/smt-fuzz"],
    "fuzz/fuzz_targets/": ["crates/smt-fuzz"],
    "integrations/program": INTEGRATIONS,
    "integrations/wireshark/compare.py": ["integrations/native"],
    "quic-kit/aioquic/": ["quic-kit/kit", "quic-kit/offload"],
    "quic-kit/rules.txt": ["quic-kit/kit"],
    "README.md": ["docs/guide"],
    "trusted/size": ["trusted/figures"],
    "trusted/vectors/": ["trusted/attestation"],
    "vectors/": [
        "crates/smt-dump",
        "crates/smt-fuzz",
        "crates/smt-handshake",
        "crates/smt-io",
        "crates/smt-nic",
        "crates/smt-proto",
        "crates/smt-record",
        "crates/smt-sim",
        "crates/smt-switch",
        "crates/smt-wire",
        "integrations/xdp",
        "interop",
        "kernel/xdp",
    ],
}


def inside(folder):
    """A folder of the tree by its name."""
    return str(Path(folder).resolve().relative_to(ROOT))


def packages():
    """The room of each package of the workspace, and the rooms that it uses."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    uses = {}
    for package in json.loads(told)["packages"]:
        room = inside(Path(package["manifest_path"]).parent)
        paths = [of["path"] for of in package["dependencies"] if "path" in of]
        uses[room] = {inside(path) for path in paths} - {room}
    return uses


def uses_of_apart(room):
    """The rooms that a workspace apart names by their paths."""
    found = set()
    for manifest in (ROOT / room).rglob("Cargo.toml"):
        content = tomllib.loads(manifest.read_text())
        for table in (content, content.get("workspace", {})):
            for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
                for of in table.get(kind, {}).values():
                    if isinstance(of, dict) and "path" in of:
                        found.add(inside(manifest.parent / of["path"]))
    return {of for of in found if not (of + "/").startswith(room + "/")}


class Rooms:
    """All rooms: the packages among them, and which use which."""

    def __init__(self):
        self.uses = packages()
        self.packages = set(self.uses)
        self.uses |= {room: set(uses) for room, uses in SCRIPTS.items()}
        self.uses |= {room: uses_of_apart(room) for room in APART}

    def of_path(self, path):
        """The room of a file or a folder: the innermost one. `None`: it lies in no room."""
        if path in self.uses:
            return path
        around = [str(folder) for folder in Path(path).parents]
        room = next((folder for folder in around if folder in self.uses), None)
        return room or ("docs" if path.endswith(".md") else None)

    def of_change(self, path):
        """The rooms that a change of a file may break: its own, and those that read it."""
        found = {self.of_path(path)} - {None}
        return found.union(*(rooms for start, rooms in READERS.items() if path.startswith(start)))

    def below(self, folder):
        """A room itself, or all rooms in a folder."""
        if folder in self.packages:
            return {folder}
        return {room for room in self.uses if room == folder or room.startswith(folder + "/")}

    def with_users(self, rooms):
        """The rooms, and all that use them, directly or not."""
        found, waiting = set(), set(rooms)
        while waiting:
            found |= waiting
            waiting = {room for room, uses in self.uses.items() if uses & waiting} - found
        return found

# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keys by handshakes of SMT, and the hazards of a control plane apart from its data plane, each by
its name."""
import tempfile
import time

from tunnel import KeyDaemon, Path, Transfer, Tunnel, run

OFTEN = ["--every", "500ms", "--look-every", "100ms"]
QUICK = [*OFTEN, "--linger", "100ms"]


def credentials(smt, folder):
    run(smt, "keys", "ca", "--out", folder)
    run(smt, "keys", "server", "listener", "--ca", folder, "--out", folder)
    run(smt, "keys", "client", "connector", "--ca", folder, "--out", folder)
    return folder


class Ends:
    """Two tunnels without keys, and a key daemon beside each."""

    def __init__(self, smt, spaces, path, *words):
        self.folder = tempfile.TemporaryDirectory()
        keys = credentials(smt, self.folder.name)
        mode = ["--tunnel-mode"] if path.mode == "tunnel" else []
        self.first = Tunnel(smt, spaces, "a", path.config_without_keys("a"))
        self.second = Tunnel(smt, spaces, "b", path.config_without_keys("b"))
        self.first.__enter__()
        self.second.__enter__()
        self.listener = KeyDaemon(smt, self.second, keys, *mode)
        self.listener.wait_until_said("listening")
        self.connector = KeyDaemon(smt, self.first, keys, *mode, *words)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        for each in (self.connector, self.listener, self.first, self.second):
            each.__exit__(*failure)
        self.folder.cleanup()


def keys_by_handshake_are_replaced_under_traffic(smt, spaces, seed):
    """Rekeying while data flows: make before break, and nothing is lost for want of a key."""
    path = Path()
    # A packet may wait in the kernel for longer than a key lingers, where other work has the cores.
    with Ends(smt, spaces, path, *OFTEN, "--linger", "400ms") as ends:
        ends.connector.wait_for_keys(1)
        transfer = Transfer(spaces, path, 1 << 34, seed)
        ends.connector.wait_for_keys(5)
        assert ends.second.status().sum("packets", "in") > 0
        transfer.kill()
    for end in (ends.first.last, ends.second.last):
        assert end.count("XfrmInNoStates") == 0, "a packet came under a key that was not there"
        assert end.count("XfrmOutNoStates") == 0, "a packet found no key"


def files_arrive_through_keys_that_are_replaced(smt, spaces, seed):
    path = Path()
    with Ends(smt, spaces, path, *QUICK) as ends:
        ends.connector.wait_for_keys(1)
        turn = 0
        # A fast machine carries several files between two changes of keys.
        while turn < 4 or ends.connector.said().count("new keys") < 3:
            assert turn < 1000, "the keys are never replaced"
            Transfer(spaces, path, 4 << 20, seed + turn).wait()
            turn += 1


def no_packet_leaves_before_keys_are_in_place(smt, spaces, seed):
    """Encrypted data before keys: the tunnel drops it, and says why."""
    path = Path()
    first = Tunnel(smt, spaces, "a", path.config_without_keys("a"))
    with first:
        code = f"import socket;socket.socket(2,2).sendto(b'x',('{path.inner('b')}',9))"
        run(*spaces.inside("a"), "python3", "-c", code)
        first.wait_until_said("its keys have not come yet")
        assert first.status().calls["packets-sent"] == 0


def a_data_process_that_begins_anew_gets_new_keys(smt, spaces, seed):
    """kill -9 of each tunnel under load. In tunnel mode nothing leaves unprotected meanwhile."""
    path = Path(mode="tunnel")
    with Ends(smt, spaces, path, "--look-every", "100ms", "--linger", "0ms") as ends:
        ends.connector.wait_for_keys(1)
        for name in ("second", "first"):
            transfer = Transfer(spaces, path, 48 << 20, seed)
            time.sleep(0.3)
            tunnel = getattr(ends, name)
            tunnel.kill()
            setattr(ends, name, tunnel.begin_again())
            transfer.wait()


def a_control_process_that_ends_stops_no_packet(smt, spaces, seed):
    """kill -9 of both key daemons under load; new ones agree on new keys, and take over."""
    path = Path()
    with Ends(smt, spaces, path, *QUICK) as ends:
        ends.connector.wait_for_keys(2)
        transfer = Transfer(spaces, path, 1 << 34, seed)
        for turn in range(3):
            ends.connector.kill()
            ends.listener.kill()
            before, turns = ends.second.status().sum("packets", "in"), 0
            while ends.second.status().sum("packets", "in") <= before:
                turns += 1
                assert turns < 600, "packets have stopped"
                time.sleep(0.1)
            ends.listener.begin()
            ends.listener.wait_until_said("listening")
            ends.connector.begin()
            ends.connector.wait_for_keys(1)
        transfer.kill()


def a_standby_that_takes_the_address_over_gets_keys_of_its_own(smt, spaces, seed):
    """Failover: the host of `b` is gone with its keys, and another has its address."""
    path = Path(mode="tunnel")
    with Ends(smt, spaces, path, "--look-every", "100ms", "--linger", "0ms") as ends:
        ends.connector.wait_for_keys(1)
        transfer = Transfer(spaces, path, 48 << 20, seed)
        time.sleep(0.3)
        ends.listener.kill()
        ends.second.kill()
        # It has nothing of the first: no keys, and not their hashes.
        gone, ends.second = ends.second, Tunnel(smt, spaces, "b", path.config_without_keys("b"))
        gone.folder.cleanup()
        ends.second.__enter__()
        ends.listener = KeyDaemon(smt, ends.second, ends.folder.name, "--tunnel-mode")
        transfer.wait()
        ends.connector.wait_for_keys_since_start(2)


def a_key_daemon_without_a_certificate_gets_no_keys(smt, spaces, seed):
    path = Path()
    with Ends(smt, spaces, path, "--once") as ends:
        ends.connector.wait_for_keys(1)
        with tempfile.TemporaryDirectory() as folder:
            stranger = KeyDaemon(smt, ends.first, credentials(smt, folder), "--once")
            stranger.words[stranger.words.index("--ca") + 1] = f"{ends.folder.name}/ca.pem"
            stranger.kill()
            stranger.begin()
            assert stranger.process.wait(60) != 0
            stranger.reader.join(60)
            assert "new keys" not in stranger.said(), stranger.said()


CASES = [
    keys_by_handshake_are_replaced_under_traffic,
    files_arrive_through_keys_that_are_replaced,
    no_packet_leaves_before_keys_are_in_place,
    a_data_process_that_begins_anew_gets_new_keys,
    a_control_process_that_ends_stops_no_packet,
    a_standby_that_takes_the_address_over_gets_keys_of_its_own,
    a_key_daemon_without_a_certificate_gets_no_keys,
]

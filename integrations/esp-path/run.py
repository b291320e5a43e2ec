#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Files through `smt esp up` between two namespaces, over a network that loses, reorders, replays
and forges; and what a user is told when something is wrong.

    run.py SMT HOP [WORD …]      only cases whose name has one of the words
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import keys
import kills
import resets
from tunnel import Hop, Namespaces, Path, Transfer, Tunnel, run

SUITES = ["aes-128-gcm", "aes-256-gcm", "aes-128-ccm-8", "null-hmac-sha-256"]
# In a million: a tenth of a percent is lost, and the attacker is as busy.
RATES = (1_000, 5_000, 2_000, 2_000)
FILE = int(os.environ.get("ESP_BYTES", 3 << 20))
# Bytes of a file that goes through each suite: that case is there for who asks for it.
LARGE = int(os.environ.get("ESP_LARGE", 0))


def both(smt, spaces, path, **changes):
    return (Tunnel(smt, spaces, "a", path.config("a", **changes.get("a", {}))),
            Tunnel(smt, spaces, "b", path.config("b", **changes.get("b", {}))))


def transfer_both_ways(smt, spaces, path, seed):
    """Files in both directions; gives the last counts of both ends."""
    first, second = both(smt, spaces, path)
    with first, second:
        transfers = [Transfer(spaces, path, FILE, seed, to="b"), Transfer(spaces, path, FILE // 2, seed, to="a")]
        for transfer in transfers:
            transfer.wait()
    return first.last, second.last


def check_counts(first, second):
    for sender, receiver in ((first, second), (second, first)):
        sealed, opened = sender.count("sealed"), receiver.count("opened")
        assert 0 < opened <= sealed, f"{opened} opened of {sealed} sealed: something was accepted twice"
        refused = sum(receiver.sum(name, "in") for name in ("replay", "replay-window", "failed"))
        assert receiver.count("XfrmInStateSeqError") + receiver.count("XfrmInStateProtoError") == refused
        assert receiver.count("XfrmInNoStates") == 0


def every_suite_carries_files_over_every_underlay(smt, spaces, seed):
    refused = 0
    for suite in SUITES:
        for version in (4, 6):
            for encapsulation in ("udp", "none"):
                path = Path(suite, "transport", version, encapsulation)
                first, second = transfer_both_ways(smt, spaces, path, seed)
                check_counts(first, second)
                refused += first.count("XfrmInStateSeqError") + second.count("XfrmInStateProtoError")
                print(f"  {path}: {FILE + FILE // 2} bytes equal", flush=True)
    assert refused > 0, "the attacker was not there"


def a_large_file_goes_through_each_suite(smt, spaces, seed):
    for suite in SUITES:
        path = Path(suite)
        first, second = both(smt, spaces, path)
        with first, second:
            seconds = Transfer(spaces, path, LARGE, seed).wait(LARGE // 100_000)
        check_counts(first.last, second.last)
        refused = second.last.count("XfrmInStateSeqError") + second.last.count("XfrmInStateProtoError")
        print(f"  {path}: {LARGE} bytes equal in {seconds:.0f} s, {refused} packets of the attacker refused", flush=True)


def tunnel_mode_carries_files(smt, spaces, seed):
    for version, encapsulation in ((4, "udp"), (4, "none"), (6, "none"), (6, "udp")):
        path = Path("aes-256-gcm", "tunnel", version, encapsulation)
        check_counts(*transfer_both_ways(smt, spaces, path, seed))


def extended_numbers_go_on_beyond_32_bits(smt, spaces, seed):
    path = Path(first=(1 << 32) - 100)
    first, second = transfer_both_ways(smt, spaces, path, seed)
    check_counts(first, second)
    assert first.sum("sequence-number", "out") > 1 << 32
    assert second.sum("sequence-number", "in") > 1 << 32


def super_packets_go_in_and_come_out(smt, spaces, seed):
    first, second = transfer_both_ways(smt, spaces, Path(), seed)
    calls = first.calls
    assert calls["device-read-super"] > 0 and second.calls["device-written-super"] > 0
    assert calls["packets-sent"] > 4 * calls["device-read"], calls
    assert calls["packets-sent"] > 2 * calls["send-calls"], calls


def each_offload_is_switched_off_by_itself(smt, spaces, seed):
    # The counter that must be zero, or equal to another, at an end without the offload.
    for name, holds in {
        "segmentation": lambda calls: calls["device-read-super"] == 0,
        "coalescing": lambda calls: calls["device-written-super"] == 0,
        "batched-send": lambda calls: calls["send-calls"] == calls["packets-sent"],
        "batched-receive": lambda calls: calls["receive-calls"] == calls["packets-received"],
        "checksums": lambda calls: calls["device-read"] > 0,
    }.items():
        path = Path(offloads={name: False} | ({"segmentation": False} if name == "checksums" else {}))
        for end in transfer_both_ways(smt, spaces, path, seed):
            assert holds(end.calls), f"without {name}: {end.calls}"


def two_workers_share_flows_by_spi(smt, spaces, seed):
    path, config = Path(queues=2), {}
    for end, other in (("a", "b"), ("b", "a")):
        # The second worker's: odd SPIs, and keys of their own.
        second = [path.association(end, way, spi=path.spi(sender) + 1, key=f'"{path.key(f"second {sender}")}"')
                  for way, sender in (("out", end), ("in", other))]
        config[end] = "\n".join([path.config(end), *second])
    first, second = Tunnel(smt, spaces, "a", config["a"]), Tunnel(smt, spaces, "b", config["b"])
    with first, second:
        transfers = [Transfer(spaces, path, FILE, seed + number) for number in range(6)]
        for transfer in transfers:
            transfer.wait()
    check_counts(first.last, second.last)


def keys_are_replaced_under_traffic(smt, spaces, seed):
    path = Path()
    first, second = both(smt, spaces, path)
    with first, second:
        transfer = Transfer(spaces, path, 16 * FILE, seed)
        for generation in range(1, 9):
            for end, tunnel in (("a", first), ("b", second)):
                tunnel.add(path.association(end, "in", generation))
            for end, tunnel in (("a", first), ("b", second)):
                tunnel.add(path.association(end, "out", generation))
            # The last packets under the old keys are on their way for a moment.
            time.sleep(0.05)
            for sender, tunnel in (("b", first), ("a", second)):
                tunnel.ask("remove", "--direction", "in", "--spi", str(path.spi(sender, generation - 1)))
        transfer.wait()
        assert first.status().fields["associations"][0]["spi"] == path.spi("a", 8)


def a_packet_that_is_too_long_is_told_its_limit(smt, spaces, seed):
    """A datagram that is too long is refused with the length that fits, by ICMP."""
    path = Path()
    first, second = both(smt, spaces, path)
    with first, second:
        # Longer than what fits once it is sealed, and short enough for the device.
        run(*spaces.inside("a"), "ip", "link", "set", "esp0", "mtu", "1500")
        code = ("import socket,sys;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);"
                "s.setsockopt(0,10,2);s.connect((sys.argv[1],9));s.send(bytes(1472));\n"
                "for _ in range(100):\n try: s.send(bytes(1472))\n except OSError as e: print(s.getsockopt(0,14)); break\n"
                " import time; time.sleep(0.02)")
        said = run(*spaces.inside("a"), sys.executable, "-c", code, path.inner("b"))
        first.wait_until_said("a packet to 192.0.2.2: the packet is longer than")
        assert int(said) == 1_500 - 20 - 8 - 8 - 8 - 16 - 2 + 20 - (1500 - 20 - 8 - 8 - 8 - 16) % 4, said


def told(spaces, smt, path, words, **changes):
    """A transfer that cannot come to its end, and what an end says of it."""
    first, second = both(smt, spaces, path, **changes)
    with first, second:
        program = ["import socket,sys;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);"
                   "[s.sendto(b'x',(sys.argv[1],9)) for _ in range(20)]"]
        run(*spaces.inside("a"), sys.executable, "-c", *program, path.inner("b"))
        for end, expected in words.items():
            (first if end == "a" else second).wait_until_said(expected)


def an_unknown_association_is_told(smt, spaces, _):
    words = {"b": "peer: a packet of 192.0.2.1 under SPI 0x7777: no association has the SPI"}
    told(spaces, smt, Path(), words, a={"out": {"spi": 0x7777}})


def another_key_is_told(smt, spaces, _):
    words = {"b": "the peer has another key, suite or length of the ICV, or the packet is forged"}
    told(spaces, smt, Path(), words, a={"out": {"key": f'"{"77" * 36}"'}})


def another_length_of_the_icv_is_told(smt, spaces, _):
    words = {"b": "the integrity check failed: the peer has another key, suite or length of the ICV"}
    path = Path(suite="aes-128-gcm")
    told(spaces, smt, path, words, a={"out": {"suite": '"aes-128-ccm-8"', "key": f'"{path.key(1)[:38]}"'}})


def used_up_sequence_numbers_are_told(smt, spaces, _):
    words = {"a": "limit: a packet to 192.0.2.2: the association has no sequence number left, or set extended-numbers"}
    told(spaces, smt, Path(extended=False, first=(1 << 32) - 5), words)


def a_lifetime_that_has_ended_is_told(smt, spaces, _):
    words = {"a": "limit: a packet to 192.0.2.2: the lifetime of the association has ended: replace"}
    told(spaces, smt, Path(), words, a={"out": {"lifetime": "{ hard-packets = 3 }"}})


def a_replayed_packet_is_told(smt, spaces, seed):
    path = Path()
    first, second = both(smt, spaces, path)
    with first, second:
        Transfer(spaces, path, 4 * FILE, seed).wait()
        second.wait_until_said("peer: a packet of 192.0.2.1 under SPI 0x1040: a replayed packet")


def an_association_removed_under_traffic_is_told(smt, spaces, seed):
    path = Path()
    first, second = both(smt, spaces, path)
    with first, second:
        transfer = Transfer(spaces, path, 1 << 33, seed)
        second.ask("remove", "--direction", "in", "--spi", str(path.spi("a")))
        second.wait_until_said("it was never added here, or it was removed while the peer goes on")
        first.ask("remove", "--direction", "out", "--spi", str(path.spi("a")))
        first.wait_until_said("caller: a packet to 192.0.2.2: the policy has no association: it was removed")
        transfer.kill()


def refused_to_begin(smt, spaces, config, words, *prefix, used=None):
    tunnel = Tunnel(smt, spaces, "a", config)
    if used:
        tunnel.write(tunnel.file, tunnel.file.read_text().replace(f'used-keys = "{tunnel.folder.name}/used"', used))
    if prefix:
        # The user that it runs as reads its own file.
        os.chmod(tunnel.folder.name, 0o755)
        os.chown(tunnel.file, 65534, 65534)
    done = subprocess.run([*spaces.inside("a"), *prefix, smt, "esp", "up", "--config", str(tunnel.file)],
                          capture_output=True, text=True, timeout=60)
    tunnel.folder.cleanup()
    assert done.returncode != 0 and words in done.stderr, f"{words!r} is not in {done.stderr!r}"


def no_right_to_make_a_device_is_told(smt, spaces, _):
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    words = "environment: no right to make the TUN device esp0: it takes CAP_NET_ADMIN"
    refused_to_begin(smt, spaces, Path().config("a"), words, *user)


def no_route_to_the_peer_is_told(smt, spaces, _):
    config = Path().config("a", out={"peer": '"198.51.100.7"'}).replace('device = "wire"', "")
    refused_to_begin(smt, spaces, config, "environment: no route leads to the peer 198.51.100.7: ")


def a_key_that_was_used_before_is_told(smt, spaces, _):
    config = Path().config("a")
    with tempfile.TemporaryDirectory() as folder:
        kept = f'used-keys = "{folder}/used"'
        first = Tunnel(smt, spaces, "a", config)
        first.write(first.file, first.file.read_text().replace(f'used-keys = "{first.folder.name}/used"', kept))
        with first:
            pass
        refused_to_begin(smt, spaces, config, "caller: the key of the association with SPI 0x1040 was used before",
                         used=kept)


def a_wrong_file_is_told_with_line_and_field(smt, spaces, _):
    config = Path().config("a", out={"suite": '"rot13"'})
    refused_to_begin(smt, spaces, config, ": suite: unknown variant `rot13`")


CASES = [
    every_suite_carries_files_over_every_underlay,
    tunnel_mode_carries_files,
    extended_numbers_go_on_beyond_32_bits,
    super_packets_go_in_and_come_out,
    each_offload_is_switched_off_by_itself,
    two_workers_share_flows_by_spi,
    keys_are_replaced_under_traffic,
    a_packet_that_is_too_long_is_told_its_limit,
    an_unknown_association_is_told,
    another_key_is_told,
    another_length_of_the_icv_is_told,
    used_up_sequence_numbers_are_told,
    a_lifetime_that_has_ended_is_told,
    a_replayed_packet_is_told,
    an_association_removed_under_traffic_is_told,
    no_right_to_make_a_device_is_told,
    no_route_to_the_peer_is_told,
    a_key_that_was_used_before_is_told,
    a_wrong_file_is_told_with_line_and_field,
    *keys.CASES,
    *([a_large_file_goes_through_each_suite] if LARGE else []),
    *kills.CASES,
    *resets.CASES,
]


def main():
    # Namespaces and folders go also when a limit ends the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    smt, hop_program, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    seed = int(os.environ.get("SMT_SEED", random.randrange(1 << 32)))
    print(f"SMT_SEED={seed}")
    passed = 0
    with Namespaces() as spaces, Hop(hop_program, spaces, RATES, seed) as hop:
        for case in CASES:
            if words and not any(word in case.__name__ for word in words):
                continue
            begun = time.monotonic()
            case(smt, spaces, seed)
            print(f"{case.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
            passed += 1
        print("the network:", hop.end())
    assert passed, f"no case has one of the words {words}"
    print(f"{passed} passed, 0 failed")


main()

"""The scenarios of live runs: what a proxy does to a flow, latencies, the catalogue, and its command line."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from jepsen.live.cluster.flows import PASS, Flows, Rule, around
from jepsen.live.cluster.proxy import Front, ProxyThread, socket_inode
from jepsen.live.disks.ways import Ways
from jepsen.live.evidence.ledger import Ledger, ProducerSpec
from jepsen.live.plan import Kind, Step
from jepsen.live.scenarios.after import latency
from jepsen.live.scenarios.catalogue import SCENARIOS, staged, step_names
from quorumlog.testing.waiting import wait_until

NO_MOUNTS = Ways(False, False, ("no mounts here",))


def test_a_rule_holds_for_its_flow_alone() -> None:
    flows = Flows(random.Random(1), around(1, [2, 3], outgoing=Rule(delay_ms=7), incoming=PASS))
    assert flows.meet((1, 2)) == (False, 7) and flows.meet((2, 1)) == (False, 0) and flows.meet((2, 3)) == (False, 0)
    assert flows.count((1, 2)).delayed == 1 and flows.count((2, 1)).passed == 1


def test_a_drop_ends_some_connections() -> None:
    flows = Flows(random.Random(1), {(1, 2): Rule(drop_one_in=4)})
    ended = [flows.meet((1, 2))[0] for _ in range(100)]
    assert 0 < sum(ended) < 100 and flows.count((1, 2)).dropped == sum(ended)


def test_the_proxy_holds_one_direction_and_lets_it_go_on() -> None:
    """The bytes of 1 for 2 wait; those of 2 for 1 pass on the same connection."""
    with socket.create_server(("127.0.0.1", 0)) as behind, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        proxy = ProxyThread([Front(2, port, behind.getsockname()[1])], lambda *_: 1)
        proxy.start()
        try:
            with socket.create_connection(("127.0.0.1", port), 30) as one:
                two, _ = behind.accept()
                with two:
                    two.settimeout(30)
                    proxy.set_rules({(1, 2): Rule(holds=True)})
                    one.sendall(b"ask")
                    two.sendall(b"tell")
                    assert one.recv(4) == b"tell"
                    wait_until(lambda: proxy.counts().get((1, 2)) and proxy.counts()[1, 2].held, 30, "a held piece")
                    two.setblocking(False)
                    with pytest.raises(BlockingIOError):
                        two.recv(3)
                    two.settimeout(30)
                    proxy.set_rules({})
                    assert two.recv(3) == b"ask"
        finally:
            proxy.stop()
        assert proxy.failure is None


def test_the_kernels_table_names_the_socket_of_a_connection() -> None:
    table = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:2384 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 11 1\n"
        "   1: 0100007F:9C40 0100007F:2384 01 00000000:00000000 00:00000000 00000000     0        0 22 1\n"
    )
    assert socket_inode(table, 0x9C40, 0x2384) == "22" and socket_inode(table, 1, 2) == ""


def test_latencies_are_those_of_the_window_and_of_the_partitions() -> None:
    ledger = Ledger((ProducerSpec(name="safe", idempotent=True, per_second=1),), partitions=2)
    for partition, sent_ms, took_ms in ((0, 100, 5), (0, 200, 15), (0, 900, 500), (1, 150, 70)):
        sent = ledger.sent[0][partition]
        sent.acknowledge(sent.send(sent_ms), 0, sent_ms + took_ms)
    ledger.sent[0][0].send(210)  # without an answer
    found = latency(ledger, [0], 100, 900)
    assert (found.count, found.median_ms, found.most_ms) == (2, 15, 15)


def test_what_a_machine_does_not_allow_is_skipped_with_its_reason(tmp_path: Path) -> None:
    with staged(SCENARIOS["disk-full"], (), tmp_path, NO_MOUNTS) as stage:
        assert not stage.strikes
        assert list(stage.skipped) == [Kind.FULL_DISK.value, Kind.LOW_DISK.value]
        assert all("no mounts here" in why for why in stage.skipped.values())


def test_steps_choose_strikes_of_a_scenario(tmp_path: Path) -> None:
    with staged(SCENARIOS["network"], ("cut", "drop"), tmp_path, NO_MOUNTS) as stage:
        assert [strike.kind for strike in stage.strikes] == [Step.CUT, Step.CUT, Step.DROP]
        assert [strike.number for strike in stage.strikes] == [1, 2, 3] and stage.shape.proxied


def test_every_step_belongs_to_a_scenario() -> None:
    named = {name for one in SCENARIOS.values() for name in step_names(one)}
    assert {step.name.lower().replace("_", "-") for step in Step} <= named

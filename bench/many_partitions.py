"""A node with very many partitions: how long its starts take and what they ask of the disk, and the turns of its loop.

One node, of both roles, holds all replicas alone, so each of its starts makes it the leader of every partition anew. It
is stopped and started. It is killed and started, each time after all partitions got a record that no recovery point
tells. Then its loop is measured while it rests, and while a client writes to all partitions. The turns of a start are
measured, too, and the longest are named. A turn is that of the thread's clock, collection included.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.measuring.counted_disk import read_counts
from bench.measuring.report import Row
from bench.measuring.turns import LongTurn, Turns, read_long_turns, read_turns
from bench.three.idle import processor_time_s
from quorumlog.client import real_edges as edge
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker

PARTITIONS, QUICK_PARTITIONS = 5_000, 500
PER_TOPIC = 1_000
START_GOAL_S = 10.0  # for PARTITIONS
SYNCS_GOAL = 0.1  # a partition, of a start after a clean stop
TURN_GOAL_MS = 20.0
NODE = 1
START_TIMEOUT_S, CALL_TIMEOUT_MS = 180.0, 120_000
REST_S, LOAD_S = 20.0, 20.0
SETTLE_S = 2.0  # turns are told apart by the second
IN_FLIGHT = 2_000  # records
NAMED_TURNS = 5  # the longest ones, of all rounds


class ManyPartitionsNodes(LocalNodes):
    """One complete node that measures itself."""

    def command(self, node: NodeFiles) -> list[str]:
        files = [str(turns_file(node)), str(long_turns_file(node)), str(syncs_file(node))]
        return [sys.executable, "-m", "bench.nodes.many_partitions_node", *files, "-c", str(node.config)]


def turns_file(node: NodeFiles) -> Path:
    return node.folder / "turns.json"


def long_turns_file(node: NodeFiles) -> Path:
    return node.folder / "long-turns.json"


def syncs_file(node: NodeFiles) -> Path:
    return node.folder / "syncs.json"


class Spans:
    """When each phase of the node's present life began and ended (time.monotonic), by its name."""

    def __init__(self, node: NodeFiles) -> None:
        self._node = node
        self._found: list[tuple[str, float, float]] = []

    def measure(self, name: str, act: Callable[[], object]) -> float:
        start_s = time.monotonic()
        act()
        self._found.append((name, start_s, time.monotonic()))
        return time.monotonic() - start_s

    def turns(self, name: str) -> list[Turns]:
        """Of a node that has stopped."""
        return [read_turns(turns_file(self._node), start, end) for one, start, end in self._found if one == name]

    def long_turns(self, name: str) -> list[LongTurn]:
        """The longest first, of each phase of this name."""
        file = long_turns_file(self._node)
        return [turn for one, start, end in self._found if one == name for turn in read_long_turns(file, start, end)]

    def syncs(self, name: str) -> int:
        return sum(read_counts(syncs_file(self._node), start, end) for one, start, end in self._found if one == name)


def measure(folder: Path, partitions: int, rounds: int) -> list[Row]:
    """A cluster in `folder`, which must not exist."""
    picker = PortPicker()
    nodes = ManyPartitionsNodes.create(folder, 1, {"num.partitions": "1"}, picker)
    try:
        return _rows(nodes, partitions, rounds)
    finally:
        nodes.stop()
        picker.close()
        shutil.rmtree(folder)


def _rows(nodes: LocalNodes, partitions: int, rounds: int) -> list[Row]:
    node = nodes.layout.node(NODE)
    _start(nodes)
    asyncio.run(_fill(node, partitions))
    rows: list[Row] = []
    for how in ("a clean stop", "kill -9"):
        seconds, used, syncs, turns = [], [], [], []
        long: list[LongTurn] = []
        for _ in range(rounds):
            if how == "kill -9":
                asyncio.run(_write_to_each(node, partitions))
                nodes.kill(NODE)
            else:
                nodes.stop()
            spans = Spans(node)
            seconds.append(spans.measure("start", lambda: _start(nodes)))
            used.append(_used_s(nodes))
            time.sleep(SETTLE_S)
            nodes.stop()  # it writes what it has measured
            syncs.append(spans.syncs("start") / partitions)
            turns += spans.turns("start")
            _start(nodes)
            long += spans.long_turns("start")
        name = f"start of a node of {partitions:,} partitions after {how}"
        for turn in sorted(long, key=lambda one: -one.used_ms)[:NAMED_TURNS]:
            print(f"  long turn after {how}: {turn}")
        goal = START_GOAL_S if partitions >= PARTITIONS else None
        rows += [
            Row(name=name, unit="s", rounds=seconds, goal=goal, at_least=False),
            Row(name="  processor time", unit="s", rounds=used),
            Row(
                name="  syncs of files and directories, a partition", unit="", rounds=syncs, at_least=False,
                goal=SYNCS_GOAL if how == "a clean stop" else None,
            ),
            *_turn_rows("  ", turns),
        ]  # fmt: skip
    spans = Spans(node)
    time.sleep(SETTLE_S)
    spans.measure("rest", lambda: time.sleep(REST_S))
    time.sleep(SETTLE_S)
    spans.measure("load", lambda: asyncio.run(_load(node, partitions, LOAD_S)))
    time.sleep(SETTLE_S)
    nodes.stop()
    return rows + _turn_rows("at rest, ", spans.turns("rest")) + _turn_rows("under load, ", spans.turns("load"))


def _turn_rows(prefix: str, turns: list[Turns]) -> list[Row]:
    return [
        Row(name=f"{prefix}turns, p99", unit="ms", rounds=[one.percentile_ms(0.99) for one in turns]),
        Row(name=f"{prefix}turns, p99.9", unit="ms", rounds=[one.percentile_ms(0.999) for one in turns]),
        Row(
            name=f"{prefix}longest turn", unit="ms", rounds=[one.longest_ms for one in turns],
            goal=TURN_GOAL_MS, at_least=False,
        ),
    ]  # fmt: skip


def _start(nodes: LocalNodes) -> None:
    nodes.start()
    nodes.wait_ready(timeout_s=START_TIMEOUT_S)


def _used_s(nodes: LocalNodes) -> float:
    process = nodes.process(NODE)
    assert process is not None, "the node has ended"
    return processor_time_s([process.pid])


async def _fill(node: NodeFiles, partitions: int) -> None:
    """Make the topics; each partition gets one record."""
    address = {"bootstrap.servers": node.client_address}
    async with edge.admin(address, request_timeout_ms=CALL_TIMEOUT_MS) as admin:
        for number, first in enumerate(range(0, partitions, PER_TOPIC)):
            await admin.create_topic(f"many-{number}", min(PER_TOPIC, partitions - first), 1)
    await _write_to_each(node, partitions)


async def _write_to_each(node: NodeFiles, partitions: int) -> None:
    """One record to each partition, acknowledged."""
    address = {"bootstrap.servers": node.client_address}
    async with edge.producer(address, request_timeout_ms=CALL_TIMEOUT_MS) as producer:
        for number, first in enumerate(range(0, partitions, PER_TOPIC)):
            count = min(PER_TOPIC, partitions - first)
            for sent in [await producer.send(f"many-{number}", b"first", partition=index) for index in range(count)]:
                await sent


async def _load(node: NodeFiles, partitions: int, seconds: float) -> None:
    """Write small records to all partitions, one after the other."""
    until_s = time.monotonic() + seconds
    async with edge.producer({"bootstrap.servers": node.client_address}) as producer:
        number = 0
        while time.monotonic() < until_s:
            sent = []
            for _ in range(IN_FLIGHT):
                index = number % partitions
                topic, part = divmod(index, PER_TOPIC)
                sent.append(await producer.send(f"many-{topic}", b"value", partition=part))
                number += 1
            for one in sent:
                await one

"""Committed changes of metadata per second and their latency, beside etcd; unary calls beside a bare echo.

One change is an IncrementalAlterConfigs that sets a value of 200 bytes on a topic; etcd's is a `put` of 200 bytes. Both
are durable on a majority when they are answered. Three nodes and three members are up all the time, on the same disk,
and are loaded alternately. Each client waits for the answer to its change. Both clients talk to the node that leads;
etcd's clients share 16 connections, ours share one admin client, which carries the changes that wait in one request.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.measuring.processor_time import spent_by
from bench.measuring.report import Row
from bench.measuring.rounds import in_turn
from bench.nodes.subject import Subject
from bench.peers.etcd import MEMBERS, Etcd, get_etcd
from bench.peers.kafka_tools import Unavailable
from bench.quorum.echo import AT_A_TIME, Echo, calls_per_second
from bench.quorum.loader import Loader, Round
from quorumlog.ids import NodeId
from quorumlog.messages.cluster import DescribeClusterRequest
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address
from quorumlog.testing.layout import NodeFiles
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import HOST, PortPicker

CLIENTS = (1, 32, 256)
SECONDS, QUICK_SECONDS = 4.0, 1.5
WARM_UP_S = 1.0
SETTLE_S = 5.0  # after the creation of 256 topics
RATE_GOAL = 1.0  # of etcd's rate, with more than one client
LATENCY_GOAL = 1.5  # of etcd's p50, with one client
UNARY_GOAL = 0.5  # of the bare echo's rate
CALL_TIMEOUT_MS = 10_000


@dataclass(slots=True)
class Side:
    """One cluster and its client. rounds: by the number of clients. spent_ms: likewise, of the three per change."""

    name: str
    loader: Loader
    pids: Callable[[], list[int]]
    rounds: dict[int, list[Round]] = field(default_factory=dict)
    spent_ms: dict[int, list[float]] = field(default_factory=dict)

    def measure(self, clients: int, seconds: float) -> None:
        before = spent_by(self.pids())
        found = self.loader.run(clients, seconds)
        spent = spent_by(self.pids()).since(before)
        self.rounds.setdefault(clients, []).append(found)
        self.spent_ms.setdefault(clients, []).append(1_000 * spent.total_s / found.changes)

    def of(self, clients: int, figure: Callable[[Round], float]) -> list[float]:
        return [figure(one) for one in self.rounds[clients]]


def measure(nodes: LocalNodes, folder: Path, rounds: int, seconds: float) -> list[Row]:
    """folder: of etcd's data, on the disk of the nodes."""
    with ExitStack() as stack:
        leader = _files_of(nodes, asyncio.run(leader_of(nodes)))
        command = [sys.executable, "-m", "bench.quorum.metadata_client", leader.client_address]
        ours = Side("ours", stack.enter_context(Loader(command)), lambda: pids_of(nodes))
        sides, skipped = [ours], ""
        try:
            program = get_etcd()
            picker = PortPicker()
            stack.callback(picker.close)
            ports = [(one.client, one.internal) for one in picker.pick(MEMBERS)]
            etcd = Etcd(program, folder, ports)
            stack.callback(etcd.close)
            sides.append(Side("etcd", stack.enter_context(Loader(etcd.load_command())), etcd.pids))
        except Unavailable as error:
            skipped = str(error)
        for side in sides:
            side.loader.run(max(CLIENTS), WARM_UP_S)  # connects, and creates our topics
        time.sleep(SETTLE_S)
        for clients in CLIENTS:
            for side in sides:
                side.loader.run(clients, WARM_UP_S)
        for turn in range(rounds):
            for clients in CLIENTS:
                for _, side in in_turn(sides, turn):
                    side.measure(clients, seconds)
    return [*rows_of(sides, skipped), *asyncio.run(_unary(leader, rounds, seconds))]


def rows_of(sides: Sequence[Side], skipped: str = "") -> list[Row]:
    """sides: ours, and etcd's unless it was skipped for that reason."""
    ours, etcd = sides[0], sides[1] if len(sides) > 1 else None
    rows = [] if etcd is not None else [Row(name="beside etcd", unit="", rounds=(), note=f"skipped: {skipped}")]
    for clients in CLIENTS:
        many = clients > 1
        for side in sides:
            rows.append(_row(f"{side.name}: changes/s, {_clients(clients)}", "/s", side, etcd, clients, _per_second,
                             RATE_GOAL if many else None))  # fmt: skip
        for name, figure in (("p50", _p50), ("p99", _p99)):
            for side in sides:
                goal = LATENCY_GOAL if name == "p50" and not many else None
                rows.append(_row(f"  {side.name}: {name}", "ms", side, etcd, clients, figure, goal, at_least=False))
        for side in sides:
            rows.append(
                Row(
                    name=f"  {side.name}: processor time of the three per change",
                    unit="ms",
                    rounds=side.spent_ms[clients],
                )
            )
        rows.append(Row(name="  ours: changes in one request", unit="", rounds=ours.of(clients, _carried)))
    return rows


def _row(
    name: str,
    unit: str,
    side: Side,
    etcd: Side | None,
    clients: int,
    figure: Callable[[Round], float],
    goal: float | None,
    *,
    at_least: bool = True,
) -> Row:
    """Beside etcd's round of the same turn if this is our row."""
    found = side.of(clients, figure)
    if etcd is None or side is etcd:
        return Row(name=name, unit=unit, rounds=found)
    shares = [mine / its for mine, its in zip(found, etcd.of(clients, figure), strict=True)]
    return Row(name=name, unit=unit, rounds=found, shares=shares, of="etcd", goal=goal, at_least=at_least)


def _clients(clients: int) -> str:
    return "1 client" if clients == 1 else f"{clients} clients"


def _per_second(found: Round) -> float:
    return found.per_second


def _p50(found: Round) -> float:
    return found.p50_ms


def _p99(found: Round) -> float:
    return found.p99_ms


def _carried(found: Round) -> float:
    return found.changes / found.requests


def pids_of(nodes: LocalNodes) -> list[int]:
    found = [nodes.process(node_id) for node_id in nodes.ids]
    return [process.pid for process in found if process is not None]


async def leader_of(nodes: LocalNodes) -> NodeId:
    """The active controller's node."""
    admin = Subject(nodes).admin()
    try:
        return (await admin.describe_quorum()).leader_id
    finally:
        await admin.close()


def _files_of(nodes: LocalNodes, node_id: NodeId) -> NodeFiles:
    return next(node for node in nodes.layout.nodes if node.node_id == node_id)


async def _unary(node: NodeFiles, rounds: int, seconds: float) -> Iterable[Row]:
    """Of a client to the node that leads. The request is DescribeCluster."""
    connection = GrpcTransport().connect(Address(HOST, node.ports.grpc), internal=False, client_id="bench")
    request, codec = DescribeClusterRequest(), BY_REQUEST[DescribeClusterRequest].codec
    answer = await connection.call(request, CALL_TIMEOUT_MS)
    sizes = len(codec.encode_request(request)), len(codec.encode_response(answer))
    echo = Echo(*sizes)
    ours: list[float] = []
    bare: list[float] = []
    try:
        await calls_per_second(echo.call, WARM_UP_S)
        for turn in range(rounds):
            sides = [(lambda: connection.call(request, CALL_TIMEOUT_MS), ours), (echo.call, bare)]
            for _, (call, found) in in_turn(sides, turn):
                found.append(await calls_per_second(call, seconds))
    finally:
        await echo.close()
        await connection.close()
    shares = [mine / its for mine, its in zip(ours, bare, strict=True)]
    title = f"unary gRPC calls/s, {sizes[0]} + {sizes[1]} B, {AT_A_TIME} at a time"
    return [
        Row(name=f"bare echo: {title}", unit="/s", rounds=bare),
        Row(name=f"ours: {title}", unit="/s", rounds=ours, shares=shares, of="the echo", goal=UNARY_GOAL),
    ]

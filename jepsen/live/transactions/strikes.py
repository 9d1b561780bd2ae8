"""Faults at a node that leads something: a coordinator of transactions or of groups, or a leader of data.

Kinds and aims go round in turn, so that each kind meets each aim; before each fault the clock of some node jumps.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from jepsen.live.cluster.away import KILLED, PAUSED, SHUT_DOWN, away
from jepsen.live.transactions.odd_nodes import OddNodes
from jepsen.transactions.readers import LEDGER
from jepsen.transactions.recorder import Recorder
from quorumlog.client import real_edges as edge
from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError
from quorumlog.topic_name import CONSUMER_OFFSETS, TRANSACTION_STATE

KINDS = (KILLED, PAUSED, KILLED, SHUT_DOWN)
AIMS = {TRANSACTION_STATE: "coordinates transactions", CONSUMER_OFFSETS: "coordinates groups", LEDGER: "leads data"}
STOPPED_S = 6.0  # longer than a broker's session
AWAY_S = 2.0  # at most, before a node is started again
JUMP_MS = 3_600_000  # at most, to either side


@dataclass(frozen=True, slots=True)
class Strike:
    """back_s: until the node was ready again. clock_ms: how far the clock of `clock_of` was ahead from then on.

    before: commits acknowledged since the fault before. away: until this node was ready again. open: transactions that
    had begun and not ended when the fault struck.
    """

    kind: str
    node_id: NodeId
    aim: str
    back_s: float
    clock_of: NodeId
    clock_ms: int
    before: int
    away: int
    open: int


class Striker:
    """One fault at a time. struck: so far."""

    def __init__(self, nodes: OddNodes, recorder: Recorder, rng: random.Random, servers: str) -> None:
        self._nodes, self._recorder, self._rng, self._servers = nodes, recorder, rng, servers
        self._committed = 0  # when the fault before was over
        self.struck: list[Strike] = []

    async def strike(self) -> Strike:
        """The next fault, and its end. Raises TimedOut."""
        number = len(self.struck)
        kind, topic = KINDS[number % len(KINDS)], list(AIMS)[number % len(AIMS)]
        clock_of, clock_ms = self._rng.choice(list(self._nodes.ids)), self._rng.randint(-JUMP_MS, JUMP_MS)
        self._nodes.set_clock(clock_of, clock_ms)
        node_id = await self._leader_of_one(topic)
        committed, is_open, began = self._recorder.committed, self._recorder.open, time.monotonic()
        await self._carry_out(kind, node_id)
        back_s = time.monotonic() - began
        before, self._committed = committed - self._committed, self._recorder.committed
        away = self._committed - committed
        one = Strike(kind, node_id, AIMS[topic], back_s, clock_of, clock_ms, before, away, is_open)
        self.struck.append(one)
        return one

    async def _carry_out(self, kind: str, node_id: NodeId) -> None:
        async with away(self._nodes, node_id, kind):
            least, most = (0.2 * STOPPED_S, STOPPED_S) if kind == PAUSED else (0.0, AWAY_S)
            await asyncio.sleep(self._rng.uniform(least, most))

    async def _leader_of_one(self, topic: str) -> NodeId:
        """The leader of some partition; any node where nobody tells."""
        ids = self._nodes.ids
        try:
            async with edge.admin({"bootstrap.servers": self._servers}, default_api_timeout_ms=3_000) as admin:
                parts = (await admin.describe_topic(topic)).partitions
            leaders = [part.leader_id for part in parts if part.leader_id in ids]
        except (QuorumlogError, RpcError):
            leaders = []
        return self._rng.choice(leaders or list(ids))

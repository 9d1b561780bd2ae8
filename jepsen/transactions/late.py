"""Calls of transactions that have ended, sent once more: they must change nothing.

Only those that no protocol lets pass are repeated: of a producer that has got another epoch since. TV1 cannot tell a
late EndTxn from one of the next transaction of the same epoch.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from jepsen.transactions.calls import GROUP, TRANSACTION, Calls
from jepsen.transactions.producer import Producer
from jepsen.transactions.recorder import Recorder
from quorumlog.rpc.transport import RpcError

KEPT_MAX = 8
LEADER = 2  # beside the kinds of coordinators


class _Kept(NamedTuple):
    """epoch: its producer id and epoch. name: of the group, the transactional id or the topic."""

    kind: int
    name: str
    request: Any
    epoch: tuple[int, int]
    partition: int = -1


class Late:
    """Of one transactional id, over its lives."""

    def __init__(self, recorder: Recorder, rng: random.Random) -> None:
        self._recorder, self._rng = recorder, rng
        self._kept: list[_Kept] = []
        self._newest: tuple[int, int] = (-1, -1)

    def begun(self, producer: Producer) -> None:
        """Every earlier life is fenced."""
        self._newest = _epoch(producer)

    def remember(self, producer: Producer, *, committed: bool) -> None:
        """The transaction is about to be ended so; a late call asks for the contrary."""
        self._newest = _epoch(producer)
        request = producer.end_request(committed=not committed)
        self._keep(_Kept(TRANSACTION, producer.transactional_id, request, self._newest))

    def remember_offset(self, producer: Producer, group: str, topic: str, index: int, offset: int) -> None:
        request = producer.offset_request(group, topic, index, max(offset - 1, 0))
        self._keep(_Kept(GROUP, group, request, _epoch(producer)))

    def remember_value(self, producer: Producer, topic: str, index: int, value: int) -> None:
        """It comes with the number that is next: the same one would be taken for a repetition."""
        self._keep(_Kept(LEADER, topic, producer.next_request(topic, index, value), _epoch(producer), index))

    def _keep(self, one: _Kept) -> None:
        self._kept.append(one)
        del self._kept[:-KEPT_MAX]

    async def repeat_some(self, calls: Calls, share: float) -> None:
        """With this probability, one that is of an earlier epoch than the newest transaction's."""
        earlier = [one for one in self._kept if one.epoch != self._newest]
        if not earlier or self._rng.random() >= share:
            return
        one = self._rng.choice(earlier)
        try:
            if one.kind == LEADER:
                await calls.to_leader(one.name, one.partition, one.request)
            else:
                await calls.to_coordinator(one.kind, one.name, one.request)
        except RpcError:
            return
        self._recorder.counts["late calls"] += 1


def _epoch(producer: Producer) -> tuple[int, int]:
    return producer.producer_id, producer.epoch

"""A coordinator that loads many decided transactions: the longest turn of its loop until all of them are complete.

A process of its own has the coordinators of a node and the sender of markers, beside stand-ins for the log, which takes
an append in the next turn, and for the leaders, which answer each request as soon as they have read it. Records,
requests and answers are coded as on the wire.

    python -m bench.decided_load COUNT        # the process of one round; prints JSON
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from bench.measuring.report import Row
from bench.measuring.turns import LongTurns, MeasuredLoop, Turns
from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.transactions import (
    TransactionPartitionResult,
    TransactionTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WrittenMarker,
)
from quorumlog.nursery import Nursery
from quorumlog.records.coordinator import TRANSACTION_TYPES, encode_key
from quorumlog.records.coordinator.transactions import (
    TransactionKey,
    TransactionPartitions,
    TransactionStatus,
    TransactionValue,
)
from quorumlog.records.format.batch import headers
from quorumlog.rpc.convert.services import CODECS
from quorumlog.settings.transactions import TransactionConfig
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.coordinator import State
from quorumlog_broker.coordinator.runtime.loading import Portion
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.runtime.transaction_coordinator import TransactionCoordinator
from quorumlog_broker.coordinator.runtime.transaction_coordinators import TransactionCoordinators
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.produce.own_appends import OwnAppends
from quorumlog_broker.replicas.replica import Replica
from quorumlog_server.process.freezing import freeze_survivors

COUNT, QUICK_COUNT = 10_000, 2_000
GOAL_MS = 10.0
TOPICS = (("flights", (0, 1)), ("counts", (0,)))  # of each transaction: a marker for each of three leaders
RECORDS_A_PORTION = 256
_LEVELS = SimpleNamespace(transaction_version=2, joint_version=2)  # all that a load asks of the metadata
EPOCH = 3
LIMIT_S = 60.0


def measure(count: int, rounds: int) -> list[Row]:
    command = [sys.executable, "-m", "bench.decided_load", str(count)]
    found = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(rounds)]
    longest = [one["longest_ms"] for one in found]
    return [
        Row(name=f"load of {count:,} decided: longest turn", unit="ms", rounds=longest, goal=GOAL_MS, at_least=False),
        Row(name="turns, p99", unit="ms", rounds=[one["p99_ms"] for one in found]),
        Row(name="until the last is complete", unit="s", rounds=[one["seconds"] for one in found]),
    ]


class _Clock:
    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class _Log:
    """Takes an append in the next turn of the loop, when it is committed, too."""

    def __init__(self, end: Offset) -> None:
        self.replica = SimpleNamespace(
            key=("transactions", 0),
            topic=TRANSACTION_STATE,
            name=f"{TRANSACTION_STATE}-0",
            log=SimpleNamespace(end_offset=end),
            core=SimpleNamespace(high_watermark=end, node_id=1),
            config=SimpleNamespace(max_message_bytes=1_048_588),
            next_offset=end,
        )
        self.committed: Callable[[Offset], None] = lambda _end: None

    def check(self, _replica: Replica, _epoch: int) -> None: ...

    def append(self, _replica: Replica, _epoch: int, data: bytes, written: Callable[[ApiError | None], None]) -> None:
        self.replica.next_offset += sum(one.next_offset - one.base_offset for one in headers(data))
        asyncio.get_running_loop().call_soon(self._written, written, self.replica.next_offset)

    def _written(self, written: Callable[[ApiError | None], None], end: Offset) -> None:
        written(None)
        self.replica.core.high_watermark = end
        self.committed(end)


class _Leaders:
    async def call(self, _broker: NodeId, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        codec = CODECS[WriteTxnMarkersRequest]
        data = codec.encode_request(request)
        await asyncio.sleep(0)
        received = codec.decode_request(data)
        answer = WriteTxnMarkersResponse(
            markers=tuple(
                WrittenMarker(
                    producer_id=marker.producer_id,
                    topics=tuple(
                        TransactionTopicResult(
                            name=topic.name,
                            partitions=tuple(TransactionPartitionResult(index=one) for one in topic.partitions),
                        )
                        for topic in marker.topics
                    ),
                )
                for marker in received.markers
            )
        )
        await asyncio.sleep(0)
        data = codec.encode_response(answer)
        await asyncio.sleep(0)
        return cast(WriteTxnMarkersResponse, codec.decode_response(data))


class _Coordinator(TransactionCoordinator):
    """Its log is a list of records."""

    records: tuple[tuple[Offset, bytes, bytes], ...] = ()

    async def _load(self, shard: TransactionShard, end: Offset) -> None:
        for start in range(0, len(self.records), RECORDS_A_PORTION):
            self._replay(shard, Portion(self.records[start : start + RECORDS_A_PORTION]))
            await asyncio.sleep(0)
        self._at_now()
        for _ in self._loaded(shard, end):
            await asyncio.sleep(0)
            self._at_now()
        self._activate()


class _Coordinators(TransactionCoordinators):
    def _make(self, replica: Replica, leader_epoch: int) -> TransactionCoordinator:
        return _Coordinator(
            replica,
            leader_epoch,
            self._node,
            config=self._config,
            sources=self._sources,
            on_decided=self.markers.offer,
            on_dropped=self.markers.remove,
        )

    def _partition_exists(self, _topic: str, _index: int) -> bool:
        return True

    def _leader_of(self, topic: str, index: int) -> NodeId:
        return 1 + index if topic == TOPICS[0][0] else 3


def records_of(count: int) -> tuple[tuple[Offset, bytes, bytes], ...]:
    """As many transactions whose decision to commit is in the log."""
    found = []
    for number in range(count):
        key = TransactionKey(f"application-{number:08}")
        value = TransactionValue(
            producer_id=number,
            producer_epoch=1,
            transaction_timeout_ms=60_000,
            transaction_status=TransactionStatus.PREPARE_COMMIT,
            transaction_partitions=tuple(TransactionPartitions(name, indexes) for name, indexes in TOPICS),
            transaction_last_update_timestamp_ms=1,
            transaction_start_timestamp_ms=1,
            previous_producer_id=number,
            client_transaction_version=2,
        )
        found.append((number, encode_key(key), TRANSACTION_TYPES[0].value.encode(value, 1)))
    return tuple(found)


async def _load(count: int) -> float:
    """Returns the seconds from the election until nothing is left to do."""
    log, clock, turn = _Log(count), _Clock(), Turn()
    nursery = Nursery(lambda name, error: sys.exit(f"{name}: {error!r}"))
    found = _Coordinators(
        node_id=1,
        config=TransactionConfig(),
        image=lambda: cast(Any, _LEVELS),
        appends=cast(OwnAppends, log),
        peers=cast(Peers, _Leaders()),
        new_producer_id=lambda: 1,
        clock=cast(Clock, clock),
        turn=turn,
        nursery=nursery,
    )
    start = time.monotonic()
    found.elected(cast(Replica, log.replica), EPOCH)
    (coordinator,) = found.all
    log.committed = lambda end: turn.run(coordinator.high_watermark_moved, end)
    async with asyncio.timeout(LIMIT_S):
        while coordinator.state is not State.ACTIVE or log.replica.next_offset < 2 * count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    seconds = time.monotonic() - start
    coordinator.close()
    await nursery.close()
    return seconds


def main(arguments: list[str]) -> int:
    count = int(arguments[0])
    _Coordinator.records = records_of(count)
    freeze_survivors()
    loop = MeasuredLoop()
    loop.long = LongTurns()
    try:
        seconds = loop.run_until_complete(_load(count))
    finally:
        loop.close()
    turns = Turns({(length + 1) / 10: number for (_, length), number in loop.turns.items()})
    for one in loop.long.found:
        print(one, file=sys.stderr)
    print(json.dumps({"longest_ms": turns.longest_ms, "p99_ms": turns.percentile_ms(0.99), "seconds": seconds}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

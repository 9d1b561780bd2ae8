"""One partition of `__transaction_state` without a log: a test moves the time and the high watermark."""

from __future__ import annotations

from itertools import count
from typing import Any

from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    DescribedTransaction,
    EndTxnRequest,
    ListedTransaction,
    ListTransactionsRequest,
    TransactionToExtend,
)
from quorumlog.settings.transactions import TransactionConfig
from quorumlog.slices import at_once
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.coordinator.transactions.state.completion import DecidedTransaction
from quorumlog_broker.coordinator.transactions.state.table import Partition, by_topic
from quorumlog_broker.coordinator.turn import Call, Write

X = "x"
WALL_MS = 0x01A1FB930148
FIRST_ID = 0x3E9
TIMEOUT_MS = 60_000
A, B, C = ("a", 0), ("a", 1), ("b", 0)


def replay(log: list[Write], shard: TransactionShard) -> None:
    for offset, write in enumerate(log):
        shard.replay_bytes(offset, write.key, write.value)


class TransactionWorld:
    """Calls return their number; `answers` has the answer of each, once it was given.

    version: the level of transaction.version. automark: leaders write every marker at once. decided: what they were
    asked to write since the last look. ids_left: producer ids at hand; None: any number.
    """

    def __init__(
        self,
        config: TransactionConfig | None = None,
        *,
        version: int = 2,
        autocommit: bool = True,
        automark: bool = True,
    ) -> None:
        self.config = config or TransactionConfig()
        self.version, self.autocommit, self.automark = version, autocommit, automark
        self.producer_ids = count(FIRST_ID)
        self.ids_left: int | None = None
        self.missing_topics: set[str] = set()
        self.coordinator_epoch = 5
        self.largest_record_bytes = 1_000_000
        self.joint_version = 2
        self.log: list[Write] = []
        self.answers: dict[int, Any] = {}
        self.decided: list[DecidedTransaction] = []
        self.now_ms = 0
        self.wall_offset_ms = 0
        self._calls = count(1)
        self.shard = self._new_shard()

    def _new_shard(self) -> TransactionShard:
        shard = TransactionShard(
            self.config,
            self._new_producer_id,
            self._exists,
            self.coordinator_epoch,
            partitions=lambda: 50,
            joint_version=lambda: self.joint_version,
        )
        shard.at(self.now_ms, self.wall_ms, self.version)
        return shard

    def _new_producer_id(self) -> int | None:
        if self.ids_left is not None:
            if not self.ids_left:
                return None
            self.ids_left -= 1
        return next(self.producer_ids)

    def _exists(self, topic: str, _index: int) -> bool:
        return topic not in self.missing_topics

    # --- the world around it ---

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms + self.wall_offset_ms

    def pass_ms(self, ms: int) -> None:
        """Run the timers on the way, each at its time."""
        end = self.now_ms + ms
        while (due := self.shard.next_timer_ms()) is not None and due <= end:
            self.now_ms = max(self.now_ms, due)
            self.step(self.shard.timers_due)
        self.now_ms = end
        self.step(self.shard.timers_due)

    def commit_to(self, high_watermark: int) -> None:
        self._at()
        self.shard.committed(high_watermark)
        self._take()

    def settle(self) -> None:
        """Everything is committed, and with `automark` every marker written."""
        while True:
            before = len(self.log)
            self.commit_to(before)
            if self.automark:
                self.write_markers()
            if len(self.log) == before:
                return

    def write_markers(self) -> None:
        decided, self.decided = self.decided, []
        for one in decided:
            for partition in sorted(one.partitions):
                self._at()
                self.shard.marker_written(one.transactional_id, one.ending.producer_epoch, partition)
                self._take()

    def _at(self) -> None:
        self.shard.at(self.now_ms, self.wall_ms, self.version, self.largest_record_bytes)

    def step(self, step: Any, *args: Any) -> None:
        self._at()
        step(*args)
        self.shard.timers_due()
        self._take()
        if self.autocommit:
            self.settle()

    def _take(self) -> None:
        self.decided += self.shard.take_decided(10_000)
        writes, answers = self.shard.take()
        self.log += writes
        for answer in answers:
            assert answer.call not in self.answers, f"call {answer.call} is answered twice"
            self.answers[answer.call] = answer.response

    def fail_over(self, *, keep: int | None = None) -> None:
        """Another node leads the partition: it has the first `keep` records, and none of what was not written."""
        self.log = self.log[:keep]
        self.decided = []
        self.coordinator_epoch += 1
        self.shard = self._new_shard()
        replay(self.log, self.shard)
        self.shard.loaded(len(self.log))
        if self.autocommit:
            self.settle()

    # --- calls ---

    def call(self, method: str, *args: Any) -> int:
        number = next(self._calls)
        self.step(getattr(self.shard, method), Call(number, "c", "/127.0.0.1"), *args)
        return number

    def init(self, transactional_id: str = X, timeout_ms: int = TIMEOUT_MS, **more: Any) -> int:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms, **more)
        return self.call("init_producer_id", request)

    def add(self, producer: tuple[int, int], *partitions: Partition, transactional_id: str = X, **more: Any) -> int:
        request = TransactionToExtend(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=by_topic(partitions or (A,)),
            **more,
        )
        return self.call("add_partitions", request)

    def verify(self, producer: tuple[int, int], *partitions: Partition, **more: Any) -> int:
        return self.add(producer, *partitions, verify_only=True, **more)

    def add_offsets(self, producer: tuple[int, int], index: int = 7, **more: Any) -> int:
        options = {"transactional_id": X, "group_id": "g", **more}
        request = AddOffsetsToTxnRequest(producer_id=producer[0], producer_epoch=producer[1], **options)
        return self.call("add_offsets", request, index)

    def end(self, producer: tuple[int, int], *, committed: bool = True, version: int | None = None, **more: Any) -> int:
        request = EndTxnRequest(
            transactional_id=more.pop("transactional_id", X),
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
            transaction_version=self.version if version is None else version,
            **more,
        )
        return self.call("end_transaction", request)

    # --- answers ---

    def code(self, number: int) -> int:
        answer = self.answers[number]
        codes = {one.error_code for topic in getattr(answer, "topics", ()) for one in topic.partitions}
        return int(codes.pop() if len(codes) == 1 else answer.error_code)

    def codes(self, number: int) -> dict[Partition, int]:
        return {
            (topic.name, one.index): one.error_code for topic in self.answers[number].topics for one in topic.partitions
        }

    def producer(self, number: int) -> tuple[int, int]:
        """Which id and epoch the producer was given."""
        answer = self.answers[number]
        assert answer.error_code == 0, answer
        return answer.producer_id, answer.producer_epoch

    def started(self, **more: Any) -> tuple[int, int]:
        return self.producer(self.init(**more))

    def described(self, transactional_id: str = X) -> DescribedTransaction:
        answer = self.answers[self.call("describe", transactional_id)]
        assert isinstance(answer, DescribedTransaction)
        return answer

    def state(self) -> str:
        return self.described().state

    def listed(self, **filters: Any) -> list[str]:
        return sorted(one.transactional_id for one in self.list_all(**filters))

    def list_all(self, **filters: Any) -> tuple[ListedTransaction, ...]:
        self._at()
        return at_once(self.shard.list(ListTransactionsRequest(**filters)))

    # --- a transaction in a state ---

    def bring_to(self, state: str) -> tuple[int, int]:
        """The id in this state, with leaders that write no marker from here on. Its producer as it was told."""
        self.automark = True
        producer = self.started()
        if state != "Empty":
            self.add(producer, A)
        if state not in ("Empty", "Ongoing"):
            self.automark = state.startswith("Complete")
            ended = self.end(producer, committed=state.endswith("Commit"))
            if self.version >= 2:
                producer = self.producer(ended)
        self.automark = False
        assert self.state() == state
        return producer

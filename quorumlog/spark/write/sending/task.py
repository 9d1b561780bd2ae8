"""One task in a Spark worker: sends its rows, batch by batch, by a producer that it is given.

Whatever the delivery, the task is the same: what makes its rows readable, or keeps them from it, is the producer's and
the driver's. A row that no repetition would make better ends the task without an error: Spark would run a task that
failed up to four times, and each run would send what comes before that row again. The driver refuses the batch then.
What came before the row is acknowledged when the task ends, so that the driver tells all that stays in the log.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol

from quorumlog.client.errors import QuorumlogError
from quorumlog.ids import Uuid
from quorumlog.spark.write.sending.delivery import Attempt
from quorumlog.spark.write.sending.message import Spans, TaskDone
from quorumlog.spark.write.sending.topics import RowRefused, check_partitions, tables_of


class RowSender(Protocol):
    """The producer as a task uses it; `ClusterSender` is the real one."""

    @property
    def sent(self) -> Spans:
        """What has been acknowledged so far."""

    def partition_count(self, topic: str) -> int:
        """Raises RowRefused if there is no such topic."""

    def queue(self, topic: str, rows: Any, keyless: int) -> None:
        """keyless: the partition of rows without key and partition. Waits while the buffer is full.

        Raises RowRefused, before a row of these is queued, or the first error of what was queued before.
        """

    def finish(self) -> None:
        """Wait until all is acknowledged. Raises as `queue`."""


class AttemptSender(RowSender, Protocol):
    """Of a task whose batch is written exactly once. It is a context, and leaves the attempt's transaction open."""

    @property
    def attempt(self) -> Attempt:
        """As the driver has to know it. Ask after `finish`."""

    @property
    def lives(self) -> Mapping[str, Uuid]:
        """Ids of the topics into which all has been sent. Ask after `finish`, which raises if one has changed."""

    def __enter__(self) -> RowSender: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class KeylessTurns:
    """The partition of a batch's rows without a key: one for each batch of rows, so that few batches of records are
    made, and another for the next one. Each task begins at random."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._last: dict[str, int] = {}

    def next(self, topic: str, partitions: int) -> int:
        before = self._last.get(topic)
        turn = self._rng.randrange(partitions) if before is None else (before + 1) % partitions
        self._last[topic] = turn
        return turn


def send_rows(batches: Iterable[Any], topic: str, sender: RowSender, rng: random.Random) -> TaskDone:
    """batches: RecordBatches with columns of the sink. topic: of all rows; "": their column says it.

    Each batch is checked as a whole before a row of it is sent. Raises what the cluster fails with.
    """
    turns = KeylessTurns(rng)
    try:
        for batch in batches:
            if batch.num_rows:
                _send(batch, topic, sender, turns)
        sender.finish()
    except RowRefused as error:
        all_told = _is_all_acknowledged(sender)
        return TaskDone(sender.sent, str(error), all_told)
    return TaskDone(sender.sent)


def _is_all_acknowledged(sender: RowSender) -> bool:
    """Wait for what was queued before a row was refused: what is under way may be in the log, and the driver tells what
    is. Its own error does not matter any more: Spark would run the task again for it, only to meet the row."""
    try:
        sender.finish()
    except QuorumlogError:
        return False
    return True


def _send(batch: Any, topic: str, sender: RowSender, turns: KeylessTurns) -> None:
    parts = []
    for name, rows in tables_of(batch, topic):
        count = sender.partition_count(name)
        check_partitions(name, rows, count)
        parts.append((name, rows, turns.next(name, count)))
    for name, rows, keyless in parts:
        sender.queue(name, rows, keyless)

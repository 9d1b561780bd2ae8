"""The producer of a task's attempt: as `ClusterSender`, in a transaction that it leaves open for the driver to end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from quorumlog.client.blocking import Producer
from quorumlog.client.errors import QuorumlogError
from quorumlog.spark.write.delivery import Attempt, Written
from quorumlog.spark.write.message import Spans
from quorumlog.spark.write.sender import ClusterSender


class KafkaSender(ClusterSender):
    """producer: has the attempt's transactional id and is between transactions. Of a task that fails, the transaction
    is aborted; if the cluster cannot be asked, it ends by its time-out.

    check_wanted: raises if the driver waits for the attempt no more. It is asked once, as soon as the first rows are
    acknowledged: from then on the driver's list of open transactions has this one.
    """

    def __init__(
        self, client: Mapping[str, Any], producer: Producer, attempt: Attempt, check_wanted: Callable[[], None]
    ) -> None:
        super().__init__(client, producer)
        self._attempt, self._check_wanted = attempt, check_wanted
        self._is_checked = False
        producer.begin()

    def queue(self, topic: str, rows: Any, keyless: int) -> None:
        super().queue(topic, rows, keyless)
        if not self._is_checked:
            self._collect(0)
            self._check_wanted()
            self._is_checked = True

    @property
    def attempt(self) -> Attempt:
        """With what it has written so far. Ask after `finish`."""
        return replace(self._attempt, written=written(self.sent))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self._under_way:
            self._producer.leave_open()
            return
        try:
            self._producer.abort()
        except QuorumlogError as failed:
            if error is not None:
                error.add_note(f"the attempt's transaction is left to its time-out: {failed}")
        finally:
            self._producer.abandon()


def written(sent: Spans) -> tuple[Written, ...]:
    return tuple(
        [
            Written(topic=topic, partition=partition, first=span.first, last=span.end - 1)
            for (topic, partition), span in sorted(sent.by_partition.items())
            if span.rows
        ]
    )

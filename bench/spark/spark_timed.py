"""The format `timed-quorumlog`: ours, and a line in a file for each commit of a stream's batch, with its calls.

Copied beside our packages for a session, because Spark's other Python processes import it, too. A line is JSON:
`batch`, `taken_ms` of `commit`, `attempts` (tasks that told of one) and `calls`, each a request's name and its
milliseconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from quorumlog.rpc.transport import Cancel, OnEnded
from quorumlog.spark.format.source import DefaultSource
from quorumlog.spark.session.kept_connections import LentConnection
from quorumlog.spark.write.sending.message import TaskDone
from quorumlog.spark.write.sink import stream_writer

TIMES = "timesfile"  # an option: where the lines go
Calls = list[tuple[str, float]]


class TimedSource(DefaultSource):
    @classmethod
    def name(cls) -> str:
        return "timed-quorumlog"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = {name: value for name, value in self.options.items() if name.lower() != TIMES}
        return TimedWriter(stream_writer(options, schema), self.options[TIMES])


class TimedWriter(DataSourceStreamArrowWriter):
    def __init__(self, real: Any, times: str) -> None:
        self._real, self._times = real, times

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        done: WriterCommitMessage = self._real.write(iterator)
        return done

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        with calls_counted() as calls:
            start_s = time.perf_counter()
            self._real.commit(messages, batchId)
            taken_ms = 1_000 * (time.perf_counter() - start_s)
        parts = [message.part for message in messages if isinstance(message, TaskDone)]
        attempts = sum(part is not None and part.attempt is not None for part in parts)
        line = {"batch": batchId, "taken_ms": taken_ms, "attempts": attempts, "calls": calls}
        with open(self._times, "a") as file:
            file.write(json.dumps(line) + "\n")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._real.abort(messages, batchId)


@contextmanager
def calls_counted() -> Iterator[Calls]:
    """The calls over this process's kept connections, in the order in which they end."""
    calls: Calls = []
    call, begin = LentConnection.call, LentConnection.begin

    def note(request: Any, start_s: float) -> None:
        calls.append((type(request).__name__.removesuffix("Request"), 1_000 * (time.perf_counter() - start_s)))

    async def timed(request: Any, real: Awaitable[Any]) -> Any:
        start_s = time.perf_counter()
        try:
            return await real
        finally:
            note(request, start_s)

    def timed_call(self: LentConnection, request: Any, timeout_ms: int) -> Awaitable[Any]:
        return timed(request, call(self, request, timeout_ms))

    def timed_begin(self: LentConnection, request: Any, timeout_ms: int, ended: OnEnded) -> Cancel:
        start_s = time.perf_counter()

        def ended_and_noted(response: Any, error: Exception | None) -> None:
            note(request, start_s)
            ended(response, error)

        return begin(self, request, timeout_ms, ended_and_noted)

    # Measured from outside, so that no production call pays for it; the class is itself again behind the block.
    LentConnection.call, LentConnection.begin = timed_call, timed_begin  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        LentConnection.call, LentConnection.begin = call, begin  # type: ignore[method-assign]

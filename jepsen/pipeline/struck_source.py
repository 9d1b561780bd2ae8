"""The format `quorumlog` with a writer that can be held at places, fails when it is told to, and says what it has done.

The real writer does the work. Tasks and the driver's processes import this module, so it has to be on their path.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from jepsen.pipeline.places import BOTH, IN_NODES, POLL_S, RAISES_AFTER, RAISES_BEFORE, Folder, Place
from quorumlog.spark.format.source import DefaultSource
from quorumlog.spark.write.cluster_delivery import ClusterDelivery
from quorumlog.spark.write.sending.delivery import Attempt, BatchOf
from quorumlog.spark.write.sending.message import TaskDone

FORMAT = "struck"
FOLDER = "folder"  # the option
BASE: Any = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)
ABORT_S = 60.0  # an abort beside a commit may wait for it


class StruckSource(DefaultSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        given = dict(self.options)
        folder = given.pop(FOLDER)
        writer: DataSourceStreamWriter = StruckWriter(DefaultSource(given).streamWriter(schema, overwrite), folder)
        return writer


class StruckWriter(BASE):  # type: ignore[misc]  # which class it is, is the version's: Any for mypy
    """Spark copies it, so it holds values only."""

    def __init__(self, real: Any, folder: str) -> None:
        self._real, self._folder = real, folder

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        folder = Folder(Path(self._folder))
        begin = ClusterDelivery.begin

        def held(delivery: ClusterDelivery, batch: BatchOf, token: bytes) -> Attempt | None:
            attempt = begin(delivery, batch, token)
            if attempt is not None:
                folder.wait_at(Place.FIRST_SEND)
            return attempt

        with mock.patch.object(ClusterDelivery, "begin", held):
            message: WriterCommitMessage = self._real.write(iterator)
        if isinstance(message, TaskDone) and message.part is not None and message.part.rows:
            folder.wait_at(Place.RETURNS)
        return message

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        folder = Folder(Path(self._folder))
        folder.wait_at(Place.COMMIT)
        if folder.take(RAISES_BEFORE):
            raise RuntimeError("this commit raises before it decides, as the run has told it to")
        if folder.take(BOTH):
            self._commit_beside_an_abort(folder, messages, batchId)
        else:
            self._real.commit(messages, batchId)
        folder.tell({"event": "decided", "batch": batchId, **told_of(messages)})
        folder.wait_at(Place.AFTER)
        if folder.take(RAISES_AFTER):
            raise RuntimeError("this commit raises behind its decision, as the run has told it to")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._real.abort(messages, batchId)
        Folder(Path(self._folder)).tell({"event": "aborted", "batch": batchId})

    def _commit_beside_an_abort(
        self, folder: Folder, messages: Sequence[WriterCommitMessage | None], batch: int
    ) -> None:
        """As `query.stop()` does it, which may call abort while commit runs.

        Where a place in a node is held, abort comes when the commit is there.
        """
        failures: list[str] = []
        is_over = threading.Event()

        def abort() -> None:
            while any(folder.is_held(place) for place in IN_NODES) and not is_over.wait(POLL_S):
                pass
            try:
                self._real.abort(messages, batch)
            except Exception as error:  # the batch may be decided, or the cluster away
                failures.append(repr(error))

        other = threading.Thread(target=abort, name="abort beside commit", daemon=True)
        other.start()
        try:
            self._real.commit(messages, batch)
        finally:
            is_over.set()
            other.join(ABORT_S)
            folder.tell({"event": "both", "batch": batch, "failures": failures})


def told_of(messages: Sequence[WriterCommitMessage | None]) -> dict[str, Any]:
    """rows: of all tasks. replayed: none of them has sent any of these."""
    parts = [one.part for one in messages if isinstance(one, TaskDone) and one.part is not None]
    rows = sum(sum(part.rows.values()) for part in parts)
    return {"rows": rows, "replayed": bool(rows) and all(part.attempt is None for part in parts)}

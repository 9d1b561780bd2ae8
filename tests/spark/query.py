"""A streaming query of a test: its batches are kept in the test's process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorumlog.spark.format.stream_source import HAS_LIMITS

WAIT_S = 240


class Query:
    """A stream of the format `quorumlog` with a checkpoint in `folder`."""

    def __init__(self, spark: Any, servers: str, folder: Path, **options: str) -> None:
        given = {"kafka.bootstrap.servers": servers, **options}
        self.frame = spark.readStream.format("quorumlog").options(**given).load()
        self._folder = folder
        self.batches: dict[int, list[tuple[int, int]]] = {}

    def run(self, *, fail_at: int = -1) -> Any:
        """One run of Trigger.AvailableNow, to its end. Raises what the query failed with.

        fail_at: the batch that the sink refuses before it takes a row.
        """

        def take(rows: Any, batch: int) -> None:
            if batch == fail_at:
                raise RuntimeError(f"batch {batch} is refused")
            self.batches[batch] = sorted((row.partition, row.offset) for row in rows.collect())

        writer = self.frame.writeStream.option("checkpointLocation", str(self._folder))
        query = writer.foreachBatch(take).trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S), "the query did not end"
        return query

    def run_to_the_end(self) -> Any:
        """`run`, after a run that failed. Below Spark 4.2 a run is one batch, here the one that is repeated."""
        done = self.run()
        return done if HAS_LIMITS else self.run()

    def rows(self) -> list[tuple[int, int]]:
        """Partitions and offsets, of all batches together."""
        return sorted(row for batch in self.batches.values() for row in batch)

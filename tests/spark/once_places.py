"""What scripts of other places than `local` write exactly once. A script imports it from its own folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TASKS = 4  # of each write: enough for both workers
STREAM_S = 240.0


def write_twice(spark: Any, servers: str, topic: str, name: str) -> None:
    """The values of a topic into `NAME-batch` and, by a stream, into `NAME-stream`. The second time adds nothing: the
    batch has a name, and the stream's batch was decided.

    The checkpoint is in the folder where the driver runs, in which nobody else may write.
    """
    given = {"bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    batch = spark.read.format("quorumlog").options(**given).load().select("value").repartition(TASKS)
    stream = spark.readStream.format("quorumlog").options(**given).load().select("value").repartition(TASKS)
    checkpoint = Path.cwd() / "checkpoint"
    sink = {"bootstrap.servers": servers, "writeId": name, "writeVersion": "1"}
    for _ in range(2):
        batch.write.format("quorumlog").options(**sink, topic=f"{name}-batch").mode("append").save()
        writer = stream.writeStream.format("quorumlog").option("bootstrap.servers", servers)
        started = writer.options(topic=f"{name}-stream", checkpointLocation=str(checkpoint)).trigger(availableNow=True)
        assert started.start().awaitTermination(STREAM_S), "a run of AvailableNow ends"
        for done in ("0", ".0.crc"):  # as if the driver had died before it noted that the batch is done
            (checkpoint / "commits" / done).unlink(missing_ok=True)

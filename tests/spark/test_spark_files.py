"""A Spark session reads a log directory without a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.kafka_directory import WANT, unpack_kafka


def test_a_session_reads_what_kafka_wrote(spark: Any, tmp_path: Path) -> None:
    logs = unpack_kafka(tmp_path)
    read = spark.read.format("quorumlog").option("readFrom", "files")
    counts = read.option("subscribePattern", "codec-.*|rolled").load(str(logs)).groupBy("topic").count().collect()
    assert {f"{row.topic}-0": row["count"] for row in counts} == {
        name.partition("/")[0]: found["records"]
        for name, found in WANT.items()
        if name.startswith(("codec-", "rolled")) and name.endswith("/read_committed")
    }
    aside = tmp_path / "aside"
    aside.mkdir()
    (logs / "txn-1").rename(aside / "txn-1")
    (aside / "replication-offset-checkpoint").write_bytes((logs / "replication-offset-checkpoint").read_bytes())
    both = spark.read.format("quorumlog").options(readFrom="files", subscribe="txn", keyFormat="utf8")
    rows = both.load([str(logs), str(aside)]).where("partition = 1").collect()
    assert len(rows) == WANT["txn-1/read_committed"]["records"]

    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"there is no directory /nowhere on .*on every worker's"):
        both.load("/nowhere").collect()
    with pytest.raises(PySparkException, match="readFrom=files is for batch reads"):
        spark.readStream.format("quorumlog").options(readFrom="files", subscribe="txn").load(
            str(logs)
        ).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start().processAllAvailable()

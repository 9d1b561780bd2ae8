"""What Spark's workers are given where there is nothing to read: each release has a placeholder of its own."""

from __future__ import annotations

import pytest
from pyspark.sql.datasource import InputPartition

from quorumlog.spark.format.source import BatchReader
from quorumlog.spark.read.options import Shape, parse_read_options
from quorumlog.spark.read.schema import schema_of


@pytest.mark.parametrize("placeholder", [None, InputPartition(None)], ids=["before Spark 4.2", "from Spark 4.2 on"])
def test_nothing_is_read_for_the_placeholder_of_an_empty_plan(placeholder: InputPartition | None) -> None:
    options = parse_read_options({"bootstrap.servers": "h:1", "subscribe": "t"})
    assert list(BatchReader(options, schema_of(Shape())).read(placeholder)) == []

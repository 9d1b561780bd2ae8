"""A batch of the source's rows as rows for the target: expressions of Spark, so no object is made for a row.

A row's place on the target is looked up in a hash table of all topics, which Spark sends to each task once (a map in an
expression is searched from its beginning for each row). A row that has no place fails the batch before it is
decided: the query, another client of the source, may know of a topic or partition before the mirror does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quorumlog.spark.mirror.origin import HEADER, PATTERN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

READ_COLUMNS = "key,value,headers,topic,partition,offset,timestamp"
NO_PLACE = "quorumlog mirror: no place for"  # begins the text that a batch fails with; then topic-partition
_NO_PLACE = re.compile(rf"{NO_PLACE} ([A-Za-z0-9._-]+)-(\d+)")
_PLACES = "map<string,struct<source_id:string,to:string,target_id:string,partitions:int>>"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a topic's records go. Ids are texts. to: the target's name. partitions: how many it has there."""

    source_id: str
    to: str
    target_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class RowPlan:
    """places: by topic of the source. source: its cluster id. left_out: topics whose rows are read, and not mirrored.

    restored: the id of a cluster whose records come home, unless their topic is there, which `alive` names; "": none.
    """

    source: str
    places: Mapping[str, Place]
    restored: str = ""
    alive: frozenset[str] = field(default=frozenset())
    homes: tuple[str, ...] = ()  # those of `places` that hold copies of the target's records
    left_out: frozenset[str] = field(default=frozenset())


def rows_to_write(frame: DataFrame, plan: RowPlan) -> DataFrame:
    """frame: with READ_COLUMNS. Copies are left out: they are at home on the target, or come from a third cluster,
    which is mirrored from itself. Every other row gets its origin as its last header, or loses it on the way home."""
    from pyspark.sql import functions as f

    placed = frame.join(f.broadcast(_places(frame.sparkSession, plan)), "topic", "left")
    headers = f.coalesce(f.col("headers"), f.array())
    size = f.size(headers)
    last = f.get(headers, size - 1)
    text = f.when(last["key"] == HEADER, last["value"].cast("string"))
    is_copy = f.coalesce(
        text.rlike(PATTERN) & (f.regexp_extract(text, PATTERN, 5) == f.col("place.source_id")), f.lit(False)
    )
    goes = ~is_copy
    added = f.concat(headers, f.array(f.struct(f.lit(HEADER).alias("key"), _origin(plan).alias("value"))))
    if plan.restored:
        comes_home = (
            is_copy
            & (f.regexp_extract(text, PATTERN, 1) == plan.restored)
            & ~f.regexp_extract(text, PATTERN, 2).isin(sorted(plan.alive))
        )
        goes = goes | comes_home
        added = f.when(comes_home, f.slice(headers, 1, size - 1)).otherwise(added)
    if plan.left_out:
        goes = goes & ~f.col("topic").isin(sorted(plan.left_out))
    return placed.where(goes).select(
        _name().alias("topic"), "partition", "key", "value", added.alias("headers"), "timestamp"
    )


def without_place(text: str) -> tuple[str, int] | None:
    """The topic and partition of the source whose row had no place. text: of what a batch failed with; None: it failed
    with something else."""
    found = _NO_PLACE.search(text)
    return None if found is None else (found[1], int(found[2]))


def counted(rows: DataFrame, plan: RowPlan) -> tuple[DataFrame, Any]:
    """The rows, and an Observation that tells after they are written how many go to each name of a home; None: none
    can."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    names = sorted({plan.places[topic].to for topic in plan.homes if topic in plan.places})
    if not names:
        return rows, None
    observation = Observation()
    return rows.observe(observation, *(f.count_if(f.col("topic") == name).alias(name) for name in names)), observation


def _places(spark: SparkSession, plan: RowPlan) -> DataFrame:
    """topic, place: one row for each topic. One literal, since each call of the JVM takes some 0.1 ms."""
    from pyspark.sql import functions as f

    text = json.dumps(
        {
            topic: {"source_id": one.source_id, "to": one.to, "target_id": one.target_id, "partitions": one.partitions}
            for topic, one in plan.places.items()
        }
    )
    return spark.range(1).select(f.explode(f.from_json(f.lit(text), _PLACES)).alias("topic", "place"))


def _name() -> Column:
    """The target's name for the row's topic; the batch fails if the target has no such partition."""
    from pyspark.sql import functions as f

    has_place = f.coalesce(f.col("partition") < f.col("place.partitions"), f.lit(False))
    refusal = f.concat(f.lit(f"{NO_PLACE} "), f.col("topic"), f.lit("-"), f.col("partition"))
    return f.when(has_place, f.col("place.to")).otherwise(f.raise_error(refusal).cast("string"))


def _origin(plan: RowPlan) -> Column:
    from pyspark.sql import functions as f

    home = (f.lit(plan.source), f.col("place.source_id"), f.col("partition"), f.col("offset"))
    return f.concat_ws("/", *home, f.col("place.target_id")).cast("binary")

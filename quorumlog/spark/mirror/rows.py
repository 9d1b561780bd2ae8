"""A batch of the source's rows as rows for the target: expressions of Spark, so no object is made for a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quorumlog.spark.mirror.origin import HEADER, PATTERN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

READ_COLUMNS = "key,value,headers,topic,partition,offset,timestamp"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a topic's records go. Ids are texts. to: the target's name."""

    source_id: str
    to: str
    target_id: str


@dataclass(frozen=True, slots=True)
class RowPlan:
    """places: by topic of the source; rows of others are left out. source: its cluster id.

    restored: the id of a cluster whose records come home, unless their topic is there, which `alive` names; "": none.
    """

    source: str
    places: Mapping[str, Place]
    restored: str = ""
    alive: frozenset[str] = field(default=frozenset())
    homes: tuple[str, ...] = ()  # those of `places` that hold copies of the target's records


def rows_to_write(frame: DataFrame, plan: RowPlan) -> DataFrame:
    """frame: with READ_COLUMNS. Copies are left out: they are at home on the target, or come from a third cluster,
    which is mirrored from itself. Every other row gets its origin as its last header, or loses it on the way home."""
    from pyspark.sql import functions as f

    headers = f.coalesce(f.col("headers"), f.array())
    size = f.size(headers)
    last = f.get(headers, size - 1)
    text = f.when(last["key"] == HEADER, last["value"].cast("string"))
    is_copy = f.coalesce(
        text.rlike(PATTERN) & (f.regexp_extract(text, PATTERN, 5) == _of(plan, "source_id")), f.lit(False)
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
    known = frame.where(f.col("topic").isin(sorted(plan.places))).where(goes)
    return known.select(
        _of(plan, "to").alias("topic"), "partition", "key", "value", added.alias("headers"), "timestamp"
    )


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


def _origin(plan: RowPlan) -> Column:
    from pyspark.sql import functions as f

    home = (f.lit(plan.source), _of(plan, "source_id"), f.col("partition"), f.col("offset"))
    return f.concat_ws("/", *home, _of(plan, "target_id")).cast("binary")


def _of(plan: RowPlan, name: str) -> Column:
    """What the row's topic has in its place."""
    from pyspark.sql import functions as f

    pairs: list[Any] = [
        f.lit(text) for topic, one in sorted(plan.places.items()) for text in (topic, getattr(one, name))
    ]
    return f.create_map(*pairs)[f.col("topic")]

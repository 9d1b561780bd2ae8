"""Mirrors between real clusters in the session of the tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorumlog.client.blocking import Cluster
from quorumlog.spark.mirror.groups import GroupMirror, GroupsDone
from quorumlog.spark.mirror.job import BatchDone, Mirror, Request, Told
from quorumlog.spark.mirror.origin import HEADER
from quorumlog.spark.mirror.sides import MirrorSide
from quorumlog.spark.write.options import EXACTLY_ONCE
from tests.spark.kafka_server import await_markers


@dataclass
class Heard:
    """What a mirror has said."""

    batches: list[BatchDone] = field(default_factory=list)
    groups: list[GroupsDone] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@contextmanager
def mirror(
    source: str, target: str, checkpoint: Path | str, aliases: tuple[str, str] = ("a", "b"), **options: Any
) -> Iterator[tuple[Mirror, Heard]]:
    """source, target: addresses."""
    heard = Heard()
    given = {"topics": ".*", "delivery": EXACTLY_ONCE, "once": True, **options}
    request = Request(
        source={"kafka.bootstrap.servers": source}, target={"kafka.bootstrap.servers": target},
        checkpoint=str(checkpoint), **given,
    )  # fmt: skip
    with Cluster(source) as one, Cluster(target) as other:
        sides = MirrorSide(aliases[0], one), MirrorSide(aliases[1], other)
        groups = GroupMirror(*sides, re.compile(".*"), heard.warnings.append)
        told = Told(heard.batches.append, heard.groups.append, heard.warnings.append)
        yield Mirror(request, *sides, groups, told), heard


def mirror_once(spark: Any, source: str, target: str, checkpoint: Path | str, **options: Any) -> Heard:
    with mirror(source, target, checkpoint, **options) as (made, heard):
        made.run(spark)
    return heard


def records(client: Cluster, topic: str) -> list[Any]:
    await_markers(client)
    return list(client.consumer(topic, start="earliest", stop="latest", isolation_level="read_committed"))


def contents(client: Cluster, topic: str) -> dict[int, list[Any]]:
    """By partition: key, value, headers without the origin, time."""
    found: dict[int, list[Any]] = {}
    for one in sorted(records(client, topic), key=lambda record: record.offset):
        headers = [pair for pair in one.headers if pair[0] != HEADER]
        found.setdefault(one.partition, []).append((one.key, one.value, headers, one.timestamp_ms))
    return found


def offsets_of(client: Cluster, group: str) -> dict[tuple[str, int], int]:
    return {key: one.offset for key, one in client.admin.group_offsets(group).items()}

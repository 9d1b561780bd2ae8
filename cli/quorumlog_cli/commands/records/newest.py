"""`consume --tail N`, `--key` and `--where`: which records are wanted, and the newest of them over all partitions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from quorumlog_cli.connecting.connect import connected
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import CliError, Exit
from quorumlog_cli.terminal.records_text import BadFormat, parse_delimiter

if TYPE_CHECKING:
    from quorumlog.client.blocking_consumer import Consumer
    from quorumlog.client.consumer import ConsumedRecord, Start
    from quorumlog.client.looking.matching import Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """partitions: of each topic; None: all. count: at most so many, of those that fit."""

    topics: list[str]
    partitions: list[int] | None
    count: int
    where: Where


def fitting(key: str | None, conditions: list[str]) -> Where:
    """Raises CliError for what is no condition."""
    from quorumlog.client.looking.matching import BadCondition, Condition, How, Part, Where, read_where

    try:
        where = read_where(conditions)
    except BadCondition as error:
        raise CliError(Exit.USAGE, f"--where: {error}") from error
    if key is None:
        return where
    try:
        wanted = parse_delimiter(key) if key else b""
    except BadFormat as error:
        raise CliError(Exit.USAGE, f"--key {key}: {error}") from error
    of_key = Condition(Part.KEY, How.EQUALS, "", None, lambda data: data == wanted, "")
    return Where((of_key, *where.conditions))


def print_newest(
    target: Target,
    wanted: Newest,
    render: Callable[[ConsumedRecord], bytes],
    follow: Callable[[Consumer], int] | None,
) -> int:
    """Returns how many. follow: prints what comes after them, from a consumer that stands there; None: nothing."""
    with connected(target) as cluster:
        consumer = cluster.consumer()
        found: list[ConsumedRecord] = []
        ends: list[tuple[str, int, Start]] = []
        for topic in dict.fromkeys(wanted.topics):
            records, after = _of_topic(consumer, topic, wanted)
            found += records
            ends += after
        shown = sorted(found, key=lambda record: record.timestamp_ms)[-wanted.count :]
        for record in shown:
            sys.stdout.buffer.write(render(record))
        sys.stdout.buffer.flush()
        if follow is None:
            return len(shown)
        consumer.assign(ends)
        return len(shown) + follow(consumer)


def _of_topic(
    consumer: Consumer, topic: str, wanted: Newest
) -> tuple[list[ConsumedRecord], list[tuple[str, int, Start]]]:
    """Its newest records that fit, oldest first, and where each partition ended before they were looked for."""
    from quorumlog.client.looking.limits import Limits
    from quorumlog.client.looking.newest import begin_at_end, newest
    from quorumlog.client.looking.place import Backward

    place = consumer.ask(partial(begin_at_end, topic=topic, partitions=wanted.partitions))
    ends: list[tuple[str, int, Start]] = [(topic, index, below.high) for index, below in sorted(place.below.items())]
    found: list[ConsumedRecord] = []
    while True:
        limits = Limits(records=wanted.count - len(found))
        page = consumer.ask(partial(newest, topic=topic, place=place, where=wanted.where, limits=limits))
        found[:0] = page.records
        if page.at_end or len(found) >= wanted.count:
            return found, ends
        assert isinstance(page.place, Backward)
        place = page.place

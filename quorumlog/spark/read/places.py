"""Positions in partitions as Spark's users write them: `earliest`, `latest`, {"orders":{"0":120,"1":-2}}, or times.

-2 is the earliest offset, -1 the latest. An offset is the next one to read, so an end offset is exclusive. A time means
the first record at or after it. The syntax is that of Spark's Kafka source; a time may also be in ISO 8601.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.offsets import EARLIEST, LATEST
from quorumlog.ids import TopicPartition

Place = int | Mapping[TopicPartition, int]  # EARLIEST or LATEST for all partitions, or a number for each of them

_NAMES = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePlace:
    """times_ms: since 1970, one for all partitions or one for each of them.

    latest_if_none: a partition without a record at or after its time is at its end; otherwise it is an error.
    """

    option: str
    times_ms: int | Mapping[TopicPartition, int]
    latest_if_none: bool

    def time_of(self, key: TopicPartition) -> int:
        """Raises KeyError for a partition that the user has not named."""
        return self.times_ms if isinstance(self.times_ms, int) else self.times_ms[key]


def parse_place(option: str, text: str) -> Place:
    """Raises ConfigError, which names the option."""
    if text.strip().lower() in _NAMES:
        return _NAMES[text.strip().lower()]
    example = '{"orders":{"0":120,"1":-2}}'
    return _by_partition(option, _parse_object(option, text, f"earliest, latest or {example}"), example, _offset)


def parse_time(option: str, text: str) -> int:
    """Milliseconds since 1970 from such a number or from ISO 8601; without a zone it is UTC. Raises ConfigError."""
    return _time(option, text)


def parse_times(option: str, text: str) -> dict[TopicPartition, int]:
    """Times by partition, from {"orders":{"0":1700000000000}}. Raises ConfigError."""
    example = '{"orders":{"0":1700000000000,"1":"2026-11-20T08:00:00Z"}}'
    return _by_partition(option, _parse_object(option, text, example), example, _time)


def parse_assign(text: str) -> dict[str, tuple[int, ...]]:
    """Partitions by topic, from {"orders":[0,1]}. Raises ConfigError."""
    example = '{"orders":[0,1]}'
    found = _parse_object("assign", text, example)
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not partitions:
            raise ConfigError(f"assign: topic {topic!r} must have a list of partitions, as in {example}")
    return {topic: tuple(sorted({_index("assign", i) for i in given})) for topic, given in found.items()}


def _by_partition(
    option: str, found: Mapping[str, Any], example: str, number: Callable[[str, Any], int]
) -> dict[TopicPartition, int]:
    numbers: dict[TopicPartition, int] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise ConfigError(f"{option}: topic {topic!r} must have an object of partitions, as in {example}")
        for partition, value in partitions.items():
            numbers[topic, _index(option, partition)] = number(option, value)
    return numbers


def _parse_object(option: str, text: str, wanted: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{option} must be {wanted}; {text!r} is not JSON: {error}") from error
    if not isinstance(found, dict) or not found:
        raise ConfigError(f"{option} must be {wanted}, not {text!r}")
    return found


def _index(option: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(f"{option}: {value!r} is not a partition number")
    return value


def _offset(option: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < EARLIEST:
        raise ConfigError(f"{option}: {value!r} is not an offset; -1 stands for latest, -2 for earliest")
    return value


def _time(option: str, value: Any) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise ConfigError(
                f"{option}: {value!r} is not a time; give ms since 1970 or ISO 8601, as 2026-11-20T08:00:00Z"
            ) from error
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        value = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(f"{option}: {value!r} is not a time in ms since 1970")
    return value

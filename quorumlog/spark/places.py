"""Positions in partitions as Spark's users write them: `earliest`, `latest`, or {"orders":{"0":120,"1":-2}}.

-2 is the earliest offset, -1 the latest. An offset is the next one to read, so an end offset is exclusive. The syntax
is that of Spark's Kafka source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.client.fetch_position import TopicPartition
from quorumlog.client.offsets import EARLIEST, LATEST

Place = int | Mapping[TopicPartition, int]  # EARLIEST or LATEST for all partitions, or a number for each of them

_NAMES = {"earliest": EARLIEST, "latest": LATEST}


def parse_place(option: str, text: str) -> Place:
    """Raises ConfigError, which names the option."""
    if text.strip().lower() in _NAMES:
        return _NAMES[text.strip().lower()]
    example = '{"orders":{"0":120,"1":-2}}'
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _parse_object(option, text, f"earliest, latest or {example}").items():
        if not isinstance(partitions, dict):
            raise ConfigError(f"{option}: topic {topic!r} must have an object of partitions, as in {example}")
        for partition, offset in partitions.items():
            found[topic, _index(option, partition)] = _offset(option, offset)
    return found


def parse_assign(text: str) -> dict[str, tuple[int, ...]]:
    """Partitions by topic, from {"orders":[0,1]}. Raises ConfigError."""
    example = '{"orders":[0,1]}'
    found = _parse_object("assign", text, example)
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not partitions:
            raise ConfigError(f"assign: topic {topic!r} must have a list of partitions, as in {example}")
    return {topic: tuple(sorted({_index("assign", i) for i in given})) for topic, given in found.items()}


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

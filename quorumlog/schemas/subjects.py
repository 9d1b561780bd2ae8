"""Under which subject of the registry a schema is kept: Confluent's three strategies."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.client.errors import ConfigError

NameOf = Callable[[str, str, str], str]
"""f(topic, origin, name of the record) -> subject. origin: "key" or "value"."""


def topic_name(topic: str, origin: str, record: str) -> str:
    return f"{topic}-{origin}"


def record_name(topic: str, origin: str, record: str) -> str:
    return record


def topic_record_name(topic: str, origin: str, record: str) -> str:
    return f"{topic}-{record}"


STRATEGIES: dict[str, NameOf] = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}


def strategy(given: str | NameOf) -> NameOf:
    """given: a name of Confluent's, with or without its package, or a function. Raises ConfigError."""
    if not isinstance(given, str):
        return given
    found = STRATEGIES.get(given.rpartition(".")[2])
    if found is None:
        raise ConfigError(f"subject.name.strategy {given!r} is none of {', '.join(STRATEGIES)}")
    return found

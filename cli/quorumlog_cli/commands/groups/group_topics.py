"""Which partitions a command means: `--topic orders`, `--topic orders:0,3`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from quorumlog_cli.commands.topics.topic_lookup import topic_of
from quorumlog_cli.terminal.errors import CliError, Exit

if TYPE_CHECKING:
    from quorumlog.client.blocking import Cluster
    from quorumlog.ids import TopicPartition

TopicsOption = Annotated[
    list[str], typer.Option("--topic", "-t", metavar="TOPIC[:0,1]", help="All or these partitions; may be repeated.")
]


def read_topic(text: str) -> tuple[str, list[int] | None]:
    """The topic, and its partitions; None: all. Raises CliError."""
    topic, colon, numbers = text.rpartition(":")
    if not colon:
        return text, None
    parts = numbers.split(",")
    if not topic or not all(part.isascii() and part.isdigit() for part in parts):
        raise CliError(Exit.USAGE, f"{text!r} is not TOPIC or TOPIC:0,1")
    return topic, [int(part) for part in parts]


def partitions_of_topics(cluster: Cluster, wanted: list[str]) -> list[TopicPartition]:
    """Raises CliError(NOT_FOUND) for a topic or partition that does not exist."""
    found: dict[TopicPartition, None] = {}
    for topic, indexes in map(read_topic, wanted):
        known = [partition.index for partition in topic_of(cluster, topic).partitions]
        for index in sorted(known) if indexes is None else indexes:
            if index not in known:
                raise CliError(Exit.NOT_FOUND, f"topic {topic!r} has no partition {index}, only 0 to {max(known)}")
            found[topic, index] = None
    return list(found)

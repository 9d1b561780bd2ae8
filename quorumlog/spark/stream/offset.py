"""The position of a stream as Spark's checkpoint keeps it. Pure.

    {"v": 1, "c": cluster id, "o": {"orders": {"0": 120}}, "t": {"orders": topic id}, "e": {"orders": {"0": 5}}}

`o` alone, as {"orders": {"0": 120}}, is the form of Spark's Kafka source and is read as well. `c` tells another cluster
behind the same addresses, `t` a topic that was deleted and made again, `e` is the leader epoch at the offset (KIP-101).
Spark compares positions as texts, so equal ones are equal texts: names are sorted, partitions go by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from quorumlog.client.errors import ConfigError, QuorumlogError
from quorumlog.ids import Epoch, Offset, TopicPartition, Uuid, parse_uuid, show_uuid

VERSION = 1

Number = TypeVar("Number", bound=int)


class OtherCluster(QuorumlogError):
    """The checkpoint is of a query that reads another cluster. wanted: the checkpoint's."""

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(
            f"the checkpoint is of cluster {wanted}, and these addresses lead to cluster {found}: "
            "set bootstrap.servers to the former, or begin with a new checkpoint"
        )
        self.wanted, self.found = wanted, found


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """offsets: the next to read of each partition. Of the plain form the rest is empty."""

    offsets: Mapping[TopicPartition, Offset]
    cluster_id: str = ""
    topic_ids: Mapping[str, Uuid] = field(default_factory=dict)
    epochs: Mapping[TopicPartition, Epoch] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "v": VERSION,
            "c": self.cluster_id,
            "o": _nested(self.offsets),
            "t": {topic: show_uuid(self.topic_ids[topic]) for topic in sorted(self.topic_ids)},
            "e": _nested(self.epochs),
        }


def stream_offset(found: Mapping[str, Any]) -> StreamOffset:
    """From what `to_json` made, or from the plain form. Raises ConfigError."""
    try:
        if found.get("v") is None:
            return StreamOffset(offsets=_flat(found, Offset))
        if found["v"] != VERSION:
            raise ConfigError(
                f"the checkpoint's offsets have version {found['v']}, and this quorumlog knows {VERSION}: "
                "start the query with the quorumlog that wrote them, or with a newer one"
            )
        return StreamOffset(
            offsets=_flat(found["o"], Offset),
            cluster_id=found["c"],
            topic_ids={topic: parse_uuid(text) for topic, text in found["t"].items()},
            epochs=_flat(found["e"], Epoch),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"not a position of this format, in the checkpoint: {found!r} ({error})") from error


def _nested(numbers: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), number in sorted(numbers.items()):
        topics.setdefault(topic, {})[str(partition)] = number
    return topics


def _flat(topics: Mapping[str, Mapping[str, Any]], number: Callable[[Any], Number]) -> dict[TopicPartition, Number]:
    return {(topic, int(index)): number(n) for topic, found in topics.items() for index, n in found.items()}

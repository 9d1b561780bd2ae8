"""The topic that says which topics of a cluster hold copies: one record for each of them and cluster of origin. Pure.

It lies in the cluster that has the copies, so that each later mirror from there knows, whatever aliases it has. Of a
topic to which records have come home, it says between which offsets these lie: what they are among may be a large log.

Heartbeats and checkpoints, as KIP-382 has them and its tools read them. Pure.

A checkpoint says where a group is on the target: key (group, topic, partition), value (offset on the source, offset on
the target, metadata). A heartbeat says when the mirror lived: key (source, target), value (time). A text is its length
in two bytes and UTF-8; a value begins with its version, 0.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

TOPIC = "quorumlog-mirrors.internal"
VERSION = 1
CAME_HOME = "came home"  # the third word of a key


@dataclass(frozen=True, slots=True)
class Entry:
    """copy: the name of a topic of copies. cluster_id, topic, topic_id: whose records they are, by their first home."""

    copy: str
    cluster_id: str
    topic: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class Returned:
    """Records that were written in another cluster, into copies of this topic, and came home. spans: of each partition
    the offset before the first of them, and the one behind the last."""

    topic: str
    cluster_id: str
    spans: Mapping[int, tuple[int, int]]

    def joined(self, other: Returned | None) -> Returned:
        """other: of the same topic and cluster."""
        before = {} if other is None else other.spans
        both = {
            index: (min(first, before.get(index, (first, end))[0]), max(end, before.get(index, (first, end))[1]))
            for index, (first, end) in {**before, **self.spans}.items()
        }
        return Returned(self.topic, self.cluster_id, both)


@dataclass(frozen=True, slots=True)
class Entries:
    """By name of the topic and cluster id."""

    copies: Mapping[tuple[str, str], Entry] = field(default_factory=dict)
    returned: Mapping[tuple[str, str], Returned] = field(default_factory=dict)


def entry_record(entry: Entry) -> tuple[str, str]:
    """Key and value."""
    value = {"v": VERSION, "topic": entry.topic, "topicId": entry.topic_id}
    return json.dumps([entry.copy, entry.cluster_id]), json.dumps(value, sort_keys=True)


def returned_record(returned: Returned) -> tuple[str, str]:
    """Key and value."""
    spans = {str(index): list(span) for index, span in sorted(returned.spans.items())}
    return json.dumps([returned.topic, returned.cluster_id, CAME_HOME]), json.dumps({"v": VERSION, "spans": spans})


def read_entries(records: Iterable[tuple[bytes | None, bytes | None]]) -> Entries:
    """records: keys and values in the order of the log.

    Others' records are passed over: what they say is not known here, and a topic that is taken for none of copies has
    records with their origin nevertheless.
    """
    copies: dict[tuple[str, str], Entry] = {}
    returned: dict[tuple[str, str], Returned] = {}
    for key, value in records:
        try:
            words = json.loads(key or b"")
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                continue
            told: Any = None if value is None else json.loads(value)
            if told is not None and told["v"] != VERSION:
                continue
            name, cluster_id, *rest = words
            if rest == [CAME_HOME]:
                returned.pop((name, cluster_id), None)
                if told is not None:
                    spans = {int(index): (int(first), int(end)) for index, (first, end) in told["spans"].items()}
                    returned[name, cluster_id] = Returned(name, cluster_id, spans)
            elif not rest:
                copies.pop((name, cluster_id), None)
                if told is not None:
                    copies[name, cluster_id] = Entry(name, cluster_id, str(told["topic"]), str(told["topicId"]))
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
    return Entries(copies, returned)


def entries_for(found: Iterable[Entry], target_id: str) -> dict[str, Entry]:
    """For a mirror into this cluster, by copy. Of a topic with copies of several clusters, the target's go before."""
    chosen: dict[str, Entry] = {}
    for entry in found:
        if entry.copy not in chosen or entry.cluster_id == target_id:
            chosen[entry.copy] = entry
    return chosen


LAYOUT_VERSION = 0


class Checkpoint(NamedTuple):
    """topic: the target's name. offset, upstream: the next to read on the target, and on the source."""

    group: str
    topic: str
    partition: int
    upstream: int
    offset: int
    metadata: str = ""


def checkpoints_topic(source_alias: str) -> str:
    return f"{source_alias}.checkpoints.internal"


def checkpoint_record(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    key = _text(checkpoint.group) + _text(checkpoint.topic) + struct.pack(">i", checkpoint.partition)
    places = struct.pack(">hqq", LAYOUT_VERSION, checkpoint.upstream, checkpoint.offset)
    return key, places + _text(checkpoint.metadata)


def heartbeat_record(source_alias: str, target_alias: str, now_ms: int) -> tuple[bytes, bytes]:
    """now_ms: since 1970."""
    return _text(source_alias) + _text(target_alias), struct.pack(">hq", LAYOUT_VERSION, now_ms)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded

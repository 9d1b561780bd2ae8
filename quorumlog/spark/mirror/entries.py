"""The topic that says which topics of a cluster hold copies: one record for each of them and cluster of origin. Pure.

It lies in the cluster that has the copies, so that each later mirror from there knows, whatever aliases it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

TOPIC = "quorumlog-mirrors.internal"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """copy: the name of a topic of copies. cluster_id, topic, topic_id: whose records they are, by their first home."""

    copy: str
    cluster_id: str
    topic: str
    topic_id: str


def entry_record(entry: Entry) -> tuple[str, str]:
    """Key and value."""
    key = json.dumps([entry.copy, entry.cluster_id])
    value = {"v": VERSION, "topic": entry.topic, "topicId": entry.topic_id}
    return key, json.dumps(value, sort_keys=True)


def read_entries(records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[tuple[str, str], Entry]:
    """By copy and cluster. records: keys and values in the order of the log. Others' records are passed over: what they
    say is not known here, and a topic that is taken for none of copies has records with their origin nevertheless."""
    found: dict[tuple[str, str], Entry] = {}
    for key, value in records:
        try:
            copy, cluster_id = json.loads(key or b"")
            if not isinstance(copy, str) or not isinstance(cluster_id, str):
                continue
            if value is None:
                found.pop((copy, cluster_id), None)
                continue
            told = json.loads(value)
            if told["v"] == VERSION:
                found[copy, cluster_id] = Entry(copy, cluster_id, str(told["topic"]), str(told["topicId"]))
        except (ValueError, TypeError, KeyError):
            continue
    return found


def entries_for(found: Iterable[Entry], target_id: str) -> dict[str, Entry]:
    """For a mirror into this cluster, by copy. Of a topic with copies of several clusters, the target's go before."""
    chosen: dict[str, Entry] = {}
    for entry in found:
        if entry.copy not in chosen or entry.cluster_id == target_id:
            chosen[entry.copy] = entry
    return chosen

"""A plan as text: the JSON that kafka-reassign-partitions reads and writes, so that both read each other's files.

{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","/data/b"]}]}, as in Kafka's
`tools/reassign/ReassignPartitionsCommand`. `log_dirs` may be left out. Other keys of the document are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

from quorumlog.planner.cluster import ANYWHERE, Assignment, TopicPartition

VERSION = 1
MAX_CHARACTERS = 256 * 1024 * 1024


class BadPlanFile(Exception):
    """The text is no plan. The message names the entry, counted from 1."""


def write_plan(wanted: Mapping[TopicPartition, Assignment]) -> str:
    """One partition a line, sorted, so that two plans can be compared line by line."""
    lines = [json.dumps(_entry(key, wanted[key]), separators=(",", ":"), ensure_ascii=False) for key in sorted(wanted)]
    body = ",\n".join(lines)
    return f'{{"version":{VERSION},"partitions":[\n{body}\n]}}\n' if lines else '{"version":1,"partitions":[]}\n'


def as_document(wanted: Mapping[TopicPartition, Assignment]) -> dict[str, Any]:
    return {"version": VERSION, "partitions": [_entry(key, wanted[key]) for key in sorted(wanted)]}


def read_plan(text: str) -> dict[TopicPartition, Assignment]:
    """Raises BadPlanFile."""
    if len(text) > MAX_CHARACTERS:
        raise BadPlanFile(f"the plan has {len(text):,} characters; {MAX_CHARACTERS:,} are read at most")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadPlanFile(f"the plan is not JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise BadPlanFile('the plan is no document of the form {"version":1,"partitions":[...]}')
    if document.get("version", VERSION) != VERSION:
        raise BadPlanFile(f"the plan has version {document['version']!r}; version {VERSION} is read")
    wanted: dict[TopicPartition, Assignment] = {}
    for number, entry in enumerate(document["partitions"], 1):
        key, assignment = _parsed(number, entry)
        if key in wanted:
            raise BadPlanFile(f"entry {number}: {key[0]}-{key[1]} is named twice")
        wanted[key] = assignment
    return wanted


def _entry(key: TopicPartition, assignment: Assignment) -> dict[str, Any]:
    return {
        "topic": key[0],
        "partition": key[1],
        "replicas": list(assignment.replicas),
        "log_dirs": list(assignment.log_dirs),
    }


def _parsed(number: int, entry: Any) -> tuple[TopicPartition, Assignment]:
    if not isinstance(entry, dict):
        raise BadPlanFile(f"entry {number} is no object")
    topic, index, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    if not isinstance(topic, str) or not topic:
        raise BadPlanFile(f"entry {number} names no topic")
    if not _is_number(index):
        raise BadPlanFile(f"entry {number}: {index!r} is no partition of {topic}")
    if not isinstance(replicas, list) or not replicas or not all(_is_number(one) for one in replicas):
        raise BadPlanFile(f"entry {number}: the replicas of {topic}-{index} are no list of broker ids")
    if len(set(replicas)) < len(replicas):
        raise BadPlanFile(f"entry {number}: the replicas of {topic}-{index} name a broker twice: {replicas}")
    paths = entry.get("log_dirs") or [ANYWHERE] * len(replicas)
    if not isinstance(paths, list) or len(paths) != len(replicas) or not all(_is_path(one) for one in paths):
        raise BadPlanFile(
            f"entry {number}: the log_dirs of {topic}-{index} are not one absolute path, or {ANYWHERE!r}, for each"
        )
    return (topic, index), Assignment(tuple(replicas), tuple(paths))


def _is_number(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**31


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and (value == ANYWHERE or value.startswith("/"))

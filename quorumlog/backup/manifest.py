"""The manifest of a backup: a JSON file that is written last, so a folder without it is not a whole backup.

    DIR/manifest.json              what follows; its own checksum is in its last field
    DIR/metadata.checkpoint        the metadata at the cut, as a snapshot file
    DIR/records/<topic>-<number>   the batches of one partition, as they were stored, one after the other
    DIR/unfinished.json            the cut, while the records are copied; a later run goes on with it

Unknown fields are ignored; another `version` is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quorumlog.errors import ApiError
from quorumlog.ids import Epoch, Offset, Uuid, format_uuid, parse_uuid
from quorumlog.topic_name import validate_topic_name

VERSION = 1
_INT32, _INT64 = 2**31 - 1, 2**63 - 1
MANIFEST, UNFINISHED, METADATA, RECORDS = "manifest.json", "unfinished.json", "metadata.checkpoint", "records"


class BadBackup(Exception):
    """The folder is no whole backup, or is damaged. The message says what, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAtCut:
    """A transaction that was open at the cut, and that a restore aborts. transactional_id: empty: none is known."""

    transactional_id: str
    producer_id: int
    first_offset: Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUpPartition:
    """end: the cut, exclusive. start: the first offset that was served, perhaps later than at the cut: retention went
    on. sha256: of the file, in hex. max_producer_id: -1 for none."""

    topic: str
    index: int
    start: Offset
    end: Offset
    size: int
    sha256: str
    last_epoch: Epoch
    max_producer_id: int
    open: tuple[OpenAtCut, ...] = ()

    @property
    def file(self) -> str:
        return f"{RECORDS}/{self.topic}-{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Times in ms since 1970. began_ms: everything acknowledged before it is in the backup. held_ms: how long commits
    waited for the cut. topics: ids by name. left_out: topics of the cut that are not in the backup, with the reason."""

    cluster_id: str
    metadata_offset: Offset
    metadata_sha256: str
    began_ms: int
    cut_ms: int
    ended_ms: int
    held_ms: int
    made_by: str
    topics: Mapping[str, Uuid]
    partitions: tuple[BackedUpPartition, ...]
    left_out: Mapping[str, str]

    @property
    def open_transactions(self) -> dict[tuple[str, int], list[str]]:
        """(transactional id, producer id) -> the partitions in which it was open."""
        found: dict[tuple[str, int], list[str]] = {}
        for one in self.partitions:
            for open_one in one.open:
                where = found.setdefault((open_one.transactional_id, open_one.producer_id), [])
                where.append(f"{one.topic}-{one.index}")
        return found

    def to_json(self) -> str:
        content = {"version": VERSION, **asdict(self)}
        content["topics"] = {name: format_uuid(topic_id) for name, topic_id in self.topics.items()}
        content["left_out"] = dict(self.left_out)
        return json.dumps({**content, "sha256": _checksum(content)}, indent=1) + "\n"


def read_manifest(text: str) -> Manifest:
    """Raises BadBackup."""
    try:
        content = json.loads(text)
        told = content.pop("sha256")
        if content["version"] != VERSION:
            raise BadBackup(f"the backup has version {content['version']}, this software reads {VERSION}: upgrade it")
        if told != _checksum(content):
            raise BadBackup(f"{MANIFEST} was changed after it was written; take another copy of the backup")
        return _manifest(content)
    except (ValueError, KeyError, TypeError, AttributeError, ApiError) as error:
        raise BadBackup(f"{MANIFEST} cannot be read ({error!r}); take another copy of the backup") from error


def _manifest(content: dict[str, Any]) -> Manifest:
    partitions = tuple(
        BackedUpPartition(
            **{name: one[name] for name in _PARTITION if name != "open"},
            open=tuple(OpenAtCut(**{name: part[name] for name in OpenAtCut.__slots__}) for part in one["open"]),
        )
        for one in content["partitions"]
    )
    fields = {name: content[name] for name in Manifest.__slots__}
    topics = {name: parse_uuid(topic_id) for name, topic_id in content["topics"].items()}
    _check(topics, partitions)
    return Manifest(**{**fields, "topics": topics, "partitions": partitions})


def _check(topics: Mapping[str, Uuid], partitions: Sequence[BackedUpPartition]) -> None:
    """A name becomes one of files, and a folder may be a stranger's: its checksum proves only that it is whole.

    Raises ValueError, TypeError, ApiError."""
    for name in topics:
        validate_topic_name(name)
    for one in partitions:
        if one.topic not in topics:
            raise ValueError(f"{one.topic} has records, and is no topic")
        fits = 0 <= one.index <= _INT32 and -1 <= one.last_epoch <= _INT32 and -1 <= one.max_producer_id <= _INT64
        if not (fits and 0 <= one.start <= one.end <= _INT64 and 0 <= one.size <= _INT64):
            raise ValueError(f"{one.topic}-{one.index} has a number that no partition can have")
    if len({(one.topic, one.index) for one in partitions}) < len(partitions):
        raise ValueError("a partition is named twice")


_PARTITION = BackedUpPartition.__slots__


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

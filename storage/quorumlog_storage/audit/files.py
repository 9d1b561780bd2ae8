"""What the files of a log's directory are, by their names.

The names are parsed here once more, and not by quorumlog_storage/files/names.py: the auditor knows more kinds of files
than the loader opens, those of Kafka and of interrupted work among them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from quorumlog.ids import Offset

LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT)
CACHE_SUFFIXES = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
EPOCHS = "leader-epoch-checkpoint"
TOPIC_ID = "partition.metadata"
INDEX_NOTE = "transaction-index-checkpoint"
PROMOTED = "promotion-checkpoint"  # may stay behind where a move has ended
KNOWN = (EPOCHS, TOPIC_ID, INDEX_NOTE, PROMOTED)
OF_THE_QUORUM = ("quorum-state", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint")

_SEGMENT = re.compile(r"([0-9]{20})(\.(?:log|index|timeindex|txnindex|snapshot))", re.ASCII)
_INTERRUPTED = re.compile(
    r"[0-9]{20}\.(?:log|index|timeindex|txnindex|snapshot)\.(?:deleted|cleaned|swap)"
    r"|.+\.tmp|[0-9]{20}-[0-9]{10}(?:-[0-9A-Za-z_-]+)?\.checkpoint\.(?:part|deleted)",
    re.ASCII,
)
_KEPT = re.compile(
    r"[0-9]{20}\.log\.[0-9]+(?:\.[0-9]+)?\.cut|.+\.corrupt|.+\.checkpoint\.damaged|.+\.unreadable", re.ASCII
)
_METADATA_SNAPSHOT = re.compile(r"(?:[0-9]{20}-[0-9]{10}|bootstrap)\.checkpoint", re.ASCII)


@dataclass(slots=True)
class LogFiles:
    """Names of one directory. by_suffix: base offsets of each kind of segment file, ascending.

    interrupted: what work left that was interrupted. kept: what recovery set aside for people. snapshots: of metadata.
    """

    by_suffix: dict[str, list[Offset]] = field(default_factory=lambda: {suffix: [] for suffix in SEGMENT_SUFFIXES})
    others: list[str] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def classify(names: list[str], is_metadata: bool) -> LogFiles:
    """names: sorted. is_metadata: of the metadata log, which has files of its own."""
    files = LogFiles()
    for name in names:
        found = _SEGMENT.fullmatch(name)
        if found is not None and int(found[1]) < 2**63:
            files.by_suffix[found[2]].append(int(found[1]))
        elif name in KNOWN or (is_metadata and name in OF_THE_QUORUM):
            files.others.append(name)
        elif is_metadata and _METADATA_SNAPSHOT.fullmatch(name):
            files.snapshots.append(name)
        elif _INTERRUPTED.fullmatch(name):
            files.interrupted.append(name)
        elif _KEPT.fullmatch(name):
            files.kept.append(name)
        else:
            files.unknown.append(name)
    return files


def file_name(base_offset: Offset, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"

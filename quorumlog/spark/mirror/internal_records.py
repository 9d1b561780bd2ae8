"""Heartbeats and checkpoints, as KIP-382 has them and its tools read them. Pure.

A checkpoint says where a group is on the target: key (group, topic, partition), value (offset on the source, offset on
the target, metadata). A heartbeat says when the mirror lived: key (source, target), value (time). A text is its length
in two bytes and UTF-8; a value begins with its version, 0.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

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

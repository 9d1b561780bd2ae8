"""Topics that were deleted while a registered broker may still hold directories of them.

A broker may delete a directory only because a committed record removed its topic. A snapshot stands in
place of the records before it, so the image keeps what those records said: from metadata.version 3 on, the id of each
deleted topic, until every registered broker has reported that it holds no directory of it. Then the controller writes
a ForgetDeletedTopicsRecord (quorumlog_quorum/controller/bulk_changes/forget_deleted.py).

At most MAX_DELETED_TOPICS are kept. While that many wait, which takes a broker that is away for long, topics are
deleted as ever and the oldest stay remembered; a later one is not. A broker that was away during its deletion sets its
directories aside instead of deleting them: disk space is lost until somebody looks, data never.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import Offset, Uuid
from quorumlog_quorum.metadata.canonical import entry_hash

MAX_DELETED_TOPICS = 10_000  # some 3 MB of an image, and 0.6 MB of a snapshot with names of 20 characters
REMEMBERED_FROM = 3  # the level of metadata.version


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """offset: of the record that removed it."""

    name: str
    offset: Offset


def deleted_topic_hash(topic_id: Uuid, deleted: DeletedTopic) -> int:
    return entry_hash(("deleted topic", topic_id), (deleted.name, deleted.offset))

"""Which member of a group a consumer is. `Producer.send_offsets` sends it along, so that a member that the group has
replaced cannot commit offsets in a transaction (KIP-447)."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Uuid


class GroupMetadata(NamedTuple):
    """generation_id: with the consumer protocol, the member's epoch. -1 and "": the member is not checked.

    topic_ids: by name, of the topics that the consumer has read. An offset is not committed for a later topic of the
    name; without an id, it is one of the topic that has the name.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topic_ids: tuple[tuple[str, Uuid], ...] = ()

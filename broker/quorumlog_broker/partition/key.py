"""What identifies a partition everywhere in a broker."""

from __future__ import annotations

from quorumlog.ids import Uuid

PartitionKey = tuple[Uuid, int]  # topic id and index; a name may be that of a deleted and recreated topic

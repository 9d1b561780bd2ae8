"""A partition whose leader was elected uncleanly is shown as recovering, in lists of topics and of partitions."""

from __future__ import annotations

import pytest

from quorumlog.messages.cluster import PartitionMetadata
from quorumlog_cli.commands.partitions.partition_view import partition_row, state_of
from quorumlog_cli.commands.topics.topic import _state

SOUND = {"index": 0, "leader_id": 1, "replicas": (1, 2), "isr": (1, 2)}
STATES = [
    ("sound", {}, "ok", "ok"),
    ("thin", {"isr": (1,)}, "under-replicated", "under-replicated"),
    ("uncleanly led", {"isr": (1,), "leader_recovery_state": 1}, "recovering", "recovering"),
    ("nobody leads", {"leader_id": -1, "isr": (), "last_known_elr": (2,)}, "without leader", "without leader"),
]


@pytest.mark.parametrize(("fields", "partition", "topic"), [one[1:] for one in STATES], ids=[one[0] for one in STATES])
def test_state(fields: dict[str, object], partition: str, topic: str) -> None:
    one = PartitionMetadata(**{**SOUND, **fields})  # type: ignore[arg-type]
    assert (state_of(one, None), _state([one])) == (partition, topic)
    known = partition_row("t", one, None, None)["last_known_leader"]
    assert known == (2 if partition == "without leader" else None)

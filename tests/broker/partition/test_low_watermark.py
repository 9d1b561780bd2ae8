"""The low watermark of a leader: which replicas count, and when it is reported."""

from __future__ import annotations

import pytest

from quorumlog.ids import BrokerEpoch, NodeId, Offset
from quorumlog_broker.partition.events import (
    BrokersChanged,
    FollowerFetched,
    LogReady,
    LogStartMoved,
    LowWatermarkMoved,
    MetadataChanged,
)
from quorumlog_broker.partition.partition import Partition

ME, A, B = 1, 2, 3


def leader(alive: tuple[NodeId, ...] = (ME, A, B)) -> Partition:
    """A leader of ten records that all replicas have."""
    core = Partition(ME, min_isr=1, durable=True, lag_time_max_ms=1_000)
    core.step(brokers(*alive), 0)
    core.step(MetadataChanged(leader=ME, leader_epoch=1, partition_epoch=1, replicas=(ME, A, B), isr=(ME, A, B)), 0)
    ready = LogReady(leader_epoch=1, log_start=0, end_offset=10, synced_end=10, epoch_start=10, high_watermark=10)
    core.step(ready, 0)
    return core


def brokers(*alive: NodeId) -> BrokersChanged:
    eligible: dict[NodeId, BrokerEpoch] = {node: node * 10 for node in alive}
    return BrokersChanged(eligible)


def reports(core: Partition, *starts: tuple[NodeId, Offset]) -> list[Offset]:
    """The low watermarks reported while these log starts arrive, of the leader itself or of a follower's fetch."""
    found = []
    for node, start in starts:
        event = LogStartMoved(start) if node == ME else FollowerFetched(node, node * 10, 10, start)
        effects = core.step(event, 0)
        core.check_invariants()
        found += [effect.low_watermark for effect in effects if isinstance(effect, LowWatermarkMoved)]
    return found


CASES: list[tuple[str, list[tuple[NodeId, Offset]], list[Offset], Offset]] = [
    ("the leader alone has moved", [(ME, 5)], [], -1),
    ("one follower has not said", [(ME, 5), (A, 5)], [], -1),
    ("all have", [(ME, 5), (A, 5), (B, 5)], [5], 5),
    ("the slowest counts", [(ME, 5), (A, 5), (B, 3)], [3], 3),
    ("once for each value", [(ME, 5), (A, 5), (B, 5), (A, 5), (B, 5)], [5], 5),
    ("it follows the slowest", [(ME, 9), (A, 4), (B, 3), (B, 6), (A, 9), (B, 9)], [3, 4, 6, 9], 9),
    ("a start that is not said", [(ME, 5), (A, 5), (B, -1)], [], -1),
]


@pytest.mark.parametrize(("starts", "want", "last"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_low_watermark(starts: list[tuple[NodeId, Offset]], want: list[Offset], last: Offset) -> None:
    core = leader()
    assert reports(core, *starts) == want
    assert core.low_watermark == last


def test_a_fenced_follower_does_not_count() -> None:
    core = leader()
    assert reports(core, (ME, 5), (A, 5)) == []
    assert LowWatermarkMoved(5) in core.step(brokers(ME, A), 0)


def test_a_new_leadership_waits_for_new_fetches() -> None:
    core = leader()
    reports(core, (ME, 5), (A, 5), (B, 5))
    core.step(MetadataChanged(leader=ME, leader_epoch=2, partition_epoch=2, replicas=(ME, A, B), isr=(ME, A, B)), 0)
    ready = LogReady(leader_epoch=2, log_start=5, end_offset=10, synced_end=10, epoch_start=10)
    core.step(ready, 0)
    assert core.low_watermark == -1
    assert reports(core, (A, 5), (B, 5)) == [5]

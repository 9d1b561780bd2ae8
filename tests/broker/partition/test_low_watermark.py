"""The low watermark of a leader: which replicas count, and when it is reported."""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId, Offset
from quorumlog_broker.partition.events import (
    BrokersChanged,
    FollowerFetched,
    IsrAnswered,
    LogReady,
    LogStartMoved,
    LowWatermarkMoved,
    MetadataChanged,
    PartitionEffect,
    ProposeIsr,
    Tick,
)
from quorumlog_broker.partition.partition import Partition
from tests.rules import rule

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


def metadata(epoch: int, isr: tuple[NodeId, ...], elr: tuple[NodeId, ...] = ()) -> MetadataChanged:
    return MetadataChanged(leader=ME, leader_epoch=1, partition_epoch=epoch, replicas=(ME, A, B), isr=isr, elr=elr)


def moved(effects: list[PartitionEffect]) -> list[Offset]:
    return [effect.low_watermark for effect in effects if isinstance(effect, LowWatermarkMoved)]


@rule("kraft 9.32")
def test_a_fenced_follower_counts_while_it_may_lead() -> None:
    core = leader()
    assert reports(core, (ME, 5), (A, 5)) == []
    assert moved(core.step(brokers(ME, A), 0)) == [], "it is in the ISR"
    core.step(metadata(2, isr=(ME, A), elr=(B,)), 0)
    assert reports(core, (A, 5)) == [] and core.low_watermark == -1, "it is in the ELR"
    core.step(metadata(3, isr=(ME, A)), 0)
    assert reports(core, (A, 5)) == [5]


def test_what_a_member_has_deleted_before_it_left_is_remembered_while_it_may_lead() -> None:
    core = leader()
    reports(core, (ME, 5), (A, 5), (B, 5))
    core.step(brokers(ME, A), 0)
    core.step(metadata(2, isr=(ME, A), elr=(B,)), 0)
    assert core.low_watermark == 5


@rule("kraft 9.32")
def test_who_has_left_by_an_answer_counts_until_the_metadata_says_that_it_is_not_eligible() -> None:
    core = leader(alive=(ME, A))
    reports(core, (ME, 5))
    (proposal,) = core.step(Tick(), 5_000)
    assert isinstance(proposal, ProposeIsr)
    answer = IsrAnswered(proposal=proposal, error=ErrorCode.NONE, leader_epoch=1, partition_epoch=2, isr=(ME,))
    core.step(answer, 5_000)
    assert reports(core, (A, 5)) == [], "B may be eligible"
    assert moved(core.step(metadata(2, isr=(ME,), elr=(B,)), 5_000)) == []
    core.step(metadata(3, isr=(ME,)), 5_000)
    assert reports(core, (A, 5)) == [5]


@rule("kraft 9.32")
def test_a_follower_joins_the_isr_without_the_records_that_were_deleted() -> None:
    core = leader()
    core.step(metadata(2, isr=(ME,)), 0)
    core.step(LogStartMoved(5), 0)
    assert not any(isinstance(one, ProposeIsr) for one in core.step(FollowerFetched(A, 10 * A, 10, 0), 0))
    assert any(isinstance(one, ProposeIsr) for one in core.step(FollowerFetched(A, 10 * A, 10, 5), 0))


def test_a_new_leadership_waits_for_new_fetches() -> None:
    core = leader()
    reports(core, (ME, 5), (A, 5), (B, 5))
    core.step(MetadataChanged(leader=ME, leader_epoch=2, partition_epoch=2, replicas=(ME, A, B), isr=(ME, A, B)), 0)
    ready = LogReady(leader_epoch=2, log_start=5, end_offset=10, synced_end=10, epoch_start=10)
    core.step(ready, 0)
    assert core.low_watermark == -1
    assert reports(core, (A, 5), (B, 5)) == [5]

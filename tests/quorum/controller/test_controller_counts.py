"""What a controller counts for metrics: elections by kind."""

from __future__ import annotations

from dataclasses import replace

from immutables import Map

from quorumlog.messages.metadata_records import MetadataRecord, NodeList, PartitionChangeRecord
from quorumlog_quorum.controller.engine.controller_counts import PREFERRED, UNCLEAN, USUAL, ControllerCounts
from quorumlog_quorum.metadata.image import EMPTY, TopicImage
from quorumlog_quorum.metadata.registration import RECOVERING, UNASSIGNED, PartitionRegistration
from quorumlog_quorum.node.commit_times import CommitTimes

TOPIC = bytes([9]) * 16


def change(leader: int | None, state: int | None = None) -> MetadataRecord:
    return PartitionChangeRecord(partition=0, topic_id=TOPIC, leader=leader, leader_recovery_state=state)


def test_elections_by_kind() -> None:
    found = PartitionRegistration(replicas=(1, 2), directories=(UNASSIGNED, UNASSIGNED), isr=(1, 2))
    image = replace(EMPTY, topics=Map({TOPIC: TopicImage("t", TOPIC, Map({0: found}))}))
    shrink = PartitionChangeRecord(partition=0, topic_id=TOPIC, isr=NodeList(nodes=(1,)))
    counts = ControllerCounts()
    records = [change(1), change(2), change(2), change(2, RECOVERING), change(1, RECOVERING), change(-1), shrink]
    counts.note(records, image)
    assert counts.elections == {PREFERRED: 1, USUAL: 2, UNCLEAN: 2}


def test_a_commit_is_timed_from_its_append_and_only_while_this_node_leads() -> None:
    times = CommitTimes()
    times.appended(5, 1_000)
    times.appended(9, 1_010)
    times.committed(4, 1_020)
    assert times.histogram.count == 0
    times.committed(9, 1_040)
    assert (times.histogram.count, round(times.histogram.sum, 3)) == (2, 0.07)
    times.appended(12, 2_000)
    times.lost()
    times.committed(12, 9_000)
    assert times.histogram.count == 2

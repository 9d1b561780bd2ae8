"""What differs between two samples, in sentences."""

from __future__ import annotations

import dataclasses

import pytest
from watch_samples import BEGAN_MS, group, sample, topic

from quorumlog.watch.changes import PER_SAMPLE, Change, changes
from quorumlog.watch.past import Past
from quorumlog.watch.sample import BrokerState, Directory, Part, Sample

SERVING, FENCED = BrokerState.SERVING, BrokerState.FENCED


def led(name: str, leader: int) -> object:
    made = topic(name, 1)
    return dataclasses.replace(made, partitions=(dataclasses.replace(made.partitions[0], leader=leader),))


UP, DOWN = topic("t", 1), topic("t", 1, isr=(1, 2))
NEW = topic("t", 1, topic_id=b"x")
CASES = [
    ("nothing", sample(0, topic("t", 1)), sample(5, topic("t", 9)), []),
    ("election", sample(0), sample(5, leader=2, epoch=2), [("election", "quorum", "node 2 leads the quorum, epoch 2")]),
    ("no leader", sample(0), sample(5, leader=-1, epoch=3), [("election", "quorum", "no leader in epoch 3")]),
    ("again", sample(0), sample(5, epoch=4), [("election", "quorum", "node 1 leads the quorum again, epoch 1 to 4")]),
    ("fenced", sample(0, states={1: SERVING}), sample(5, states={1: FENCED}), [("broker", "broker/1", "is fenced")]),
    ("gone", sample(0, states={1: SERVING}), sample(5, states={}), [("broker", "broker/1", "not in the cluster")]),
    ("isr", sample(0, UP), sample(5, DOWN), [("isr", "partition/t-0", "1, 2; before: 1, 2, 3")]),
    ("leader", sample(0, led("t", 1)), sample(5, led("t", 3)), [("leader", "partition/t-0", "broker 3 leads t-0")]),
    ("offline", sample(0, led("t", 1)), sample(5, led("t", -1)), [("leader", "partition/t-0", "t-0 has no leader")]),
    ("new topic", sample(0), sample(5, topic("t", 1)), [("topic", "topic/t", "is there, with 1 partitions")]),
    ("made again", sample(0, UP), sample(5, NEW), [("topic", "topic/t", "made again")]),
    ("partitions", sample(0, UP), sample(5, topic("t", 1, 1)), [("topic", "topic/t", "has 2 partitions; it had 1")]),
    (
        "group", sample(0, groups=(group("g"),)), sample(5, groups=(group("g", state="Empty"),)),
        [("group", "group/g", "group g is Empty; it was Stable")],
    ),
    ("unread", sample(0, topic("t", 1)), sample(5, missing={Part.TOPICS: "refused"}), []),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "want"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_changes(before: Sample, after: Sample, want: list[tuple[str, str, str]]) -> None:
    found = changes(before, after)
    assert [(one.kind, one.subject) for one in found] == [(kind, subject) for kind, subject, _ in want]
    assert all(text in one.text for one, (_, _, text) in zip(found, want, strict=True)), found
    assert all(one.at_ms == BEGAN_MS + 5 for one in found)


def test_a_directory_that_goes_offline_is_a_change_of_its_broker() -> None:
    def of(error: str) -> Sample:
        made = sample(0, states={1: SERVING})
        disk = Directory(path="/d", error=error)
        return dataclasses.replace(made, brokers=(dataclasses.replace(made.brokers[0], directories=(disk,)),))

    (one,) = changes(of(""), of("I/O error"))
    assert one == Change(BEGAN_MS, "disk", "broker/1", "directory /d of broker 1 is offline: I/O error")


def test_many_changes_at_once_end_in_one_sentence_and_the_ring_is_bounded() -> None:
    past = Past(max_changes=150)
    many = [topic(f"t{number}", 1) for number in range(PER_SAMPLE + 50)]
    past.add(sample(0))
    past.add(sample(5, *many))
    assert [one.kind for one in past.changes] == ["topic"] * PER_SAMPLE + ["more"]
    past.add(sample(10))
    assert len(past.changes) == 150
    assert past.changes[-1].kind == "more"

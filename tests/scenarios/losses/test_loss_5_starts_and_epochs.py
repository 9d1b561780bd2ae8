"""Loss 5: what lies below a log's start. Epochs that are gone come back; a start past the leader's end is for ever."""

from __future__ import annotations

import pytest

from storage.fetch_rule import Diverging, OutOfRange, fetch_answer, truncation_point
from tests.scenarios.losses.cluster_world import NotPrepared, files_of, world
from tests.scenarios.losses.partition_on_disk import Partition, batch, new_disk

LEADER, FOLLOWER, OTHER = 11, 12, 13


def with_a_start_after_two_epochs() -> Partition:
    """Ten batches of three epochs; all but the last segment, which is of the third epoch, deleted; then killed."""
    partition = Partition(new_disk(), segment_bytes=260)
    for offset in range(10):
        partition.append(batch(offset, [b"x" * 20], epoch=1 + offset // 4))
    partition.delete_before(9)
    partition.kill()
    partition.open()
    assert (partition.start, partition.end) == (9, 10)
    return partition


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a log that opens at its start leaves the epochs of its checkpoint below that start as they are",
)
def test_no_epoch_begins_below_the_start_after_a_crash() -> None:
    partition = with_a_start_after_two_epochs()
    assert [tuple(entry) for entry in partition.epochs.entries] == [(3, 9)]


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="the leader answers from epochs that ended below its start: the follower's log is never cut by that",
)
def test_a_follower_with_an_older_epoch_is_not_told_the_same_divergence_for_ever() -> None:
    leader = with_a_start_after_two_epochs()
    follower = Partition(new_disk(), segment_bytes=260)
    for offset in range(9):  # of the first epoch alone: it was elected no more
        follower.append(batch(offset, [b"y" * 20], epoch=1))
    follower.delete_before(8)
    answers = []
    for _ in range(5):
        last = follower.epochs.epoch_for(follower.end - 1) if follower.end > follower.start else -1
        answer = fetch_answer(
            log_start=leader.start, log_end=leader.end, epochs=leader.epochs,
            fetch_offset=follower.end, last_fetched_epoch=-1 if last is None else last,
        )  # fmt: skip
        answers.append(answer)
        if not isinstance(answer, Diverging):
            break
        follower.truncate(max(follower.start, truncation_point(follower.epochs, follower.end, answer)))
    assert not isinstance(answers[-1], Diverging), answers
    assert isinstance(answers[-1], OutOfRange)


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a follower that begins past its leader's end asks for ever; it should set its log aside and copy anew",
)
def test_a_follower_that_begins_past_the_leader_s_end_comes_back_into_sync() -> None:
    with world() as w:
        w.create("t", [LEADER, FOLLOWER, OTHER])
        w.produce("t", [f"old {n}" for n in range(30)])
        w.delete_records("t", 25)
        w.run_for(1)
        follower = w.cluster.machines["b2"]
        others = [w.cluster.machines["b1"], w.cluster.machines["b3"]]
        follower.kill()
        for machine in others:  # their disks are replaced by empty ones of the same id
            machine.kill()
            machine.disk.remove_tree("/data/d0/t-0")
            for path in files_of(machine):
                if path.endswith("-checkpoint") and path.count("/") == 3:
                    machine.disk.unlink(path)
            machine.disk.sync_directory("/data/d0")
            machine.start()
        w.prepare(lambda: all(w.is_ready(machine) for machine in others), "the others are back")
        w.prepare(lambda: w.partition("t").leader in (LEADER, OTHER), "one of the others leads")
        w.prepare(lambda: len(w.partition("t").isr) == 2, "the others are in sync")
        acknowledged = w.produce("t", [f"new {n}" for n in range(5)])
        if min(acknowledged) >= 25:
            raise NotPrepared(f"the leader goes on at {min(acknowledged)}")
        follower.start()
        assert w.comes_true(w.cluster.is_healthy), w.cluster.ailments()
        assert w.read("t") == acknowledged

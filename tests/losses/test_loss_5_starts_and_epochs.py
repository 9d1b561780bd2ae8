"""Loss 5: what lies below a log's start. Epochs that are gone come back; a start past the leader's end is for ever."""

from __future__ import annotations

from quorumlog_storage.rules.fetch_rule import Diverging, FetchAnswer, Records, fetch_answer, truncation_point
from tests.losses.cluster_world import NotPrepared, files_of, world
from tests.losses.partition_on_disk import Partition, batch, new_disk
from tests.losses.promises import promised
from tests.rules import rule

LEADER, FOLLOWER, OTHER = 11, 12, 13
START = 8
THREE_EPOCHS = [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]


def cut_at_the_front(epochs: list[int]) -> Partition:
    """Ten batches of these epochs, two in a segment; the first eight are deleted, and the process is killed."""
    partition = Partition(new_disk(), segment_bytes=256)
    for offset, epoch in enumerate(epochs):
        partition.append(batch(offset, [b"x" * 20], epoch=epoch))
    partition.delete_before(START)
    partition.kill()
    partition.open()
    assert (partition.start, partition.end) == (START, len(epochs))
    return partition


def test_no_epoch_begins_below_the_start_after_a_crash() -> None:
    partition = cut_at_the_front(THREE_EPOCHS)
    with promised():
        assert [tuple(entry) for entry in partition.epochs.entries] == [(3, START)]


def test_a_follower_that_was_cut_at_the_front_too_finds_where_the_logs_parted() -> None:
    leader, follower = cut_at_the_front(THREE_EPOCHS), cut_at_the_front([1] * 10)
    answers: list[FetchAnswer] = []
    for _ in range(5):
        answer = fetch_answer(
            log_start=leader.start, log_end=leader.end, epochs=leader.epochs,
            fetch_offset=follower.end, last_fetched_epoch=follower.epochs.last_epoch,
        )  # fmt: skip
        answers.append(answer)
        if not isinstance(answer, Diverging):
            break
        follower.truncate(max(follower.start, truncation_point(follower.epochs, follower.end, answer)))
    with promised():
        assert answers[-1] == Records(), answers
        assert follower.end == START


@rule("storage 6.5")
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
        in_sync = w.comes_true(w.cluster.is_healthy)
        found = w.read("t")
    with promised():
        assert in_sync, "the follower stays out of the ISR"
        assert found == acknowledged

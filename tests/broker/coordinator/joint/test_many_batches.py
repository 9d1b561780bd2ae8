"""A stream of many batches leaves what one of them needs: ids, and keys of the log, do not grow; nor do idle days."""

from __future__ import annotations

import pytest

from quorumlog.settings.transactions import DAY_MS
from quorumlog_broker.coordinator.turn import Write
from tests.broker.coordinator.joint.joint_world import Child, JointWorld
from tests.broker.coordinator.transaction_world import A, B

TASKS, RETRY_EVERY, RESTART_EVERY = 2, 7, 500  # in each so-manieth batch
SLOTS = TASKS + 1  # open at once: the tasks, and one that is run again
LOOKS_EVERY = 1_000
IDLE_DAYS = 8
EPOCHS = 2**15 - 1  # of a producer id


class LongWorld(JointWorld):
    """Its log is as a cleaner leaves it: the last record of each key, so that memory is bounded."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[bytes, tuple[int, Write]] = {}
        self._cleaned = 0

    def clean(self) -> None:
        for offset in range(self._cleaned, len(self.log)):
            write = self.log[offset]
            self.kept[bytes(write.key)] = (offset, write)
        self._cleaned = len(self.log)
        self.log = [self.log[-1]] * len(self.log)
        self.answers.clear()

    def load(self) -> None:
        """Another coordinator, from what the cleaner has left."""
        self.clean()
        self.coordinator_epoch += 1
        self.shard = self._new_shard()
        for offset, write in sorted(self.kept.values(), key=lambda one: one[0]):
            self.shard.replay_bytes(offset, write.key, write.value)
        self.shard.loaded(len(self.log))
        self.settle()

    def task(self, sequence: int, token: bytes, run: str) -> Child:
        child = self.opened(sequence, token, run=run)
        self.add(child.producer, A, B, transactional_id=child.transactional_id)
        return child

    def batch(self, sequence: int, run: str) -> None:
        children = [self.task(sequence, b"%d-%d" % (sequence, task), run) for task in range(TASKS)]
        if sequence % RETRY_EVERY == 0:  # an attempt that failed, or came late: nobody names it
            self.task(sequence, b"%d-again" % sequence, run)
        self.decide(sequence, *children, run=run)
        self.pass_ms(100)


@pytest.mark.timeout(1_800)  # 100,000 take some minutes of a processor
@pytest.mark.parametrize("batches", [1_500, 100_000])
def test_many_batches_leave_no_more(batches: int) -> None:
    """After so many, there are as many ids as slots. After 8 idle days the next one is decided."""
    world = LongWorld()
    producers = set()
    for sequence in range(batches):
        world.batch(sequence, f"run-{sequence // RESTART_EVERY}")
        if sequence % LOOKS_EVERY == LOOKS_EVERY - 1:
            producers |= {one.producer_id for one in world.list_all()}
            assert len(world.listed()) == SLOTS, f"after {sequence + 1} batches"
            world.clean()
    assert len(producers) <= SLOTS * (1 + 2 * batches // EPOCHS), "a new one where the epochs of one are used up"
    world.load()
    assert len(world.listed()) == SLOTS and world.last() == batches - 1
    assert len(world.kept) == SLOTS + 1, "keys of the log: the ids, and the group"
    world.pass_ms(IDLE_DAYS * DAY_MS)
    world.step(world.shard.expire)
    assert world.listed() == [] and world.last() == batches - 1
    world.load()
    world.batch(batches, "run-last")
    assert world.last() == batches and len(world.listed()) <= SLOTS

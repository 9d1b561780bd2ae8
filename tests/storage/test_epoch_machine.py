"""Leader epochs of a leader and its followers against a list of (offset, epoch): the tables of KIP-101 and KIP-279.

The list has an epoch for each offset. Whatever is assigned, cut from either side, written and read again, the cache
tells of every epoch and every offset what the list tells.

Where two logs parted, the follower asks where its last epoch ended in the leader's log, cuts, and asks again with the
largest epoch that both know (KIP-279). Then the logs are alike, and nothing is gone that both had.
"""

from __future__ import annotations

from itertools import groupby

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog_storage.rules.epochs import EpochEnd, EpochStart, LeaderEpochCache
from tests import rules
from tests.parts import few

REPLICAS = 2


class Replica:
    """A log as the list says it. epochs: of the offsets from `start` on. begun: an epoch at the end without records."""

    def __init__(self) -> None:
        self.start: Offset = 0
        self.epochs: list[Epoch] = []
        self.begun: Epoch = NO_EPOCH
        self.cache = LeaderEpochCache()

    @property
    def end(self) -> Offset:
        return self.start + len(self.epochs)

    def starts(self) -> list[EpochStart]:
        at, found = self.start, []
        for epoch, group in groupby(self.epochs):
            found.append(EpochStart(epoch, at))
            at += len(list(group))
        return [*found, *([EpochStart(self.begun, self.end)] if self.begun != NO_EPOCH else [])]

    def answer(self, epoch: Epoch) -> EpochEnd | None:
        """The table of `OffsetsForLeaderEpoch`, by looking at every entry."""
        starts = self.starts()
        if epoch < 0 or not starts or epoch > starts[-1].epoch:
            return None
        later = [one.start_offset for one in starts if one.epoch > epoch]
        floor = [one.epoch for one in starts if one.epoch <= epoch]
        return EpochEnd(floor[-1] if floor else epoch, later[0] if later else self.end)

    def append(self, epoch: Epoch, count: int) -> None:
        """`count` records, of a leader or copied from one."""
        self.cache.assign(epoch, self.end)
        self.epochs += [epoch] * count
        self.begun = NO_EPOCH

    def truncate(self, offset: Offset) -> None:
        self.cache.truncate_from_end(offset)
        if offset < self.end or (self.begun != NO_EPOCH and offset <= self.end):
            self.begun = NO_EPOCH
        del self.epochs[max(0, offset - self.start) :]


@rules.rule("log 1.1", "log 1.6", "log 1.7", "log 1.14")
class EpochsAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.replicas = [Replica() for _ in range(REPLICAS)]
        self.epoch: Epoch = 0
        self.leader = 0

    @property
    def _leader(self) -> Replica:
        return self.replicas[self.leader]

    @property
    def _follower(self) -> Replica:
        return self.replicas[1 - self.leader]

    # --- what happens to logs ---

    @rule(leader=st.integers(0, REPLICAS - 1), step=st.integers(1, 3))
    def elect(self, leader: int, step: int) -> None:
        """Any replica, whatever it has. The one that led forgets an epoch in which it wrote nothing."""
        self.replicas[1 - leader].truncate(self.replicas[1 - leader].end)
        self.leader, self.epoch = leader, self.epoch + step
        log = self._leader
        log.cache.assign(self.epoch, log.end)
        log.begun = self.epoch

    @rule(count=st.integers(1, 4))
    def write(self, count: int) -> None:
        if self.epoch:
            self._leader.append(self.epoch, count)

    @rule(count=st.integers(1, 6))
    def reconcile_and_copy(self, count: int) -> None:
        """The follower asks by its last epoch until it knows where to cut, then copies records as the leader has them.

        Neither log may start behind the other's end: then nothing is compared, and the follower begins anew.
        """
        leader, follower = self._leader, self._follower
        if follower.end < leader.start or leader.end < follower.start:
            follower.start, follower.epochs, follower.begun = leader.start, [], NO_EPOCH
            follower.cache = LeaderEpochCache()
        else:
            self._reconcile(leader, follower)
        for offset in range(follower.end, min(leader.end, follower.end + count)):
            follower.append(leader.epochs[offset - leader.start], 1)

    def _reconcile(self, leader: Replica, follower: Replica) -> None:
        parts = self._parting(leader, follower)
        for _ in range(100):
            asked = follower.cache.last_epoch
            answer = leader.cache.end_offset_for(asked, leader.end)
            if answer is None:
                assert asked == NO_EPOCH or asked > leader.cache.last_epoch
                follower.truncate(max(follower.start, leader.start) if asked != NO_EPOCH else follower.end)
                break
            own = follower.cache.end_offset_for(answer.epoch, follower.end)
            own_end = follower.start if own is None or own.epoch != answer.epoch else own.end_offset
            known = own is not None and own.epoch == answer.epoch
            if known or answer.epoch == asked:
                follower.truncate(min(answer.end_offset, own_end if known else answer.end_offset, follower.end))
                break
            cut = min(answer.end_offset, own.end_offset if own else follower.start, follower.end)
            assert cut >= min(parts, follower.end), "records that both have would go"
            follower.truncate(max(cut, follower.start))
        else:
            raise AssertionError("the questions do not end")
        assert self._parting(leader, follower) == follower.end or follower.end <= leader.start, "the logs differ"

    def _parting(self, leader: Replica, follower: Replica) -> Offset:
        """The first offset that both might have and do not have alike."""
        begin, end = max(leader.start, follower.start), min(leader.end, follower.end)
        for offset in range(begin, end):
            if leader.epochs[offset - leader.start] != follower.epochs[offset - follower.start]:
                return offset
        return max(begin, end)

    @rule(replica=st.integers(0, REPLICAS - 1), data=st.data())
    def delete_records(self, replica: int, data: st.DataObject) -> None:
        log = self.replicas[replica]
        offset = data.draw(st.integers(-1, log.end))
        log.cache.truncate_from_start(offset)
        if offset > log.start:
            del log.epochs[: offset - log.start]
            log.start = offset

    @rule(replica=st.integers(0, REPLICAS - 1), data=st.data())
    def lose_the_tail(self, replica: int, data: st.DataObject) -> None:
        log = self.replicas[replica]
        log.truncate(data.draw(st.integers(log.start, log.end)))

    @rule(replica=st.integers(0, REPLICAS - 1))
    def restart(self, replica: int) -> None:
        log = self.replicas[replica]
        log.cache = LeaderEpochCache.parse("f", log.cache.render())

    @rule(replica=st.integers(0, REPLICAS - 1), data=st.data())
    def assign_what_is_known(self, replica: int, data: st.DataObject) -> None:
        """An epoch keeps its first start; a recovery notes every batch again."""
        log = self.replicas[replica]
        if log.epochs and log.begun == NO_EPOCH:
            offset = data.draw(st.integers(log.start, log.end - 1))
            if log.epochs[offset - log.start] == log.epochs[-1]:
                assert not log.cache.assign(log.epochs[-1], offset)

    # --- always ---

    @invariant()
    def the_cache_tells_what_the_list_tells(self) -> None:
        for log in self.replicas:
            told = [one for one in log.cache.entries if one.start_offset < log.end or one.epoch == log.begun]
            assert told[-len(log.starts()) :] == log.starts() or not log.starts()
            assert [one.epoch for one in told] == [one.epoch for one in log.starts()] or not log.epochs
            for offset in range(log.start, log.end):
                assert log.cache.epoch_for(offset) == log.epochs[offset - log.start]
            for epoch in range(-1, self.epoch + 2) if log.epochs else ():
                assert log.cache.end_offset_for(epoch, log.end) == log.answer(epoch), epoch


TestEpochsAgainstList = EpochsAgainstList.TestCase
TestEpochsAgainstList.settings = settings(max_examples=few(150), stateful_step_count=25, deadline=None)

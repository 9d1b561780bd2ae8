"""In a session a follower names what moved; its leader must conclude what it would if every fetch named everything.

Two leaders of the same partitions see the same events. For one, every fetch of the follower names every partition; the
other learns from the session of the partitions that are not named. They agree in ISR, high watermark and times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from quorumlog_broker.fetch.cached_partition import NO_FETCH_MS
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.fetch.targets import FetchTarget
from quorumlog_broker.partition.events import (
    BrokersChanged,
    FollowerFetched,
    IsrAnswered,
    LogAdvanced,
    LogReady,
    LogStartMoved,
    MetadataChanged,
    PartitionEvent,
    ProposeIsr,
    Tick,
    UnnamedFetch,
)
from quorumlog_broker.partition.follower_progress import FollowerProgress
from quorumlog_broker.partition.isr_state import Committed
from quorumlog_broker.partition.partition import Partition
from tests.parts import few

ME, A = 1, 2
LAG_MS = 100
TOPIC = b"t" * 16
INDEXES = (0, 1, 2)
FOLLOWER = ReplicaState(replica_id=A, broker_epoch=20)
QUIET = (FollowerFetched, UnnamedFetch, Tick)


def test_an_older_time_of_a_fetch_changes_nothing() -> None:
    progress = FollowerProgress()
    progress.fetched_unnamed(5)
    progress.fetched_unnamed(3)
    assert (progress.last_fetch_ms, progress.last_caught_up_ms) == (5, 5)


@dataclass
class Leader:
    """The partitions of a leader, each with its proposal that was not answered yet."""

    sessions: FetchSessions | None
    cores: list[Partition] = field(default_factory=list)
    proposals: dict[int, ProposeIsr] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=lambda: dict.fromkeys(INDEXES, 7))

    def __post_init__(self) -> None:
        self.cores = [Partition(ME, min_isr=1, durable=False, lag_time_max_ms=LAG_MS) for _ in INDEXES]
        for index in INDEXES:
            self.step(index, BrokersChanged({ME: 10, A: 20}), 0)
            self.metadata(index, (ME, A), 0)
            self.step(index, LogReady(leader_epoch=5, log_start=0, end_offset=0, synced_end=0, epoch_start=0), 0)

    def step(self, index: int, event: PartitionEvent, now_ms: int) -> None:
        effects = self.cores[index].step(event, now_ms)
        self.cores[index].check_invariants()
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self.proposals[index] = effect
        if self.sessions is not None and (effects or not isinstance(event, QUIET)):
            self.sessions.changed((TOPIC, index))

    def metadata(self, index: int, isr: tuple[int, ...], now_ms: int) -> None:
        self.epochs[index] += 1
        event = MetadataChanged(
            leader=ME, leader_epoch=5, partition_epoch=self.epochs[index], replicas=(ME, A), isr=isr
        )
        self.proposals.pop(index, None)
        self.step(index, event, now_ms)

    def answer(self, index: int, error: ErrorCode, now_ms: int) -> None:
        proposal = self.proposals.pop(index, None)
        if proposal is None:
            return
        if error is ErrorCode.NONE:
            self.epochs[index] += 1
        isr = tuple(node for node, _ in proposal.members)
        self.step(
            index,
            IsrAnswered(proposal=proposal, error=error, leader_epoch=5, partition_epoch=self.epochs[index], isr=isr),
            now_ms,
        )

    def view(self) -> list[object]:
        return [(core.isr_state, core.high_watermark, core.followers[A].end_offset) for core in self.cores]


class World:
    """The follower, and both leaders."""

    def __init__(self) -> None:
        self.now_ms = 1
        self.sessions = FetchSessions(Random(1))
        self.plain, self.sparing = Leader(None), Leader(self.sessions)
        self.offsets = dict.fromkeys(INDEXES, 0)  # where the follower is
        self.named: dict[int, int] = {}  # what its requests named last
        self.id, self.epoch = 0, 0
        self.context: FetchContext | None = None

    def step(self, what: str, index: int) -> None:
        match what:
            case "append":
                end = self.plain.cores[index].end_offset + 1
                self.both(index, LogAdvanced(end, end))
            case "delete":
                self.both(index, LogStartMoved(self.plain.cores[index].high_watermark))
            case "copy":
                self.offsets[index] = self.plain.cores[index].end_offset
            case "wait":
                self.now_ms += (index + 1) * 20
            case "fence":
                self.all(BrokersChanged({ME: 10}))
            case "unfence":
                self.all(BrokersChanged({ME: 10, A: 20}))
            case "remove":
                for leader in (self.plain, self.sparing):
                    leader.metadata(index, (ME,), self.now_ms)
            case "grant":
                self.answer(index, ErrorCode.NONE)
            case "revert":
                self.answer(index, ErrorCode.INELIGIBLE_REPLICA)
            case "arrive":
                self.answer_fetch()
                self.arrive()
            case "leave":
                self.answer_fetch()
            case "lose":
                self.context, self.epoch = None, 0
            case "tick":
                self.tick()

    def both(self, index: int, event: PartitionEvent) -> None:
        for leader in (self.plain, self.sparing):
            leader.step(index, event, self.now_ms)

    def all(self, event: PartitionEvent) -> None:
        for index in INDEXES:
            self.both(index, event)

    def answer(self, index: int, error: ErrorCode) -> None:
        for leader in (self.plain, self.sparing):
            leader.answer(index, error, self.now_ms)

    # --- a fetch: its acknowledgements, and later its response ---

    def arrive(self) -> None:
        named = [index for index in INDEXES if self.epoch == 0 or self.named.get(index) != self.offsets[index]]
        partitions = tuple(
            FetchPartition(index=index, fetch_offset=self.offsets[index], max_bytes=1, current_leader_epoch=5)
            for index in named
        )
        self.context = self.sessions.begin(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=1,
                topics=(FetchTopic(topic_id=TOPIC, partitions=partitions),) if partitions else (),
                replica=FOLLOWER,
                session_id=self.id,
                session_epoch=self.epoch,
            ),
            self.now_ms,
        )
        self.named = dict(self.offsets)
        self.acknowledge(self.context.targets)
        for index in INDEXES:
            self.plain.step(index, FollowerFetched(A, 20, self.offsets[index]), self.now_ms)
        assert self.plain.view() == self.sparing.view()

    def acknowledge(self, targets: Sequence[FetchTarget]) -> None:
        """As `FetchPath._acknowledge` does it."""
        assert self.context is not None
        session = self.context.previous_session
        for _, partition in targets:
            unnamed_ms = NO_FETCH_MS if session is None else session.take_unnamed_fetch_ms((TOPIC, partition.index))
            if unnamed_ms != NO_FETCH_MS:
                self.sparing.step(partition.index, UnnamedFetch(A, 20, unnamed_ms), self.now_ms)
            assert partition.fetch_offset == self.offsets[partition.index], "acknowledged what it has"
            self.sparing.step(partition.index, FollowerFetched(A, 20, partition.fetch_offset), self.now_ms)

    def answer_fetch(self) -> None:
        if self.context is None:
            return
        context, self.context = self.context, None
        if context.incremental is not None:
            context.incremental.read_changed()
        cores = self.sparing.cores
        answers = [
            FetchPartitionResponse(
                index=wanted.index,
                high_watermark=cores[wanted.index].high_watermark,
                log_start_offset=cores[wanted.index].log_start,
            )
            for _, wanted in context.targets
        ]
        has_more = [wanted.fetch_offset < cores[wanted.index].end_offset for _, wanted in context.targets]
        self.id, _ = self.sessions.end(context, answers, has_more, self.now_ms)
        self.sessions.check_invariants()
        self.epoch += 1

    def tick(self) -> None:
        for (_, index), _, follower, at_ms in list(self.sessions.unnamed_fetches()):
            event = UnnamedFetch(follower.replica_id, follower.broker_epoch, at_ms)
            self.sparing.step(index, event, self.now_ms)
        plain, sparing = (
            [core.followers[A].last_caught_up_ms for core in one.cores] for one in (self.plain, self.sparing)
        )
        assert plain == sparing
        self.all(Tick())
        assert self.plain.view() == self.sparing.view()


STEPS = ["append", "delete", "copy", "wait", "fence", "unfence", "remove", "grant", "revert", "arrive", "leave", "lose"]
SCRIPTS = st.lists(st.tuples(st.sampled_from([*STEPS, "tick"]), st.sampled_from(INDEXES)), max_size=60)


@settings(max_examples=few(300))
@given(SCRIPTS)
@example([("arrive", 0), ("arrive", 0), ("wait", 0), ("arrive", 0), ("lose", 0), ("append", 0)])  # a new session begins
def test_a_leader_concludes_the_same_whether_partitions_are_named_or_not(script: list[tuple[str, int]]) -> None:
    world = World()
    for what, index in script:
        world.step(what, index)
    world.step("arrive", 0)
    world.step("tick", 0)


def caught_up() -> World:
    world = World()
    for what in ("arrive", "leave", "arrive", "leave"):
        world.step(what, 0)
    return world


def test_a_follower_stays_in_the_isr_of_a_partition_that_was_silent_for_long() -> None:
    world = caught_up()
    for _ in range(20):
        for what in ("wait", "arrive", "leave"):
            world.step(what, 2)
    world.step("append", 1)
    world.step("tick", 0)
    assert world.sparing.proposals == {}


def test_a_follower_that_falls_silent_leaves_the_isr() -> None:
    world = caught_up()
    world.step("append", 1)
    world.step("wait", 2)
    world.step("wait", 2)
    world.step("tick", 0)
    assert list(world.sparing.proposals) == [1]


@pytest.mark.parametrize("while_waiting", [False, True])
def test_a_fetch_that_names_nothing_lets_a_follower_join_again(while_waiting: bool) -> None:
    """The metadata has removed the follower, and its position is forgotten; the partition is never written to."""
    world = caught_up()
    if while_waiting:
        world.step("arrive", 0)
    world.step("remove", 1)
    world.step("append", 2)  # wakes the waiting fetch
    for what in ("arrive", "grant", "leave"):
        world.step(what, 1)
    assert world.sparing.cores[1].isr_state == Committed((ME, A))


def test_a_fetch_before_the_metadata_removed_a_follower_does_not_count() -> None:
    world = caught_up()
    world.step("remove", 1)
    world.step("tick", 0)
    assert world.sparing.cores[1].followers[A] == FollowerProgress()

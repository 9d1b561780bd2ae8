"""The partition core by scenario, many of them those of Kafka's `PartitionTest`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ErrorCode
from quorumlog_broker.partition.events import (
    BrokersChanged,
    Follow,
    FollowerFetched,
    HighWatermarkMoved,
    IsrAnswered,
    LeaderHighWatermark,
    LeadershipLost,
    LogAdvanced,
    LogFailed,
    LogReady,
    LogRecovered,
    LogTruncated,
    MetadataChanged,
    PartitionEffect,
    PartitionEvent,
    ProposeIsr,
    SettingsChanged,
    TakeLeadership,
    Tick,
    WentOffline,
)
from quorumlog_broker.partition.isr_state import Committed, PendingExpand, PendingShrink
from quorumlog_broker.partition.partition import Partition, Role
from tests.parts import few
from tests.rules import rule

ME, A, B = 1, 2, 3
LAG_MS = 1_000


class Driver:
    """Steps a partition, checks its invariants after each event, and remembers the last proposal."""

    def __init__(self, *, min_isr: int = 1, durable: bool = False) -> None:
        self.core = Partition(ME, min_isr=min_isr, durable=durable, lag_time_max_ms=LAG_MS)
        self.now_ms = 0
        self.proposal: ProposeIsr | None = None
        self.step(BrokersChanged({ME: 10, A: 20, B: 30}))

    def step(self, event: PartitionEvent) -> list[PartitionEffect]:
        effects = self.core.step(event, self.now_ms)
        self.core.check_invariants()
        for effect in effects:
            if isinstance(effect, ProposeIsr):
                self.proposal = effect
        return effects

    def metadata(
        self, leader: int = ME, epoch: int = 5, version: int = 7, isr: tuple[int, ...] = (ME,)
    ) -> list[PartitionEffect]:
        return self.step(
            MetadataChanged(leader=leader, leader_epoch=epoch, partition_epoch=version, replicas=(ME, A, B), isr=isr)
        )

    def ready(
        self, epoch: int = 5, end: int = 0, synced: int | None = None, high_watermark: int = 0
    ) -> list[PartitionEffect]:
        return self.step(
            LogReady(
                leader_epoch=epoch,
                log_start=0,
                end_offset=end,
                synced_end=end if synced is None else synced,
                epoch_start=end,
                high_watermark=high_watermark,
            )
        )

    def lead(self, isr: tuple[int, ...] = (ME,), end: int = 0, high_watermark: int = 0) -> None:
        self.metadata(isr=isr)
        self.ready(end=end, high_watermark=high_watermark)

    def append(self, end: int, synced: int | None = None) -> list[PartitionEffect]:
        return self.step(LogAdvanced(end, end if synced is None else synced))

    def fetch(self, replica: int, offset: int, broker_epoch: int | None = None) -> list[PartitionEffect]:
        return self.step(FollowerFetched(replica, replica * 10 if broker_epoch is None else broker_epoch, offset))

    def answer(self, error: ErrorCode, isr: tuple[int, ...] = (), version: int = 8) -> list[PartitionEffect]:
        assert self.proposal is not None
        return self.step(
            IsrAnswered(proposal=self.proposal, error=error, leader_epoch=5, partition_epoch=version, isr=isr)
        )


@rule("log 1.13")
def test_leadership_is_taken_by_assigning_the_epoch_before_anything_is_served() -> None:
    driver = Driver()
    assert driver.metadata() == [TakeLeadership(5)]
    before = driver.core.is_leader
    driver.ready(end=40)
    assert (before, driver.core.is_leader, driver.core.epoch_start) == (False, True, 40)


def test_metadata_of_the_same_epoch_keeps_the_epoch_start_and_what_followers_in_sync_have_done() -> None:
    driver = Driver()
    driver.lead(isr=(ME, A), end=3)
    driver.append(9)
    driver.fetch(A, 9)
    assert driver.metadata(version=8, isr=(ME, A)) == []
    assert driver.core.is_leader and driver.core.epoch_start == 3
    assert driver.core.followers[A].end_offset == 9


def test_a_new_epoch_forgets_what_followers_have_done() -> None:
    driver = Driver()
    driver.lead(isr=(ME, A), end=3)
    driver.fetch(A, 3)
    driver.metadata(epoch=6, version=8, isr=(ME, A))
    driver.ready(epoch=6, end=3)
    assert driver.core.followers[A].end_offset == -1


JOINS = [  # log end at election, high watermark, fetch offset -> may join
    ("below the high watermark", 5, 8, 4, False),
    ("at the high watermark, below the epoch's start", 10, 6, 8, False),
    ("at the epoch's start and the high watermark", 10, 10, 10, True),
]


@pytest.mark.parametrize(
    ("end", "high_watermark", "offset", "joins"), [c[1:] for c in JOINS], ids=[c[0] for c in JOINS]
)
def test_a_follower_joins_only_past_high_watermark_and_epoch_start(
    end: int, high_watermark: int, offset: int, joins: bool
) -> None:
    driver = Driver()
    driver.lead(isr=(ME, B), end=end, high_watermark=high_watermark)
    if high_watermark > end:
        driver.append(high_watermark)
        driver.fetch(B, high_watermark)
    driver.fetch(A, offset)
    assert isinstance(driver.core.isr_state, PendingExpand) == joins


def test_a_pending_member_counts_before_it_is_granted() -> None:
    driver = Driver()
    driver.lead()
    driver.fetch(A, 0)
    assert driver.core.isr_state == PendingExpand((ME,), A)
    assert driver.append(5) == []
    assert driver.fetch(A, 5) == [HighWatermarkMoved(5)]


def test_a_refused_member_counts_no_more() -> None:
    driver = Driver()
    driver.lead()
    driver.fetch(A, 0)
    driver.step(BrokersChanged({ME: 10, B: 30}))
    assert driver.append(5) == []
    assert driver.answer(ErrorCode.INELIGIBLE_REPLICA) == [HighWatermarkMoved(5)]
    assert driver.core.isr_state == Committed((ME,))


def test_a_member_asked_to_leave_counts_until_it_is_granted() -> None:
    driver = Driver()
    driver.lead(isr=(ME, A))
    driver.append(5)
    driver.now_ms = LAG_MS + 1
    assert [type(effect) for effect in driver.step(Tick())] == [ProposeIsr]
    assert driver.core.isr_state == PendingShrink((ME, A), (A,))
    assert driver.append(6) == []
    assert driver.answer(ErrorCode.NONE, isr=(ME,)) == [HighWatermarkMoved(6)]


def test_the_high_watermark_is_held_below_the_minimum() -> None:
    driver = Driver(min_isr=2)
    driver.lead()
    assert driver.append(5) == []
    driver.fetch(A, 5)
    assert driver.core.high_watermark == 0  # asked for, not granted
    assert driver.answer(ErrorCode.NONE, isr=(ME, A)) == [HighWatermarkMoved(5)]


def test_a_minimum_above_the_replica_count_means_all_of_them() -> None:
    driver = Driver(min_isr=7)
    driver.lead(isr=(ME, A, B))
    driver.append(1)
    driver.fetch(A, 1)
    assert driver.fetch(B, 1) == [HighWatermarkMoved(1)]


@pytest.mark.parametrize("eligible", [{ME: 10}, {ME: 10, A: 21}], ids=["fenced or shutting down", "newer process"])
def test_a_follower_that_may_not_join_is_not_proposed(eligible: dict[int, int]) -> None:
    driver = Driver()
    driver.lead()
    driver.step(BrokersChanged(eligible))
    driver.append(5)
    assert driver.fetch(A, 5) == []
    assert driver.core.isr_state == Committed((ME,))


def test_a_fetch_of_a_replaced_process_changes_nothing() -> None:
    driver = Driver()
    driver.lead(isr=(ME, A))
    driver.append(5)
    assert driver.fetch(A, 5, broker_epoch=19) == []
    assert driver.core.followers[A].end_offset == -1


def test_a_fetch_of_a_process_newer_than_the_metadata_counts_but_does_not_join() -> None:
    driver = Driver()
    driver.lead()
    driver.fetch(A, 0, broker_epoch=25)
    assert driver.core.followers[A].end_offset == 0
    assert driver.core.isr_state == Committed((ME,))
    driver.step(BrokersChanged({ME: 10, A: 25}))
    assert [type(effect) for effect in driver.fetch(A, 0, broker_epoch=25)] == [ProposeIsr]


STAYS = [  # fetches as (time, leader end before it, offset), then a tick at LAG_MS + 300: leaves?
    ("never fetched", [], True),
    ("at the end, then silence but nothing new", [(200, 0, 0)], False),
    (
        "busy: each fetch reaches the end as it was at the fetch before",
        [(200, 10, 0), (700, 20, 10), (1200, 30, 20)],
        False,
    ),
    ("stuck: fetches again and again, never further", [(200, 10, 0), (700, 20, 0), (1200, 30, 0)], True),
]


@pytest.mark.parametrize(("fetches", "leaves"), [c[1:] for c in STAYS], ids=[c[0] for c in STAYS])
def test_a_follower_that_falls_behind_is_proposed_to_leave(fetches: list[tuple[int, int, int]], leaves: bool) -> None:
    driver = Driver()
    driver.lead(isr=(ME, A))
    if not fetches:
        driver.append(10)
    for now_ms, end, offset in fetches:
        driver.now_ms = now_ms
        driver.append(end)
        driver.fetch(A, offset)
    driver.now_ms = LAG_MS + 300
    driver.step(Tick())
    assert isinstance(driver.core.isr_state, PendingShrink) == leaves


ANSWERS = [
    (ErrorCode.INELIGIBLE_REPLICA, "reverts"),
    (ErrorCode.FENCED_LEADER_EPOCH, "waits"),
    (ErrorCode.INVALID_UPDATE_VERSION, "waits"),
    (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "waits"),
    (ErrorCode.UNKNOWN_TOPIC_ID, "waits"),
    (ErrorCode.INVALID_REQUEST, "waits"),
    (ErrorCode.NEW_LEADER_ELECTED, "waits"),
    (ErrorCode.UNKNOWN_SERVER_ERROR, "asks again"),
    (ErrorCode.NOT_CONTROLLER, "asks again"),
    (ErrorCode.REQUEST_TIMED_OUT, "asks again"),
]


@pytest.mark.parametrize(("error", "outcome"), ANSWERS, ids=[a[0].name for a in ANSWERS])
def test_each_answer_of_the_controller(error: ErrorCode, outcome: str) -> None:
    driver = Driver()
    driver.lead()
    driver.fetch(A, 0)
    first = driver.proposal
    effects = driver.answer(error)
    if outcome == "reverts":
        assert effects == [] and driver.core.isr_state == Committed((ME,))
    else:
        assert driver.core.isr_state == PendingExpand((ME,), A)
        assert effects == ([first] if outcome == "asks again" else [])
    driver.metadata(version=9, isr=(ME, A))
    assert driver.core.isr_state == Committed((ME, A))


def test_metadata_overtakes_the_answer() -> None:
    driver = Driver()
    driver.lead()
    driver.fetch(A, 0)
    driver.metadata(version=9, isr=(ME, B))
    assert driver.answer(ErrorCode.NONE, isr=(ME, A), version=8) == []
    assert driver.core.isr_state == Committed((ME, B)) and driver.core.partition_epoch == 9


def test_metadata_older_than_the_answer_changes_nothing() -> None:
    driver = Driver()
    driver.lead()
    driver.fetch(A, 0)
    driver.answer(ErrorCode.NONE, isr=(ME, A), version=9)
    driver.metadata(version=8, isr=(ME,))
    assert driver.core.isr_state == Committed((ME, A))


def test_one_proposal_at_a_time() -> None:
    driver = Driver()
    driver.lead()
    assert len(driver.fetch(A, 0)) == 1
    assert driver.fetch(B, 0) == []
    assert driver.fetch(A, 0) == []
    driver.now_ms = 10 * LAG_MS
    assert driver.step(Tick()) == []
    driver.answer(ErrorCode.NONE, isr=(ME, A))
    assert [type(effect) for effect in driver.fetch(B, 0)] == [ProposeIsr]


def test_the_latest_offset_is_not_available_before_the_high_watermark_reaches_the_epoch() -> None:
    driver = Driver()
    driver.lead(isr=(ME, A), end=10, high_watermark=4)
    before = driver.core.offset_available
    driver.fetch(A, 10)
    assert (before, driver.core.offset_available, driver.core.high_watermark) == (False, True, 10)


def test_the_high_watermark_comes_from_the_checkpoint_within_the_log() -> None:
    driver = Driver()
    driver.lead(isr=(ME, A), end=10, high_watermark=40)
    assert driver.core.high_watermark == 10


def test_only_what_is_on_disk_counts_of_the_leader_itself() -> None:
    driver = Driver(durable=True)
    driver.lead(isr=(ME, A))
    driver.append(5, synced=0)
    assert driver.fetch(A, 5) == []
    assert driver.append(5, synced=5) == [HighWatermarkMoved(5)]


def test_the_page_cache_counts_where_the_topic_says_so() -> None:
    driver = Driver(durable=True)
    driver.lead(isr=(ME, A))
    driver.append(5, synced=0)
    driver.fetch(A, 5)
    assert driver.step(SettingsChanged(durable=False)) == [HighWatermarkMoved(5)]


@pytest.mark.parametrize(
    ("flush_messages", "end", "synced", "counted"),
    [(1, 5, 5, 5), (1, 5, 4, 4), (3, 5, 3, 5), (3, 5, 2, 2), (3, 5, 0, 0)],
)
def test_the_page_cache_counts_until_a_sync_is_due(flush_messages: int, end: int, synced: int, counted: int) -> None:
    driver = Driver()
    driver.lead(isr=(ME, A))
    driver.step(SettingsChanged(durable=False, flush_messages=flush_messages))
    driver.append(end, synced=synced)
    driver.fetch(A, end)
    assert (driver.core.counted_end, driver.core.high_watermark) == (counted, counted)


def test_what_was_counted_stays_committed_while_a_sync_is_due() -> None:
    driver = Driver()
    driver.lead(isr=(ME, A))
    driver.step(SettingsChanged(durable=False, flush_messages=3))
    driver.append(2, synced=0)
    assert driver.fetch(A, 2) == [HighWatermarkMoved(2)]
    driver.append(4, synced=0)
    assert driver.fetch(A, 4) == [] and driver.core.high_watermark == 2
    assert driver.append(4, synced=4) == [HighWatermarkMoved(4)]


def test_a_follower_holds_its_high_watermark_below_its_own_end() -> None:
    driver = Driver()
    assert driver.metadata(leader=A, isr=(A,)) == [Follow(A, 5)]
    driver.ready(end=3)
    assert driver.step(LeaderHighWatermark(9)) == [HighWatermarkMoved(3)]
    assert driver.step(LeaderHighWatermark(2)) == []
    driver.step(LogTruncated(0, 1))
    assert driver.core.high_watermark == 1


def test_the_loss_of_a_leadership_is_the_first_effect() -> None:
    driver = Driver()
    driver.lead()
    assert driver.metadata(leader=A, epoch=6, version=8, isr=(A,)) == [LeadershipLost(), Follow(A, 6)]
    assert driver.metadata(leader=-1, epoch=7, version=9, isr=(A,)) == [Follow(-1, 7)]


def test_the_log_of_an_older_leadership_does_not_make_a_leader() -> None:
    driver = Driver()
    driver.metadata(epoch=5)
    driver.metadata(epoch=6, version=8)
    driver.ready(epoch=5, end=3)
    assert not driver.core.is_leader
    driver.ready(epoch=6, end=3)
    assert driver.core.is_leader


def test_a_failed_log_neither_leads_nor_follows_again() -> None:
    driver = Driver()
    driver.lead()
    assert driver.step(LogFailed()) == [LeadershipLost(), WentOffline()]
    assert driver.metadata(epoch=6, version=8) == []
    assert driver.core.role is Role.OFFLINE


def test_a_follower_whose_log_has_recovered_follows_again() -> None:
    driver = Driver()
    driver.metadata(leader=A, epoch=5)
    driver.ready(epoch=5, end=3)
    driver.step(LogFailed())
    assert driver.metadata(leader=B, epoch=6, version=8) == []
    assert driver.step(LogRecovered()) == [Follow(B, 6)]
    driver.ready(epoch=6, end=2)
    assert driver.core.is_follower and driver.core.end_offset == 2


def test_a_leader_whose_log_has_recovered_does_not_lead_in_the_same_epoch() -> None:
    """Followers may have copied records that the recovered log lost: their offsets would be given twice."""
    driver = Driver()
    driver.lead()
    epoch = driver.core.leader_epoch
    driver.step(LogFailed())
    assert driver.step(LogRecovered()) == []
    assert driver.core.role is Role.OFFLINE
    assert driver.metadata(epoch=epoch, version=8) == []
    assert driver.core.role is Role.OFFLINE
    assert driver.metadata(epoch=epoch + 1, version=9) == [TakeLeadership(epoch + 1)]


def test_a_leadership_that_began_while_the_log_had_failed_is_taken_up() -> None:
    driver = Driver()
    driver.lead()
    driver.step(LogFailed())
    assert driver.metadata(epoch=6, version=8) == []
    assert driver.step(LogRecovered()) == [TakeLeadership(6)]


def test_a_recovery_before_any_metadata_and_a_second_one_do_nothing() -> None:
    driver = Driver()
    driver.step(LogFailed())
    assert driver.step(LogRecovered()) == []
    assert driver.metadata(epoch=5) == [TakeLeadership(5)]
    assert driver.step(LogRecovered()) == []


def test_a_log_that_is_opened_before_the_metadata_neither_leads_nor_follows() -> None:
    """As before the registration of the broker: there is no leader epoch yet."""
    driver = Driver()
    assert driver.ready(epoch=-1, end=3, high_watermark=2) == []
    core = driver.core
    assert (core.end_offset, core.high_watermark) == (3, 2)
    assert not core.ready and not core.is_leader and not core.is_follower
    assert driver.metadata(epoch=5) == [TakeLeadership(5)]


def test_a_log_that_fails_before_the_metadata_goes_offline_once() -> None:
    driver = Driver()
    assert driver.step(LogFailed()) == [WentOffline()]
    assert driver.step(LogFailed()) == []
    assert driver.metadata() == []


def test_a_failed_log_withdraws_a_pending_proposal() -> None:
    """A topic deleted right after a replica came back: the assertion on this once ended the leader's node."""
    driver = Driver()
    driver.lead()
    driver.fetch(A, 0)
    assert driver.step(LogFailed()) == [LeadershipLost(), WentOffline()]
    driver.core.check_invariants()
    assert driver.core.isr_state == Committed((ME,))
    assert driver.answer(ErrorCode.NONE, isr=(ME, A), version=8) == []


@given(st.data())
@settings(max_examples=few(150), deadline=None)
def test_the_high_watermark_agrees_with_counting(data: st.DataObject) -> None:
    """A leader of three with a fixed ISR agrees with a dumb count over the whole history."""
    isr = data.draw(st.sampled_from([(ME,), (ME, A), (ME, A, B)]))
    min_isr = data.draw(st.integers(1, 3))
    durable = data.draw(st.booleans())
    driver = Driver(min_isr=min_isr, durable=durable)
    driver.step(BrokersChanged({}))  # no replica may join, so the ISR stays as it is
    driver.lead(isr=isr)
    end, synced = 0, 0
    acked = {A: -1, B: -1}
    best = 0
    for _ in range(data.draw(st.integers(1, 25))):
        match data.draw(st.sampled_from(["append", "sync", "fetch"])):
            case "append":
                end += data.draw(st.integers(1, 3))
            case "sync":
                synced = end
            case "fetch":
                node = data.draw(st.sampled_from([A, B]))
                acked[node] = data.draw(st.integers(max(0, acked[node]), end))
                driver.fetch(node, acked[node])
        driver.append(end, synced)
        held = [synced if durable else end, *(acked[node] for node in isr if node != ME)]
        if len(isr) >= min_isr:
            best = max(best, max((o for o in range(end + 1) if all(have >= o for have in held)), default=0))
        assert driver.core.high_watermark == best


@rule("log 3.1")
@given(st.data())
@settings(max_examples=few(200), deadline=None)
def test_no_sequence_of_events_breaks_an_invariant(data: st.DataObject) -> None:
    driver = Driver(min_isr=data.draw(st.integers(1, 3)), durable=data.draw(st.booleans()))
    version, epoch, end, last_high_watermark = 7, 5, 0, 0
    driver.lead(isr=(ME, A))
    errors = [ErrorCode.NONE, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.NOT_CONTROLLER]
    for _ in range(data.draw(st.integers(1, 30))):
        match data.draw(st.sampled_from(["append", "fetch", "tick", "answer", "isr", "elect", "brokers"])):
            case "append":
                end += 1
                driver.append(end, data.draw(st.integers(driver.core.synced_end, end)))
            case "fetch":
                driver.fetch(data.draw(st.sampled_from([A, B])), data.draw(st.integers(0, end)))
            case "tick":
                driver.now_ms += data.draw(st.integers(0, 2 * LAG_MS))
                driver.step(Tick())
            case "answer" if driver.proposal is not None and driver.proposal.leader_epoch == epoch:
                proposed = tuple(node for node, _ in driver.proposal.members)
                version = max(version, driver.core.partition_epoch + 1)
                driver.step(
                    IsrAnswered(
                        proposal=driver.proposal,
                        error=data.draw(st.sampled_from(errors)),
                        leader_epoch=epoch,
                        partition_epoch=version,
                        isr=proposed,
                    )
                )
            case "isr":
                version = max(version, driver.core.partition_epoch) + 1
                driver.metadata(
                    epoch=epoch, version=version, isr=data.draw(st.sampled_from([(ME,), (ME, B), (ME, A, B)]))
                )
            case "elect":
                version, epoch = max(version, driver.core.partition_epoch) + 1, epoch + 1
                driver.metadata(epoch=epoch, version=version)
                driver.ready(epoch=epoch, end=end)
            case "brokers":
                driver.step(BrokersChanged({ME: 10, A: data.draw(st.sampled_from([20, 21]))}))
        assert driver.core.high_watermark >= last_high_watermark
        last_high_watermark = driver.core.high_watermark

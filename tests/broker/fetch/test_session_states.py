"""The states of a session's partitions: the transition table, and a session against a model made of plain lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, ReplicaState
from quorumlog_broker.fetch.cached_partition import NO_FETCH_MS, TRANSITIONS, CachedPartition, Happened, ReadState
from quorumlog_broker.fetch.session import FetchSession
from quorumlog_broker.fetch.targets import FetchTarget, Key, TopicResponse
from tests.parts import few

T = b"t" * 16
INDEXES = range(5)


def partition(index: int = 0, offset: int = 0, epoch: int = 1) -> FetchPartition:
    return FetchPartition(index=index, fetch_offset=offset, max_bytes=1, current_leader_epoch=epoch)


@pytest.mark.parametrize("happened", Happened)
@pytest.mark.parametrize("state", ReadState)
def test_a_state_follows_the_table_or_tells_what_went_wrong(state: ReadState, happened: Happened) -> None:
    cached = CachedPartition(FetchTarget(T, partition(7)), state)
    after = TRANSITIONS[happened].get(state)
    if after is None:
        with pytest.raises(AssertionError, match=f"{happened.name} in state {state.name} of .*index=7"):
            cached.step(happened)
        assert cached.state is state
    else:
        assert cached.step(happened) is after is cached.state


def test_only_a_request_that_nothing_disturbed_leaves_a_partition_caught_up() -> None:
    ends_caught_up = {
        (happened, state)
        for happened, row in TRANSITIONS.items()
        for state, after in row.items()
        if after is ReadState.CAUGHT_UP
    }
    assert ends_caught_up == {(Happened.ANSWERED_WHOLLY, ReadState.READ)}


@dataclass
class Row:
    request: FetchPartition
    known: tuple[int, int] = (-1, -1)  # high watermark, log start
    fetched_ms: int = NO_FETCH_MS


class ListModel:
    """Lists of the partitions that are to be read, are in the request, and have changed since the request arrived."""

    def __init__(self, of_replica: bool) -> None:
        self.of_replica, self.used_ms = of_replica, 0
        self.rows: dict[int, Row] = {}
        self.to_read: list[int] = []
        self.in_request: list[int] = []
        self.changed_since: list[int] = []

    def is_caught_up(self, index: int) -> bool:
        return index not in self.to_read and index not in self.in_request

    def request(self, named: list[FetchPartition], forgotten: list[int], now_ms: int) -> None:
        self.to_read = self.in_request + [index for index in self.to_read if index not in self.in_request]
        self.in_request = []
        for one in named:
            row = self.rows.get(one.index)
            if row is None or row.request.current_leader_epoch != one.current_leader_epoch:
                self.rows[one.index] = Row(one)
                self.to_read += [one.index] if one.index not in self.to_read else []
                continue
            self.change(one.index)
            row.request = one
            if self.of_replica:
                row.known = (-1, row.known[1])
        for index in forgotten:
            self.rows.pop(index, None)
            self.to_read = [other for other in self.to_read if other != index]
        self.used_ms = now_ms
        self.in_request, self.to_read, self.changed_since = self.to_read, [], []

    def change(self, index: int) -> None:
        if self.is_caught_up(index):
            self.rows[index].fetched_ms = self.used_ms
        self.changed_since.append(index)
        self.to_read += [index] if index not in self.to_read else []

    def read_changed(self) -> None:
        self.in_request += [index for index in self.to_read if index not in self.in_request]
        self.to_read = []

    def answer(self, responses: list[FetchPartitionResponse], has_more: list[bool]) -> list[int]:
        """The indexes of the responses that are sent."""
        kept = [
            one
            for one, more in zip(responses, has_more, strict=True)
            if more or one.error_code or one.diverging_epoch or one.index in self.changed_since
        ]
        order = [one.index for one in kept if not one.records] + self.to_read + [one.index for one in kept]
        self.to_read, self.in_request = list(dict.fromkeys(order)), []
        return [one.index for one in responses if self.tell(one)]

    def tell(self, one: FetchPartitionResponse) -> bool:
        row = self.rows[one.index]
        before, row.known = row.known, (-1 if one.error_code else one.high_watermark, one.log_start_offset)
        now = (one.high_watermark, one.log_start_offset)
        return bool(one.error_code or one.records or one.diverging_epoch) or before != now

    def unnamed_fetch_ms(self, index: int) -> int:
        return self.used_ms if self.is_caught_up(index) else self.rows[index].fetched_ms

    def take_unnamed_fetch_ms(self, index: int) -> int:
        if index not in self.rows:
            return NO_FETCH_MS
        at_ms = self.unnamed_fetch_ms(index)
        self.rows[index].fetched_ms = NO_FETCH_MS
        return at_ms


class Both:
    def __init__(self, of_replica: bool) -> None:
        replica = ReplicaState(replica_id=2, broker_epoch=1) if of_replica else None
        self.session = FetchSession(1, True, replica, 0, 0)
        self.model = ListModel(of_replica)
        self.now_ms = 0
        self.is_open = False  # there is a request that was not answered

    def request(self, named: list[FetchPartition], forgotten: list[int]) -> None:
        self.now_ms += 10
        self.is_open = True
        self.session.update([FetchTarget(T, one) for one in named], [(T, index) for index in forgotten])
        self.session.used_ms = self.now_ms
        self.session.begin_read()
        self.model.request(named, forgotten, self.now_ms)

    def change(self, index: int) -> None:
        if index in self.model.rows:  # a session gets no events of partitions that it does not hold
            self.session.changed((T, index))
            self.model.change(index)

    def read_changed(self) -> None:
        if self.is_open:
            self.session.read_changed()
            self.model.read_changed()

    def answer(self, kinds: list[FetchPartitionResponse], has_more: list[bool]) -> None:
        self.is_open, indexes = False, self.model.in_request
        responses = [replace(kinds[index], index=index) for index in indexes]
        more = [has_more[index] for index in indexes]
        by_topic: list[TopicResponse] = [(T, one) for one in responses]
        self.session.answer(by_topic, more)
        sent = [one.index for _, one in self.session.update_responses(by_topic)]
        assert sent == self.model.answer(responses, more)

    def take(self, index: int) -> None:
        assert self.session.take_unnamed_fetch_ms((T, index)) == self.model.take_unnamed_fetch_ms(index)

    def check(self) -> None:
        self.session.check_invariants()
        rows = self.model.rows
        assert {target.partition.index: target.partition for target in self.session.targets} == {
            index: row.request for index, row in rows.items()
        }
        assert [target.partition.index for target in self.session.in_request] == self.model.in_request
        assert self.session.has_changed == bool(self.model.to_read)
        fetched: dict[Key, int] = {key: at_ms for key, _, at_ms in self.session.unnamed_fetches()}
        expected = {(T, index): self.model.unnamed_fetch_ms(index) for index in rows}
        assert fetched == {key: at_ms for key, at_ms in expected.items() if at_ms != NO_FETCH_MS}


INDEX = st.sampled_from(INDEXES)
NAMED = st.lists(st.builds(partition, INDEX, st.integers(0, 3), st.integers(1, 2)), max_size=5)
RESPONSE = st.builds(
    FetchPartitionResponse,
    index=st.just(0),
    error_code=st.sampled_from([0, 0, 0, 6]),
    high_watermark=st.integers(0, 2),
    log_start_offset=st.integers(0, 1),
    records=st.sampled_from([b"", b"", b"r"]),
    diverging_epoch=st.sampled_from([None, None, EpochEndOffset(epoch=1, end_offset=2)]),
)
STEP = st.one_of(
    st.tuples(st.just("request"), NAMED, st.lists(INDEX, max_size=2)),
    st.tuples(st.just("change"), INDEX),
    st.tuples(st.just("change"), INDEX),
    st.tuples(st.just("read_changed")),
    st.tuples(
        st.just("answer"),
        st.lists(RESPONSE, min_size=5, max_size=5),
        st.lists(st.booleans(), min_size=5, max_size=5),
    ),
    st.tuples(st.just("take"), INDEX),
)


@settings(max_examples=few(500))
@given(st.booleans(), st.lists(STEP, max_size=30))
def test_a_session_does_what_the_lists_say(of_replica: bool, steps: list[tuple[object, ...]]) -> None:
    both = Both(of_replica)
    for name, *arguments in steps:
        getattr(both, str(name))(*arguments)
        both.check()


def session_of(count: int) -> FetchSession:
    """All caught up but the partitions that a test changes."""
    session = FetchSession(1, True, None, 0, 0)
    session.update([FetchTarget(T, partition(index)) for index in range(count)], ())
    session.begin_read()
    responses = [(T, FetchPartitionResponse(index=index, high_watermark=0)) for index in range(count)]
    session.answer(responses, [False] * count)
    return session


def test_partitions_that_wait_longest_come_first_and_those_that_got_records_last() -> None:
    session = session_of(6)
    for index in (3, 1, 4, 0):
        session.changed((T, index))
    session.update((), ())
    session.begin_read()
    session.changed((T, 5))
    given_records = {3, 4}
    responses = [
        (T, FetchPartitionResponse(index=index, high_watermark=1, records=b"r" if index in given_records else b""))
        for index in (3, 1, 4, 0)
    ]
    session.answer(responses, [True] * 4)
    session.update((), ())
    session.begin_read()
    assert [target.partition.index for target in session.in_request] == [1, 0, 5, 3, 4]


def test_a_request_costs_what_has_changed_and_not_what_the_session_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(1_000)
    steps: list[Happened] = []
    step = CachedPartition.step

    def noted(self: CachedPartition, happened: Happened) -> ReadState:
        steps.append(happened)
        return step(self, happened)

    monkeypatch.setattr(CachedPartition, "step", noted)
    session.changed((T, 500))
    session.update([FetchTarget(T, partition(7, offset=1))], ())
    session.begin_read()
    responses = [(T, FetchPartitionResponse(index=index, high_watermark=1)) for index in (500, 7)]
    session.answer(responses, [False, False])
    assert steps == [
        *[Happened.CHANGED] * 2,
        *[Happened.FIRST_READ] * 2,
        *[Happened.ANSWERED_WHOLLY] * 2,
    ]

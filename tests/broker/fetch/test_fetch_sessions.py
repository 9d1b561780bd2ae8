"""Incremental fetch sessions: the table of KIP-227, which session is evicted, and a reader that always knows what a
full fetch would have answered."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.session import MAX_EPOCH, next_epoch
from quorumlog_broker.fetch.session_cache import EVICT_MS, IDLE_MS
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.fetch.targets import Key, TopicResponse
from tests.parts import few

T, U = b"t" * 16, b"u" * 16


def request(
    session: int = 0,
    epoch: int = 0,
    wanted: tuple[tuple[bytes | str, int], ...] = (),
    forgotten: tuple[tuple[bytes | str, int], ...] = (),
    offset: int = 0,
    of_replica: bool = False,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=100,
        topics=tuple(
            FetchTopic(**_named(topic), partitions=(FetchPartition(index=index, fetch_offset=offset, max_bytes=10),))
            for topic, index in wanted
        ),
        forgotten=tuple(ForgottenTopic(**_named(topic), partitions=(index,)) for topic, index in forgotten),
        session_id=session,
        session_epoch=epoch,
        replica=ReplicaState(replica_id=2, broker_epoch=1) if of_replica else None,
    )


def _named(topic: bytes | str) -> dict[str, Any]:
    return {"topic_id": b"", "name": topic} if isinstance(topic, str) else {"topic_id": topic}


def answer(index: int, **fields: Any) -> FetchPartitionResponse:
    return FetchPartitionResponse(index=index, **{"high_watermark": 5, "log_start_offset": 0, **fields})


def turn(
    sessions: FetchSessions, asked: FetchRequest, now_ms: int = 0, **fields: Any
) -> tuple[int, list[TopicResponse]]:
    """A whole request; every partition gets the same response."""
    begun = sessions.begin(asked, now_ms)
    return end(sessions, begun, [answer(partition.index, **fields) for _, partition in begun.targets], now_ms)


def end(
    sessions: FetchSessions, begun: FetchContext, answers: list[FetchPartitionResponse], now_ms: int = 0
) -> tuple[int, list[TopicResponse]]:
    """A partition with records in its response has more to read."""
    return sessions.end(begun, answers, [len(one.records) > 0 for one in answers], now_ms)


def make(slots: int = 2, max_partitions: int = 1_000) -> FetchSessions:
    return FetchSessions(Random(1), slots=slots, max_partitions=max_partitions)


def refused(sessions: FetchSessions, asked: FetchRequest) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        sessions.begin(asked, 0)
    return caught.value.code


def test_without_a_session_everything_is_answered_and_nothing_is_kept() -> None:
    sessions = make()
    session_id, sent = turn(sessions, request(epoch=-1, wanted=((T, 0), (T, 1))))
    assert (session_id, len(sent), len(sessions)) == (0, 2, 0)


def test_a_session_answers_only_what_has_changed() -> None:
    sessions = make()
    session_id, sent = turn(sessions, request(wanted=((T, 0), (U, 1))))
    assert session_id > 0 and len(sent) == 2
    assert turn(sessions, request(session_id, 1)) == (session_id, [])
    assert sessions.begin(request(session_id, 2), 0).targets == [], "caught up"
    sessions.changed((U, 1))
    _, sent = turn(sessions, request(session_id, 3), high_watermark=6)
    assert [topic for topic, _ in sent] == [U]


NEWS = [
    ("records", {"records": b"r"}),
    ("high watermark", {"high_watermark": 6}),
    ("log start", {"log_start_offset": 1}),
    ("error", {"error_code": 6}),
    ("divergence", {"diverging_epoch": EpochEndOffset(epoch=1, end_offset=2)}),
    ("another replica to read from", {"preferred_read_replica": 3}),
]


@pytest.mark.parametrize("fields", [case[1] for case in NEWS], ids=[case[0] for case in NEWS])
def test_what_has_to_be_sent(fields: dict[str, Any]) -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),)))
    _, sent = turn(sessions, request(session_id, 1), **fields)
    assert len(sent) == 1


def test_the_end_of_an_error_has_to_be_sent() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),)), error_code=6, high_watermark=5)
    assert len(turn(sessions, request(session_id, 1), error_code=6)[1]) == 1
    assert len(turn(sessions, request(session_id, 2))[1]) == 1
    assert len(turn(sessions, request(session_id, 3))[1]) == 0


def test_partitions_that_got_records_come_last_in_the_next_request() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0), (T, 1), (T, 2))))
    begun = sessions.begin(request(session_id, 1), 0)
    sessions.end(begun, [answer(0, records=b"r"), answer(1), answer(2)], [True, True, True], 0)
    assert [partition.index for _, partition in sessions.begin(request(session_id, 2), 0).targets] == [1, 2, 0]


def test_a_session_by_name_reads_everything_each_time() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=(("t", 0), ("t", 1))))
    assert turn(sessions, request(session_id, 1)) == (session_id, [])
    begun = sessions.begin(request(session_id, 2), 0)
    assert [partition.index for _, partition in begun.targets] == [0, 1]


def test_what_changes_while_a_request_waits_is_read_by_the_next_one_too() -> None:
    """A follower's fetch acknowledges when it arrives; after a later change it may have to acknowledge again."""
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0), (T, 1)), of_replica=True))
    turn(sessions, request(session_id, 1, of_replica=True))
    begun = sessions.begin(request(session_id, 2, of_replica=True), 0)
    sessions.changed((T, 1))
    assert begun.session is not None
    begun.session.read_changed()
    end(sessions, begun, [answer(1)])
    again = sessions.begin(request(session_id, 3, of_replica=True), 0)
    assert [partition.index for _, partition in again.targets] == [1]


def test_the_reader_of_a_request_that_was_never_answered_knows_nothing_of_it() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0), (T, 1))))
    first = sessions.begin(request(session_id, 1), 0)
    assert len(first.targets) == 2
    assert len(sessions.begin(request(session_id, 2), 0).targets) == 2


def unnamed(sessions: FetchSessions) -> dict[int, int]:
    return {key[1]: at_ms for key, _, _, at_ms in sessions.unnamed_fetches()}


def test_a_followers_request_counts_as_a_fetch_of_its_caught_up_partitions() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0), (T, 1)), of_replica=True), now_ms=10)
    assert unnamed(sessions) == {}, "all are named"
    turn(sessions, request(session_id, 1, of_replica=True), now_ms=20)
    assert unnamed(sessions) == {0: 20, 1: 20}
    turn(sessions, request(session_id, 2, of_replica=True), now_ms=30)
    sessions.changed((T, 1))
    assert unnamed(sessions) == {0: 30, 1: 30}
    turn(sessions, request(session_id, 3, of_replica=True), now_ms=40, records=b"r")
    assert unnamed(sessions) == {0: 40, 1: 30}, "a partition with more to read is named by the follower itself"


@pytest.mark.parametrize("of_replica", [True, False])
def test_a_follower_that_moves_is_sent_the_high_watermark_again(of_replica: bool) -> None:
    """For example, it truncated its log by a response whose high watermark it could not take."""
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),), of_replica=of_replica))
    asked = request(session_id, 1, wanted=((T, 0),), offset=3, of_replica=of_replica)
    assert len(turn(sessions, asked)[1]) == of_replica


def test_a_session_belongs_to_one_epoch_of_its_broker() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),), of_replica=True))
    other = replace(request(session_id, 1), replica=ReplicaState(replica_id=2, broker_epoch=2))
    assert refused(sessions, other) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused(sessions, request(session_id, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    turn(sessions, request(session_id, 0, wanted=((T, 0),)))
    assert turn(sessions, request(session_id, 1, of_replica=True))[0] == session_id, "nor may another end it"


def test_a_request_changes_what_is_asked_for() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0), (T, 1))))
    begun = sessions.begin(request(session_id, 1, wanted=((T, 1), (U, 3)), forgotten=((T, 0),), offset=9), 0)
    assert [(topic, partition.index, partition.fetch_offset) for topic, partition in begun.targets] == [
        (T, 1, 9),
        (U, 3, 9),
    ]


def test_forgetting_all_ends_the_session() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),)))
    assert turn(sessions, request(session_id, 1, forgotten=((T, 0),))) == (0, [])
    assert len(sessions) == 0


def test_refusals() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),)))
    assert refused(sessions, request(session_id + 1, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert refused(sessions, request(session_id, 2)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert refused(sessions, request(session_id, 1, wanted=(("t", 0),))) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert refused(sessions, request(session_id, 1, forgotten=(("t", 0),))) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    turn(sessions, request(session_id, 1))
    assert refused(sessions, request(session_id, 1)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.parametrize("epoch", [0, -1], ids=["a new one", "none"])
def test_a_full_request_ends_the_session_that_it_names(epoch: int) -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),)))
    turn(sessions, request(session_id, epoch, wanted=((T, 0),)))
    assert refused(sessions, request(session_id, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_answer_that_the_next_request_has_overtaken() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=((T, 0),)))
    late = sessions.begin(request(session_id, 1), 0)
    turn(sessions, request(session_id, 2))
    with pytest.raises(ApiError) as caught:
        end(sessions, late, [answer(0)])
    assert caught.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_topics_named_in_both_ways_begin_no_session() -> None:
    sessions = make()
    assert turn(sessions, request(wanted=((T, 0), ("t", 0))))[0] == 0


def test_epochs_go_round() -> None:
    assert [next_epoch(epoch) for epoch in (1, MAX_EPOCH - 1, MAX_EPOCH)] == [2, MAX_EPOCH, 1]


def wide(count: int) -> tuple[tuple[bytes, int], ...]:
    return tuple((T, index) for index in range(count))


EVICTIONS: list[tuple[str, int, int, bool, bool]] = [
    # idle ms of the first session, size of the new one, of a follower, the first is evicted
    ("none is old", EVICT_MS, 5, False, False),
    ("the first is stale", EVICT_MS + 1, 1, False, True),
]


@pytest.mark.parametrize(
    ("idle_ms", "width", "of_replica", "is_evicted"), [c[1:] for c in EVICTIONS], ids=[c[0] for c in EVICTIONS]
)
def test_an_unused_session_is_evicted(idle_ms: int, width: int, of_replica: bool, is_evicted: bool) -> None:
    sessions = make(slots=1)
    turn(sessions, request(wanted=wide(3)), now_ms=0)
    second, _ = turn(sessions, request(wanted=wide(width), of_replica=of_replica), now_ms=idle_ms)
    assert (second > 0) is is_evicted
    assert len(sessions) == 1


@pytest.mark.parametrize(
    ("first_width", "first_of_replica", "width", "of_replica", "is_evicted"),
    [
        (3, False, 4, False, True),
        (3, False, 3, False, False),
        (3, False, 1, True, True),
        (3, True, 9, False, False),
        (3, True, 4, True, True),
    ],
    ids=["larger", "as large", "a follower's is larger than any", "no consumer is larger", "a larger follower's"],
)
def test_an_old_and_smaller_session_is_evicted(
    first_width: int, first_of_replica: bool, width: int, of_replica: bool, is_evicted: bool
) -> None:
    sessions = make(slots=1)
    first, _ = turn(sessions, request(wanted=wide(first_width), of_replica=first_of_replica), now_ms=0)
    turn(sessions, request(first, 1, of_replica=first_of_replica), now_ms=EVICT_MS)
    second, _ = turn(sessions, request(wanted=wide(width), of_replica=of_replica), now_ms=EVICT_MS + 1)
    assert (second > 0) is is_evicted


@pytest.mark.parametrize("of_replica", [False, True])
def test_the_session_of_a_reader_that_left_is_not_kept_for_ever(of_replica: bool) -> None:
    sessions = make(slots=9)
    gone, _ = turn(sessions, request(wanted=wide(3), of_replica=of_replica), now_ms=0)
    stays, _ = turn(sessions, request(wanted=wide(1)), now_ms=0)
    turn(sessions, request(stays, 1), now_ms=IDLE_MS)
    assert len(sessions) == 2
    turn(sessions, request(stays, 2), now_ms=IDLE_MS + 1)
    assert len(sessions) == 1
    assert list(sessions._holders) == [(T, 0)], "it is not notified any more"
    assert refused(sessions, request(gone, 1, of_replica=of_replica)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_would_not_fit_does_not_begin_and_evicts_none() -> None:
    sessions = make(slots=9, max_partitions=5)
    turn(sessions, request(wanted=wide(2)), now_ms=0)
    turn(sessions, request(wanted=wide(2)), now_ms=EVICT_MS)
    session_id, sent = turn(sessions, request(wanted=wide(6)), now_ms=EVICT_MS + 1)
    assert (session_id, len(sent), len(sessions)) == (0, 6, 2), "it is answered without a session"
    sessions.check_invariants()


def test_as_many_sessions_are_evicted_as_it_takes_unused_ones_first() -> None:
    sessions = make(slots=9, max_partitions=10)
    small = turn(sessions, request(wanted=wide(1)), now_ms=0)[0]
    unused = turn(sessions, request(wanted=wide(4)), now_ms=0)[0]
    larger = turn(sessions, request(wanted=wide(3)), now_ms=0)[0]
    for session_id in (small, larger):
        turn(sessions, request(session_id, 1), now_ms=EVICT_MS)
    assert turn(sessions, request(wanted=wide(5)), now_ms=EVICT_MS + 1)[0] > 0
    assert refused(sessions, request(unused, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 3
    assert turn(sessions, request(wanted=wide(2)), now_ms=EVICT_MS + 1)[0] > 0
    assert refused(sessions, request(small, 2)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert turn(sessions, request(larger, 2), now_ms=EVICT_MS + 1)[0] == larger
    sessions.check_invariants()


@pytest.mark.parametrize("of_replica", [True, False])
def test_a_session_that_grows_past_the_limit_is_not_found_any_more(of_replica: bool) -> None:
    sessions = make(slots=9, max_partitions=4)
    turn(sessions, request(wanted=wide(2)))
    grows, _ = turn(sessions, request(wanted=wide(1), of_replica=of_replica))
    turn(sessions, request(grows, 1, wanted=((U, 0),), of_replica=of_replica))
    more = request(grows, 2, wanted=((U, 1),), of_replica=of_replica)
    assert refused(sessions, more) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 1
    sessions.check_invariants()
    begun = turn(sessions, request(wanted=((T, 0), (U, 0), (U, 1)), of_replica=of_replica))
    assert (begun[0], len(begun[1])) == (0, 3), "its reader goes on without one"


def test_a_session_that_grows_evicts_unused_ones() -> None:
    sessions = make(slots=2, max_partitions=4)
    turn(sessions, request(wanted=wide(3)), now_ms=0)
    grows, _ = turn(sessions, request(wanted=wide(1)), now_ms=0)
    asked = request(grows, 1, wanted=((U, 0), (U, 1)))
    assert len(sessions.begin(asked, EVICT_MS + 1).targets) == 3
    assert len(sessions) == 1
    sessions.check_invariants()


def test_partitions_named_again_or_forgotten_need_no_room() -> None:
    sessions = make(max_partitions=2)
    session_id, _ = turn(sessions, request(wanted=((T, 0), (T, 1))))
    turn(sessions, request(session_id, 1, wanted=((T, 0), (T, 1)), offset=3))
    turn(sessions, request(session_id, 2, forgotten=((T, 0),)))
    assert turn(sessions, request(session_id, 3, wanted=((T, 2),)))[0] == session_id
    sessions.check_invariants()


def test_a_request_that_is_too_large_for_any_session_evicts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog_broker.fetch.session.MAX_PARTITIONS", 3)
    sessions = make(slots=9, max_partitions=5)
    turn(sessions, request(wanted=wide(2)), now_ms=0)
    session_id, _ = turn(sessions, request(wanted=wide(2)), now_ms=EVICT_MS)
    with pytest.raises(ApiError) as caught:
        sessions.begin(request(session_id, 1, wanted=((U, 0), (U, 1))), EVICT_MS + 1)
    assert (caught.value.code, len(sessions)) == (ErrorCode.INVALID_REQUEST, 2)


def test_a_session_by_name_keeps_no_list_of_what_has_changed() -> None:
    sessions = make()
    session_id, _ = turn(sessions, request(wanted=(("t", 0), ("t", 1))))
    begun = sessions.begin(request(session_id, 1, wanted=(("t", 1), ("t", 2))), 0)
    assert begun.session is not None and not begun.session.has_changed


ROOM_STEPS = st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, EVICT_MS), st.booleans())


@settings(max_examples=few(100), deadline=None)
@given(st.lists(ROOM_STEPS, max_size=30))
def test_the_limits_of_the_cache_are_never_exceeded(steps: list[tuple[int, int, int, bool]]) -> None:
    """Six readers; as time goes on each asks for different partitions."""
    sessions = make(slots=4, max_partitions=9)
    held: dict[int, tuple[int, int]] = {}
    now_ms = 0
    for reader, index, pause_ms, forgets in steps:
        now_ms += pause_ms
        session_id, epoch = held.get(reader, (0, 0))
        wanted = ((T, index), (U, reader))
        asked = request(session_id, epoch, wanted, wanted[:1] if forgets and epoch else (), of_replica=reader > 3)
        try:
            session_id, _ = turn(sessions, asked, now_ms)
            held[reader] = (session_id, next_epoch(epoch) if session_id else 0)
        except ApiError as error:
            assert error.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            held[reader] = (0, 0)
        sessions.check_invariants()


# A reader that merges its responses knows what a full fetch would answer.

PARTITIONS = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), PARTITIONS),
        st.tuples(st.just("commit"), PARTITIONS),
        st.tuples(st.just("delete"), PARTITIONS),
        st.tuples(st.just("fail"), PARTITIONS),
        st.tuples(st.just("ask"), PARTITIONS),
        st.tuples(st.just("forget"), PARTITIONS),
        st.tuples(st.just("fetch"), PARTITIONS),
        st.tuples(st.just("lose"), PARTITIONS),
    ),
    max_size=40,
)


class Reader:
    """Keeps a session as Kafka's clients do, next to the true state of the broker."""

    def __init__(self) -> None:
        self.sessions = make(slots=1)
        self.truth = {index: answer(index) for index in range(4)}
        self.wanted: dict[Key, None] = {}
        self.sent: dict[Key, None] = {}
        self.known: dict[Key, FetchPartitionResponse] = {}
        self.id, self.epoch = 0, 0

    def step(self, what: str, index: int) -> None:
        now = self.truth[index]
        if what in ("grow", "commit", "delete", "fail"):
            self.sessions.changed((T, index))
        match what:
            case "grow":
                self.truth[index] = replace(now, records=b"r")
            case "commit":
                self.truth[index] = replace(now, high_watermark=now.high_watermark + 1)
            case "delete":
                self.truth[index] = replace(now, log_start_offset=now.log_start_offset + 1)
            case "fail":
                self.truth[index] = replace(now, error_code=0 if now.error_code else 6)
            case "ask":
                self.wanted[T, index] = None
            case "forget":
                self.wanted.pop((T, index), None)
            case "fetch":
                self.fetch()
            case "lose":
                self.sessions = make(slots=1)

    def fetch(self) -> None:
        if self.epoch == 0:
            self.sent, self.known = {}, {}
        added = tuple(key for key in self.wanted if key not in self.sent)
        gone = tuple(key for key in self.sent if key not in self.wanted)
        try:
            begun = self.sessions.begin(request(self.id, self.epoch, added, gone), 0)
        except ApiError as error:
            assert error.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self.id, self.epoch = 0, 0
            return self.fetch()
        assert {(topic, partition.index) for topic, partition in begun.targets} <= set(self.wanted)
        answers = [self.truth[partition.index] for _, partition in begun.targets]
        self.id, sent = end(self.sessions, begun, answers)
        self.epoch = next_epoch(self.epoch) if self.id else 0
        self.sent = dict(self.wanted)
        for key in gone:
            self.known.pop(key, None)
        self.sessions.check_invariants()
        self.known |= {(topic, one.index): one for topic, one in sent}
        for index, one in self.truth.items():
            if (T, index) in self.wanted and len(one.records):
                assert any(answer.index == index for _, answer in sent), "records are sent each time"
                self.truth[index] = self.known[T, index] = replace(one, records=b"")  # the reader moves past them
        assert self.known == {key: self.truth[key[1]] for key in self.wanted}
        return None


@settings(max_examples=few(300))
@given(STEPS)
def test_a_reader_knows_what_a_full_fetch_would_answer(steps: list[tuple[str, int]]) -> None:
    reader = Reader()
    for what, index in steps:
        reader.step(what, index)
    reader.fetch()


@pytest.mark.parametrize("topic", ["t" * 250, b"t" * 250])
def test_no_session_keeps_what_is_too_long_to_be_a_topic(topic: bytes | str) -> None:
    """A broker keeps the names of 500,000 partitions: of some MB each they would fill its memory."""
    sessions, short = make(), topic[:16]
    session_id, sent = turn(sessions, request(wanted=((topic, 0),)), error_code=3)
    assert (session_id, len(sent), len(sessions)) == (0, 1, 0)
    session_id, _ = turn(sessions, request(wanted=((short, 0),)))
    assert refused(sessions, request(session_id, 1, wanted=((topic, 0),))) is ErrorCode.INVALID_REQUEST
    assert turn(sessions, request(session_id, 1)) == (session_id, [])

"""The follower's side of a fetch session against the leader's: both agree on the partitions and their positions."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from quorumlog_broker.fetch.context import FetchContext
from quorumlog_broker.fetch.sessions import FetchSessions
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replication.fetch_position import FetchPosition
from quorumlog_broker.replication.leader_session import LeaderSession, SessionRequest
from tests.parts import few

TOPIC = b"t" * 16
INDEXES = range(4)


class Pair:
    """A leader that answers nothing but errors of the session, and a follower."""

    def __init__(self, slots: int = 1) -> None:
        self.now_ms = 1
        self.broker_epoch = 1
        self.sessions = FetchSessions(Random(1), slots=slots)
        self.session = LeaderSession()
        self.positions: dict[PartitionKey, FetchPosition] = {}

    def add(self, index: int, leader_epoch: int = 1) -> FetchPosition:
        position = FetchPosition((TOPIC, index), leader_epoch, 0, -1, 0)
        self.positions[position.key] = position
        self.session.touch(position.key)
        return position

    def remove(self, index: int) -> None:
        self.positions.pop((TOPIC, index), None)
        self.session.touch((TOPIC, index))

    def ask(self) -> SessionRequest | None:
        return self.session.next_request(self.positions, self.now_ms, self.broker_epoch)

    def send(self, ask: SessionRequest) -> FetchContext:
        named = tuple(
            FetchPartition(
                index=one.key[1],
                fetch_offset=one.offset,
                max_bytes=1,
                current_leader_epoch=one.leader_epoch,
                last_fetched_epoch=one.last_epoch,
                log_start_offset=one.log_start,
            )
            for one in ask.named
        )
        indexes = tuple(index for _, index in ask.forgotten)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1,
            topics=(FetchTopic(topic_id=TOPIC, partitions=named),) if named else (),
            forgotten=(ForgottenTopic(topic_id=TOPIC, partitions=indexes),) if indexes else (),
            replica=ReplicaState(replica_id=2, broker_epoch=self.broker_epoch),
            session_id=ask.session_id,
            session_epoch=ask.epoch,
        )
        return self.sessions.begin(request, self.now_ms)

    def round(self, answered: bool = True) -> SessionRequest | None:
        """One request; and the next ones, if the session is refused."""
        ask = self.ask()
        if ask is None:
            assert not any(one.is_ready(self.now_ms) for one in self.positions.values())
            return None
        try:
            context = self.send(ask)
        except ApiError as error:
            assert error.code in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            self.session.restart()
            return self.round(answered)
        self.check(context, ask)
        if not answered:
            self.session.restart()
            return ask
        answers = [FetchPartitionResponse(index=wanted.index, high_watermark=0) for _, wanted in context.targets]
        session_id, sent = self.sessions.end(context, answers, [False] * len(answers), self.now_ms)
        self.session.answered(session_id)
        for _, answer in sent:
            self.session.touch((TOPIC, answer.index))
        return ask

    def check(self, context: FetchContext, ask: SessionRequest) -> None:
        held = [wanted for _, wanted in (context.targets if context.session is None else context.session.targets)]
        for wanted in held:
            now = self.positions[TOPIC, wanted.index]
            assert self.session.position_of(now.key) is now
            assert (wanted.fetch_offset, wanted.current_leader_epoch) == (now.offset, now.leader_epoch)
            assert (wanted.last_fetched_epoch, wanted.log_start_offset) == (now.last_epoch, now.log_start)
        ready = {key[1] for key, one in self.positions.items() if one.is_ready(self.now_ms)}
        assert {wanted.index for wanted in held} == ready - {index for _, index in ask.forgotten}
        assert ask.may_wait or ready & {index for _, index in ask.forgotten}


def begun(*indexes: int) -> Pair:
    pair = Pair()
    for index in indexes:
        pair.add(index)
    pair.round()
    return pair


def named(ask: SessionRequest | None) -> list[int]:
    assert ask is not None
    return [one.key[1] for one in ask.named]


def test_only_what_moved_is_named() -> None:
    pair = begun(0, 1, 2)
    assert named(pair.round()) == []
    position = pair.positions[TOPIC, 1]
    position.offset = 5
    pair.session.touch(position.key)
    assert named(pair.round()) == [1]
    assert named(pair.round()) == []


def test_a_position_that_backs_off_is_withdrawn_and_named_again_at_once() -> None:
    """It may not have taken what the leader sent, so the leader must send it again."""
    pair = begun(0, 1)
    position = pair.positions[TOPIC, 1]
    position.back_off(pair.now_ms, 200)
    pair.session.touch(position.key)
    pair.now_ms = position.not_before_ms
    ask = pair.round()
    assert ask is not None and (ask.forgotten, ask.may_wait) == (((TOPIC, 1),), False)
    assert named(pair.round()) == [1]


def test_after_a_lost_response_all_is_named() -> None:
    pair = begun(0, 1)
    pair.round(answered=False)
    assert named(pair.round()) == [0, 1]


def test_in_another_broker_epoch_all_is_named() -> None:
    """Each position acknowledges for the process that registered with the epoch (KIP-903)."""
    pair = begun(0, 1)
    pair.broker_epoch = 2
    ask = pair.ask()
    assert named(ask) == [0, 1] and ask is not None and ask.epoch == 0


def test_without_a_session_at_the_leader_all_is_named_each_time() -> None:
    pair = Pair(slots=0)
    pair.add(0)
    assert [named(pair.round()) for _ in range(3)] == [[0], [0], [0]]


def test_when_all_positions_are_withdrawn_a_new_session_begins() -> None:
    pair = begun(0)
    position = pair.positions[TOPIC, 0]
    position.back_off(pair.now_ms, 200)
    pair.session.touch(position.key)
    pair.now_ms = position.not_before_ms
    ask = pair.round()
    assert named(ask) == [0] and ask is not None and ask.epoch == 0


def test_without_positions_there_is_no_request() -> None:
    pair = begun(0)
    pair.remove(0)
    assert pair.ask() is None
    pair.add(0, leader_epoch=2)
    assert named(pair.round()) == [0]


OPERATIONS = ("add", "remove", "move", "cut", "busy", "back off", "wait", "round", "lose", "evict", "register")


@settings(max_examples=few(400))
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(INDEXES)), max_size=40))
def test_both_sides_agree(script: list[tuple[str, int]]) -> None:
    pair = Pair()
    for number, (what, index) in enumerate(script):
        position = pair.positions.get((TOPIC, index))
        match what:
            case "add":
                pair.add(index, leader_epoch=number)
            case "remove":
                pair.remove(index)
            case "wait":
                pair.now_ms += 20
            case "round" | "lose":
                pair.round(answered=what == "round")
            case "evict":
                pair.sessions = FetchSessions(Random(number), slots=1)
            case "register":
                pair.broker_epoch += 1
            case _ if position is not None:
                disturb(what, pair, position)
    pair.round()


def disturb(what: str, pair: Pair, position: FetchPosition) -> None:
    """A position changes only with an answer about it."""
    pair.session.touch(position.key)
    match what:
        case "move":
            position.offset, position.last_epoch = position.offset + 1, position.leader_epoch
        case "cut":
            position.offset = max(0, position.offset - 1)
        case "busy":
            position.busy = not position.busy
        case "back off":
            position.back_off(pair.now_ms, 200)

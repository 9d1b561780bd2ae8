"""Batches that wait for their coordinator's word: which guard they have, and in which order they go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.nursery import Nursery
from quorumlog.records.format.batch import TRANSACTIONAL, BatchHeader, parse_header
from quorumlog.records.rowwise.unsealed import lay_out_rows
from quorumlog.settings.transactions import VerificationConfig
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.verified_appends import Sender, VerifiedAppends
from quorumlog_broker.coordinator.runtime.verifier import Producer, Verifier
from quorumlog_broker.produce.pending_append import AppendResult, PendingAppend
from quorumlog_broker.produce.produce_path import ProducePath
from quorumlog_broker.produce.transactional import Verified
from quorumlog_storage.producers.verification import Guard, Verifications
from tests.rules import rule

E = ErrorCode
PID, EPOCH = 7, 3
LIMIT_S = 5
TV1, TV2 = Sender("x", adds=False, takes_abortable=True), Sender("x", adds=True, takes_abortable=True)


def batch(sequence: int, epoch: int = EPOCH) -> bytes:
    made = lay_out_rows([(1, None, b"v", ())])
    made.attributes |= TRANSACTIONAL
    return bytes(made.seal(PID, epoch, sequence))


@dataclass
class Path:
    """One partition, as `ProducePath` has it. `marker` ends the transaction and what was verified for it."""

    verifications: Verifications = field(default_factory=Verifications)
    is_open: bool = False
    leads: bool = True
    appended: list[int] = field(default_factory=list)

    def marker(self) -> None:
        self.is_open = False
        self.verifications.end(PID)

    def begin_verification(
        self, topic: Uuid | str, index: int, header: BatchHeader, *, epoch_per_transaction: bool
    ) -> Guard | None:
        if not self.leads:
            raise ApiError(E.NOT_LEADER_OR_FOLLOWER, "")
        if self.is_open:
            return None
        return self.verifications.begin(PID, header.producer_epoch, header.base_sequence, now_ms=0)

    def append(
        self, topic: Uuid | str, index: int, records: bytes, *, acks: int, timeout_ms: int, verified: Verified
    ) -> PendingAppend:
        if not self.is_open and not self.verifications.holds(PID, verified.guard):
            raise ApiError(E.INVALID_TXN_STATE, "")
        self.is_open = True
        self.verifications.end(PID)
        self.appended.append(parse_header(records).base_sequence)
        pending = PendingAppend(Turn(), AppendResult(0, 0))
        pending.settle(None)
        return pending


class Coordinator:
    """answers: for each question what happens before it is answered, and the answer."""

    def __init__(self, *answers: tuple[Callable[[], None], ErrorCode] | ErrorCode) -> None:
        self.answers = [one if isinstance(one, tuple) else (lambda: None, one) for one in answers]
        self.asked = 0

    async def ask(self, producer: Producer, partition: tuple[str, int]) -> ErrorCode:
        self.asked += 1
        await asyncio.sleep(0)
        before, answer = self.answers.pop(0)
        before()
        await asyncio.sleep(0)
        return answer


class World:
    def __init__(self, *answers: Any, enable: bool = True, **config: Any) -> None:
        self.path, self.coordinator = Path(), Coordinator(*answers)
        self.config = VerificationConfig(enable=enable, retry_ms=1, max_wait_ms=50, **config)

    def run(self, *steps: Callable[[VerifiedAppends], Awaitable[AppendResult] | None]) -> list[ErrorCode]:
        """Each step is taken in a turn of its own; what its append came to."""

        async def one(pending: Awaitable[AppendResult]) -> ErrorCode:
            try:
                await pending
            except ApiError as error:
                return error.code
            return E.NONE

        async def all_of_them() -> list[ErrorCode]:
            loop = asyncio.get_running_loop()
            nursery = Nursery(lambda name, error: pytest.fail(f"{name}: {error!r}"))
            appends = VerifiedAppends(
                cast(ProducePath, self.path),
                cast(Verifier, self.coordinator),
                self.config,
                verifies=lambda: self.config.enable,
                clock=cast(Any, type("Clock", (), {"now_ms": lambda _: int(loop.time() * 1000)})()),
                turn=Turn(),
                nursery=nursery,
            )
            begun = []
            for step in steps:
                begun.append(asyncio.ensure_future(one(found)) if (found := step(appends)) is not None else None)
                await asyncio.sleep(0)
            async with asyncio.timeout(LIMIT_S):
                codes = [await one for one in begun if one is not None]
            await nursery.close()
            return codes

        return asyncio.run(all_of_them())


def send(sequence: int, sender: Sender = TV2) -> Callable[[VerifiedAppends], Awaitable[AppendResult]]:
    return lambda appends: appends.append("t", "t", 0, batch(sequence), sender=sender, acks=-1, timeout_ms=1)


def test_only_so_many_batches_wait() -> None:
    def refused(appends: VerifiedAppends) -> None:
        with pytest.raises(ApiError) as caught:
            send(2)(appends)
        assert caught.value.code is E.NOT_ENOUGH_REPLICAS and caught.value.code.retriable

    world = World(E.PRODUCER_FENCED, max_waiting=2)
    assert world.run(send(0), send(1), refused) == [E.INVALID_PRODUCER_EPOCH] * 2
    assert world.coordinator.asked == 1


def test_a_batch_that_has_gone_on_leaves_its_place_to_another() -> None:
    async def gone(appends: VerifiedAppends) -> AppendResult:
        for number in range(5):
            with pytest.raises(ApiError) as caught:
                await send(number)(appends)
            assert caught.value.code is E.INVALID_PRODUCER_EPOCH
        return AppendResult(0, 0)

    assert World(*[E.PRODUCER_FENCED] * 5, max_waiting=1).run(gone) == [E.NONE]


@rule("bug 12671")
@pytest.mark.parametrize("sender", [TV1, TV2], ids=["tv1", "tv2"])
def test_batches_that_come_behind_one_that_waits_go_on_in_their_order(sender: Sender) -> None:
    world = World(E.NONE)
    assert world.run(send(0, sender), send(1, sender), send(2, sender)) == [E.NONE] * 3
    assert world.path.appended == [0, 1, 2]
    assert world.coordinator.asked == 1


def test_the_marker_of_the_last_transaction_does_not_take_the_guard_of_the_next_question() -> None:
    world = World()
    world.coordinator.answers = [(lambda: None, E.CONCURRENT_TRANSACTIONS), (lambda: None, E.NONE)]
    world.coordinator.answers[0] = (world.path.marker, E.CONCURRENT_TRANSACTIONS)
    assert world.run(send(0)) == [E.NONE]
    assert (world.path.appended, world.coordinator.asked) == ([0], 2)


@rule("bug 12671")
def test_a_marker_behind_the_question_refuses_the_batch() -> None:
    world = World()
    world.coordinator.answers = [(world.path.marker, E.NONE)]
    assert world.run(send(0, TV1)) == [E.INVALID_TXN_STATE]


@rule("bug 12671")
def test_a_batch_that_came_behind_the_marker_is_asked_for_by_itself() -> None:
    """An answer from before the marker says nothing of it."""
    world = World()
    world.coordinator.answers = [(lambda: None, E.NONE), (lambda: None, E.TRANSACTION_ABORTABLE)]
    mark: Callable[[VerifiedAppends], None] = lambda _: world.path.marker()  # noqa: E731
    assert world.run(send(0, TV1), mark, send(1, TV1)) == [E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE]
    assert (world.path.appended, world.coordinator.asked) == ([], 2)


@rule("group 6.8")
@pytest.mark.parametrize(
    ("code", "sender", "told"),
    [
        (E.NOT_COORDINATOR, TV2, E.NOT_ENOUGH_REPLICAS),
        (E.COORDINATOR_LOAD_IN_PROGRESS, TV1, E.NOT_ENOUGH_REPLICAS),
        (E.NETWORK_EXCEPTION, TV1, E.NOT_ENOUGH_REPLICAS),
        (E.CONCURRENT_TRANSACTIONS, TV1, E.NOT_ENOUGH_REPLICAS),
        (E.PRODUCER_FENCED, TV2, E.INVALID_PRODUCER_EPOCH),
        (E.TRANSACTION_ABORTABLE, TV1, E.TRANSACTION_ABORTABLE),
        (E.TRANSACTION_ABORTABLE, TV1._replace(takes_abortable=False), E.INVALID_TXN_STATE),
        (E.INVALID_PRODUCER_ID_MAPPING, TV1, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_the_producer_is_told(code: ErrorCode, sender: Sender, told: ErrorCode) -> None:
    assert World(code).run(send(0, sender)) == [told]


def test_a_producer_that_has_to_wait_for_too_long_is_told_so() -> None:
    assert World(*[E.CONCURRENT_TRANSACTIONS] * 100).run(send(0)) == [E.CONCURRENT_TRANSACTIONS]


def test_nobody_is_asked_where_the_transaction_is_open_or_verification_is_off() -> None:
    world = World(enable=False)
    assert world.run(send(0, TV1), send(1, TV1)) == [E.NONE] * 2
    assert world.coordinator.asked == 0
    asked = World(E.NONE, enable=False)
    assert asked.run(send(0, TV2)) == [E.NONE]
    assert asked.coordinator.asked == 1, "the partition has to be added"


def test_a_leader_that_has_resigned_meanwhile_refuses_all() -> None:
    world = World(E.CONCURRENT_TRANSACTIONS)

    def resign() -> None:
        world.path.leads = False

    world.coordinator.answers = [(resign, E.CONCURRENT_TRANSACTIONS)]
    assert world.run(send(0), send(1)) == [E.NOT_LEADER_OR_FOLLOWER] * 2

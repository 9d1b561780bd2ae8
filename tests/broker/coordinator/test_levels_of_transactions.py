"""No answer of a transaction's coordinator depends on the level of transaction.version: a client cannot see it.

Every request of every producer, in every state, is answered as at the newest level: whatever level was in force before,
whichever comes in the middle, and whether the state was loaded in between. A coordinator whose metadata is late goes
by another level than the one that its clients were told, so this is about more than downgrades.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import product
from typing import Any

import pytest

from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from tests.broker.coordinator.transaction_world import TIMEOUT_MS, A, B, TransactionWorld
from tests.rules import rule

NEWEST = 2
LEVELS = (0, 1, 2)
CLIENTS = {"keeps its epoch": 0, "an epoch for each transaction": 2}
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "timed out", "fenced")
Producer = tuple[int, int]
Ask = Callable[[TransactionWorld, Producer, int], int]


def _init(world: TransactionWorld, producer: Producer, _version: int) -> int:
    return world.init()


def _init_again(world: TransactionWorld, producer: Producer, _version: int) -> int:
    request = InitProducerIdRequest(
        transactional_id="x", transaction_timeout_ms=TIMEOUT_MS, producer_id=producer[0], producer_epoch=producer[1]
    )
    return world.call("init_producer_id", request)


def _add(world: TransactionWorld, producer: Producer, version: int) -> int:
    return world.add(producer, B, transaction_version=version)


def _verify(world: TransactionWorld, producer: Producer, _version: int) -> int:
    return world.verify(producer, A)


def _add_offsets(world: TransactionWorld, producer: Producer, _version: int) -> int:
    return world.add_offsets(producer)


def _commit(world: TransactionWorld, producer: Producer, version: int) -> int:
    return world.end(producer, version=version)


def _abort(world: TransactionWorld, producer: Producer, version: int) -> int:
    return world.end(producer, committed=False, version=version)


def _describe(world: TransactionWorld, _producer: Producer, _version: int) -> int:
    return world.call("describe", "x")


REQUESTS: dict[str, Ask] = {
    "InitProducerId": _init,
    "InitProducerId of a known producer": _init_again,
    "AddPartitionsToTxn": _add,
    "AddPartitionsToTxn to verify": _verify,
    "AddOffsetsToTxn": _add_offsets,
    "EndTxn to commit": _commit,
    "EndTxn to abort": _abort,
    "DescribeTransactions": _describe,
}


def answers(before: int, after: int, *, state: str, request: str, version: int, fails_over: bool) -> list[Any]:
    """What the client is told: of its way to the state, of the request, of the same once more, and of what follows."""
    world = TransactionWorld(version=before)
    producer = world.started()
    if state != "Empty":
        world.add(producer, A, transaction_version=version)
    last = producer
    world.automark = not state.startswith("Prepare")
    if state == "timed out":
        world.pass_ms(TIMEOUT_MS + 10_000)
    elif state == "fenced":
        world.init()
    elif state not in ("Empty", "Ongoing"):
        ended = world.end(producer, committed=state.endswith("Commit"), version=version)
        if version == NEWEST:
            producer = world.producer(ended)
    world.version = after
    if fails_over:
        world.fail_over()
    for one in (producer, last, producer):
        REQUESTS[request](world, one, version)
    world.automark = True
    world.settle()
    REQUESTS[request](world, producer, version)
    return [asdict(world.answers[number]) for number in sorted(world.answers)]


@rule("group 6.20")
@pytest.mark.parametrize("last_epoch", [None, 1], ids=["", "epochs run out"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("state", STATES)
def test_what_a_client_is_told_does_not_depend_on_the_level(
    state: str, request_: str, client: str, last_epoch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if last_epoch is not None:
        for module in ("state.table", "state.states", "init_producer", "end", "partitions"):
            monkeypatch.setattr(f"quorumlog_broker.coordinator.transactions.{module}.LAST_EPOCH", last_epoch)
    for fails_over in (False, True):
        told = partial(answers, state=state, request=request_, version=CLIENTS[client], fails_over=fails_over)
        want = told(NEWEST, NEWEST)
        for before, after in product(LEVELS, LEVELS):
            assert told(before, after) == want, f"level {before}, then {after}, failover: {fails_over}"


def test_the_table_asks_every_call_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of joint transactions are asked in joint/test_ends.py."""
    calls = {name for name, one in vars(TransactionShard).items() if "call" in getattr(one, "__annotations__", {})}
    calls = {name for name in calls if not name.endswith("_joint")}
    asked: set[str] = set()
    call = TransactionWorld.call

    def noted(world: TransactionWorld, name: str, *args: Any) -> int:
        asked.add(name)
        return call(world, name, *args)

    monkeypatch.setattr(TransactionWorld, "call", noted)
    for ask in REQUESTS.values():
        world = TransactionWorld()
        ask(world, world.started(), NEWEST)
    assert asked == calls and len(calls) == 5


@rule("group 2.3")
@pytest.mark.parametrize("level", LEVELS)
def test_a_record_is_of_the_level_unless_it_would_forget_something(level: int) -> None:
    for version, want in ((0, {0} if level == 0 else {1}), (2, {0, 1} if level == 0 else {1})):
        world = TransactionWorld(version=level)
        producer = world.started()
        world.add(producer, A, transaction_version=version)
        world.end(producer, version=version)
        assert {write.value[1] for write in world.log if write.value} == want

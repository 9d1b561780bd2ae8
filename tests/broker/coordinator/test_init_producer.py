"""InitProducerId of transactional ids: which producer is given which epoch, and who is fenced."""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.settings.transactions import MAX_ID_BYTES, TransactionConfig
from quorumlog_broker.coordinator.transactions.state.table import LAST_EPOCH
from tests.broker.coordinator.transaction_world import FIRST_ID, TIMEOUT_MS, A, TransactionWorld
from tests.rules import rule


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


def again(world: TransactionWorld, producer: tuple[int, int]) -> int:
    """A producer that says who it is."""
    return world.init(producer_id=producer[0], producer_epoch=producer[1])


def worn(world: TransactionWorld, *, epoch: int = LAST_EPOCH) -> tuple[int, int]:
    """A producer whose epoch is this one."""
    producer = world.started()
    while producer[1] < epoch:
        producer = world.started()
    return producer


@pytest.fixture
def quick(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> TransactionWorld:
    """Epochs run out at 3."""
    for module in ("state.table", "state.states", "init_producer", "end", "partitions"):
        monkeypatch.setattr(f"quorumlog_broker.coordinator.transactions.{module}.LAST_EPOCH", 3)
    return world


def test_the_last_epoch_of_a_producer_leaves_one_for_the_markers() -> None:
    assert LAST_EPOCH == 32_766


# --- what is refused ---

REFUSED = [
    ("no id", {"transactional_id": ""}, E.INVALID_REQUEST),
    ("an id that no record can hold", {"transactional_id": "x" * (MAX_ID_BYTES + 1)}, E.INVALID_REQUEST),
    ("a producer id without an epoch", {"producer_id": 5}, E.INVALID_REQUEST),
    ("an epoch without a producer id", {"producer_epoch": 5}, E.INVALID_REQUEST),
    ("no time", {"timeout_ms": 0}, E.INVALID_TRANSACTION_TIMEOUT),
    ("less than no time", {"timeout_ms": -1}, E.INVALID_TRANSACTION_TIMEOUT),
    ("too much time", {"timeout_ms": 900_001}, E.INVALID_TRANSACTION_TIMEOUT),
]


@rule("group 6.1")
@pytest.mark.parametrize(("request_", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(world: TransactionWorld, request_: dict[str, object], code: E) -> None:
    assert world.code(world.init(**request_)) == code  # type: ignore[arg-type]
    assert world.log == []


@rule("group 6.1")
@pytest.mark.parametrize("timeout_ms", [1, 900_000])
def test_the_longest_and_the_shortest_time(world: TransactionWorld, timeout_ms: int) -> None:
    world.started(timeout_ms=timeout_ms)
    assert world.described().transaction_timeout_ms == timeout_ms


def test_the_longest_id(world: TransactionWorld) -> None:
    assert world.started(transactional_id="x" * MAX_ID_BYTES) == (FIRST_ID, 0)


def test_without_producer_ids_the_producer_asks_again(world: TransactionWorld) -> None:
    world.ids_left = 0
    assert world.code(world.init()) == E.COORDINATOR_LOAD_IN_PROGRESS
    world.ids_left = 1
    assert world.started() == (FIRST_ID, 0)
    assert world.started() == (FIRST_ID, 1), "that takes none"


def test_ids_have_a_limit() -> None:
    world = TransactionWorld(TransactionConfig(max_ids=2))
    first = world.started(transactional_id="a")
    world.started(transactional_id="b")
    assert world.code(world.init("c")) == E.POLICY_VIOLATION
    assert world.started(transactional_id="a") == (first[0], 1), "a known one is no new one"


# --- epochs ---


def test_each_producer_fences_the_one_before(world: TransactionWorld) -> None:
    first = world.started()
    second = world.started()
    assert (first, second) == ((FIRST_ID, 0), (FIRST_ID, 1))
    assert world.code(world.add(first)) == E.PRODUCER_FENCED
    assert world.code(world.add(second)) == E.NONE


def test_ids_have_producers_of_their_own(world: TransactionWorld) -> None:
    assert [world.started(transactional_id=name) for name in ("a", "b", "a")] == [
        (FIRST_ID, 0),
        (FIRST_ID + 1, 0),
        (FIRST_ID, 1),
    ]


@rule("group 6.2")
def test_a_producer_that_says_who_it_is_goes_on(world: TransactionWorld) -> None:
    first = world.started()
    assert world.producer(again(world, first)) == (FIRST_ID, 1)
    assert world.producer(again(world, first)) == (FIRST_ID, 1), "the answer was lost"
    assert world.producer(again(world, (FIRST_ID, 1))) == (FIRST_ID, 2)
    assert world.code(again(world, first)) == E.PRODUCER_FENCED


@rule("group 6.1", "group 6.5")
def test_a_producer_that_was_replaced_is_told(world: TransactionWorld) -> None:
    first = world.started()
    world.started()
    assert world.code(again(world, first)) == E.PRODUCER_FENCED
    assert world.code(again(world, (FIRST_ID, 2))) == E.PRODUCER_FENCED, "an epoch that nobody has"
    assert world.code(again(world, (FIRST_ID + 1, 1))) == E.PRODUCER_FENCED, "of another id"
    number = world.init(producer_id=FIRST_ID, producer_epoch=0, takes_producer_fenced=False)
    assert world.code(number) == E.INVALID_PRODUCER_EPOCH


def test_a_repeated_call_at_the_next_coordinator_is_fenced(world: TransactionWorld) -> None:
    first = world.started()
    again(world, first)
    world.fail_over()
    assert world.code(again(world, first)) == E.PRODUCER_FENCED


def test_a_producer_whose_id_was_forgotten_gets_another(world: TransactionWorld) -> None:
    assert world.producer(again(world, (77, 5))) == (FIRST_ID, 0)


# --- the end of the epochs ---


@rule("group 6.3")
def test_another_producer_id_when_the_epochs_run_out(quick: TransactionWorld) -> None:
    last = worn(quick, epoch=3)
    assert last == (FIRST_ID, 3)
    assert quick.started() == (FIRST_ID + 1, 0)
    assert quick.code(again(quick, last)) == E.PRODUCER_FENCED


@rule("group 6.2")
def test_the_last_producer_of_an_id_is_known_when_it_asks_again(quick: TransactionWorld) -> None:
    last = worn(quick, epoch=3)
    for _ in range(3):
        assert quick.producer(again(quick, last)) == (FIRST_ID + 1, 0), "also when the answer was lost, twice"
    assert quick.code(quick.add((FIRST_ID + 1, 0))) == E.NONE
    assert quick.code(again(quick, last)) == E.PRODUCER_FENCED


def test_without_producer_ids_the_last_epoch_stays(quick: TransactionWorld) -> None:
    last = worn(quick, epoch=3)
    quick.ids_left = 0
    assert quick.code(quick.init()) == E.COORDINATOR_LOAD_IN_PROGRESS
    assert quick.code(quick.add(last)) == E.NONE


# --- with a transaction ---


@rule("group 6.4")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_is_aborted_first(version: int) -> None:
    world = TransactionWorld(version=version)
    first = world.bring_to("Ongoing")
    assert world.code(world.init()) == E.CONCURRENT_TRANSACTIONS
    assert world.state() == "PrepareAbort"
    (decided,) = world.decided
    assert not decided.ending.committed and decided.partitions == (A,)
    assert decided.ending.producer_epoch == first[1] + 1 and decided.ending.transaction_version == 0
    assert world.code(world.init()) == E.CONCURRENT_TRANSACTIONS, "its markers are not written"
    world.automark = True
    world.settle()
    world.fail_over()
    assert world.started() == (FIRST_ID, 2)
    assert world.code(world.end(first)) == E.PRODUCER_FENCED


@rule("group 6.4")
def test_an_abort_is_told_once_it_is_committed(world: TransactionWorld) -> None:
    world.bring_to("Ongoing")
    world.autocommit = False
    number = world.init()
    assert number not in world.answers
    world.settle()
    assert world.code(number) == E.CONCURRENT_TRANSACTIONS


@rule("group 6.4", "bug 18575")
@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort"])
def test_a_decided_transaction_is_waited_for(world: TransactionWorld, state: str) -> None:
    world.bring_to(state)
    records = len(world.log)
    assert world.code(world.init()) == E.CONCURRENT_TRANSACTIONS
    assert world.state() == state and len(world.log) == records


@rule("group 6.1")
def test_only_the_current_producer_or_a_new_one_aborts(world: TransactionWorld) -> None:
    world.started()
    producer = world.bring_to("Ongoing")
    assert world.code(again(world, (producer[0], producer[1] - 1))) == E.PRODUCER_FENCED
    assert world.state() == "Ongoing", "a late producer must not end the work of its successor"
    assert world.code(again(world, producer)) == E.CONCURRENT_TRANSACTIONS


@rule("bug 18575")
@pytest.mark.parametrize("version", [0, 2])
def test_an_abort_uses_the_last_epoch_up(quick: TransactionWorld, version: int) -> None:
    quick.version = version
    last = worn(quick, epoch=3)
    quick.add(last, A)
    quick.automark = False
    assert quick.code(quick.init()) == E.CONCURRENT_TRANSACTIONS
    assert quick.decided[0].ending.producer_epoch == 4, "one that no producer has"
    quick.automark = True
    quick.settle()
    found = quick.started()
    assert found[0] > FIRST_ID and found[1] == 0
    assert quick.code(quick.add(last)) == E.INVALID_PRODUCER_ID_MAPPING


def test_an_abort_waits_for_no_producer_id(quick: TransactionWorld) -> None:
    last = worn(quick, epoch=3)
    quick.add(last, A)
    quick.ids_left = 0
    quick.pass_ms(TIMEOUT_MS + 10_000)
    assert quick.state() == "CompleteAbort"
    assert quick.code(quick.init()) == E.COORDINATOR_LOAD_IN_PROGRESS
    quick.ids_left = 1
    assert quick.started() == (FIRST_ID + 1, 0)


# --- what is not committed ---


@rule("group 6.6")
def test_an_epoch_is_told_once_it_is_committed() -> None:
    world = TransactionWorld(autocommit=False)
    first = world.init()
    second = world.init()
    assert first not in world.answers and world.code(second) == E.CONCURRENT_TRANSACTIONS
    assert world.shard.resigned() == [first]
    world.fail_over(keep=0)
    world.autocommit = True
    assert world.started() == (FIRST_ID + 1, 0), "an id that may have been told is never used again"


@rule("bug 9666")
def test_an_epoch_that_was_cut_is_nobodys() -> None:
    world = TransactionWorld(autocommit=False)
    world.init()
    world.settle()
    lost = world.init()
    world.fail_over(keep=1)
    world.settle()
    assert lost not in world.answers
    number = world.init()
    world.settle()
    assert world.producer(number) == (FIRST_ID, 1)

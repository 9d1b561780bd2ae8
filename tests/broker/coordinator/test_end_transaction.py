"""EndTxn in every state, of producers that keep their epoch (TV1) and of those that get one for each transaction (TV2).

Also: the markers that follow, what a coordinator does that finds a decision in its log, and time-outs.
"""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.settings.transactions import TransactionConfig
from tests.broker.coordinator.transaction_world import FIRST_ID, TIMEOUT_MS, A, B, TransactionWorld
from tests.rules import rule

OK, FENCED, STATE, BUSY = E.NONE, E.PRODUCER_FENCED, E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS
STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


@pytest.fixture
def quick(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> TransactionWorld:
    """Epochs run out at 3."""
    for module in ("state.table", "state.states", "init_producer", "end", "partitions"):
        monkeypatch.setattr(f"quorumlog_broker.coordinator.transactions.{module}.LAST_EPOCH", 3)
    return world


def older(producer: tuple[int, int]) -> tuple[int, int]:
    return producer[0], producer[1] - 1


def newer(producer: tuple[int, int]) -> tuple[int, int]:
    return producer[0], producer[1] + 1


# --- the table of a producer that keeps its epoch ---

TV1 = {  # commit, abort
    "Empty": (STATE, STATE),
    "Ongoing": (OK, OK),
    "PrepareCommit": (BUSY, STATE),
    "PrepareAbort": (STATE, BUSY),
    "CompleteCommit": (OK, STATE),
    "CompleteAbort": (STATE, OK),
}


@rule("group 6.9", "bug ydb 52731")
@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("state", STATES)
def test_a_producer_that_keeps_its_epoch(state: str, committed: bool, version: int) -> None:
    world = TransactionWorld(version=version)
    world.started()
    producer = world.bring_to(state)
    records = len(world.log)
    assert world.code(world.end(older(producer), committed=committed)) == FENCED
    assert world.code(world.end(newer(producer), committed=committed)) == FENCED
    assert len(world.log) == records
    number = world.end(producer, committed=committed, version=0)
    assert world.code(number) == TV1[state][not committed]
    assert world.answers[number].producer_id == world.answers[number].producer_epoch == -1
    if state == "Ongoing":
        assert world.state() == ("PrepareCommit" if committed else "PrepareAbort")
        assert world.decided[0].ending == (*producer, committed, 5, min(version, 0))
    else:
        assert world.state() == state and len(world.log) == records


# --- the table of a producer with an epoch for each transaction ---

TV2 = {  # commit, abort; the same repeated, that is, with the epoch before
    "Empty": (STATE, OK, FENCED, FENCED),
    "Ongoing": (OK, OK, FENCED, FENCED),
    "PrepareCommit": (BUSY, BUSY, BUSY, STATE),  # of the next transaction: it waits for the markers of this one
    "PrepareAbort": (BUSY, BUSY, STATE, BUSY),
    "CompleteCommit": (STATE, OK, OK, STATE),
    "CompleteAbort": (STATE, OK, STATE, OK),
}


@rule("group 6.7", "group 6.10", "bug 17754")
@pytest.mark.parametrize("repeated", [False, True], ids=["", "again"])
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("state", STATES)
def test_a_producer_with_an_epoch_for_each_transaction(
    world: TransactionWorld, state: str, committed: bool, repeated: bool
) -> None:
    world.started()
    producer = world.bring_to(state)
    records = len(world.log)
    assert world.code(world.end(newer(producer), committed=committed)) == FENCED
    assert world.code(world.end((producer[0], producer[1] - 2), committed=committed)) == FENCED
    world.decided = []
    number = world.end(older(producer) if repeated else producer, committed=committed)
    assert world.code(number) == TV2[state][2 * repeated + (not committed)]
    if world.code(number) == OK and repeated:
        assert world.producer(number) == producer and len(world.log) == records
    elif world.code(number) == OK and state == "Ongoing":
        assert world.state() == ("PrepareCommit" if committed else "PrepareAbort")
        assert world.producer(number) == newer(producer)
        assert world.decided[0].ending == (*newer(producer), committed, 5, 2)
    elif world.code(number) == OK:
        assert world.producer(number) == newer(producer), "an empty transaction is aborted for its epoch"
        assert world.state() == "CompleteAbort" and world.decided == []
    else:
        assert world.state() == state and len(world.log) == records


@rule("group 6.9", "bug 9600")
@pytest.mark.parametrize("version", [0, 2])
def test_who_else_is_refused(version: int) -> None:
    world = TransactionWorld(version=version)
    producer = world.bring_to("Ongoing")
    assert world.code(world.end((producer[0] + 1, producer[1]))) == E.INVALID_PRODUCER_ID_MAPPING
    assert world.code(world.end(producer, transactional_id="unknown")) == E.INVALID_PRODUCER_ID_MAPPING
    assert world.code(world.end(producer, transactional_id="")) == E.INVALID_REQUEST
    assert world.code(world.end(older(producer), takes_producer_fenced=False)) == E.INVALID_PRODUCER_EPOCH
    assert world.state() == "Ongoing"


@rule("group 6.10", "bug 17754")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_a_fenced_producer_is_not_given_the_epoch_of_one_that_keeps_its_own(
    world: TransactionWorld, committed: bool
) -> None:
    """Its EndTxn looks like a repetition: the successor's epoch is the next one. Both would go on with the same."""
    fenced = world.started()
    successor = world.started()
    assert successor == newer(fenced)
    world.add(successor, A)
    world.end(successor, committed=committed, version=0)
    assert world.code(world.end(fenced, committed=committed)) == FENCED
    world.settle()
    world.write_markers()
    world.settle()
    assert world.state() == ("CompleteCommit" if committed else "CompleteAbort")
    assert world.code(world.end(fenced, committed=committed)) == FENCED


@rule("group 6.20")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("level", [0, 1])
def test_a_lower_level_changes_nothing_for_a_producer_with_an_epoch_for_each_transaction(
    level: int, committed: bool
) -> None:
    """It begins its sequences anew with each transaction. Under the old epoch they would pass for repetitions."""
    world = TransactionWorld(version=2)
    producer = world.started()
    world.version = level
    for _ in range(3):
        world.add(producer, A, transaction_version=2)
        world.automark = False
        ended = world.end(producer, committed=committed, version=2)
        assert world.producer(ended) == newer(producer)
        assert world.decided[0].ending == (*newer(producer), committed, world.coordinator_epoch, 2)
        world.fail_over()
        world.automark = True
        world.settle()
        assert world.producer(world.end(producer, committed=committed, version=2)) == newer(producer), "repeated"
        producer = newer(producer)


@pytest.mark.parametrize("version", [-1, 3, 99_999])
def test_rules_that_this_software_does_not_know_are_the_nearest_that_it_knows(version: int) -> None:
    world = TransactionWorld()
    producer = world.started()
    world.add(producer, A, transaction_version=version)
    world.automark = False
    world.end(producer, version=version)
    assert world.decided[0].ending.transaction_version == (0 if version < 0 else 2)


# --- where the epochs run out ---


@rule("group 6.10")
def test_the_last_producer_of_an_id_that_was_replaced_ends_nothing(quick: TransactionWorld) -> None:
    """Its EndTxn looks like a repetition of the last transaction of its id; but there was none."""
    last = worn(quick)
    assert quick.started() == (FIRST_ID + 1, 0)
    assert quick.code(quick.end(last)) == E.INVALID_PRODUCER_ID_MAPPING


def worn(world: TransactionWorld) -> tuple[int, int]:
    producer = world.started()
    while producer[1] < 3:
        producer = world.started()
    return producer


@rule("group 6.3", "group 6.10", "bug 18575")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_the_last_transaction_of_a_producer_id(quick: TransactionWorld, committed: bool) -> None:
    last = worn(quick)
    quick.add(last, A)
    quick.automark = False
    number = quick.end(last, committed=committed)
    assert quick.producer(number) == (FIRST_ID + 1, 0)
    assert quick.decided[0].ending[:3] == (FIRST_ID, 4, committed), "an epoch that no producer has"
    for too_early in (quick.add((FIRST_ID + 1, 0)), quick.end((FIRST_ID + 1, 0), committed=committed)):
        assert quick.code(too_early) == BUSY, "it was told that id, and goes on after the markers"
    assert quick.code(quick.add((FIRST_ID + 1, 1))) == E.INVALID_PRODUCER_ID_MAPPING
    assert quick.code(quick.end(last, committed=committed)) == BUSY
    quick.fail_over()
    quick.write_markers()
    quick.settle()
    repeated = quick.end(last, committed=committed)
    assert quick.producer(repeated) == (FIRST_ID + 1, 0)
    assert quick.code(quick.end(last, committed=not committed)) == STATE
    quick.fail_over()
    assert quick.producer(quick.end(last, committed=committed)) == (FIRST_ID + 1, 0), "that is in the log"
    assert quick.code(quick.add((FIRST_ID + 1, 0))) == OK
    assert quick.code(quick.end(last, committed=committed)) == E.INVALID_PRODUCER_ID_MAPPING


def test_the_last_transaction_waits_for_a_producer_id(quick: TransactionWorld) -> None:
    last = worn(quick)
    quick.add(last, A)
    quick.ids_left = 0
    assert quick.code(quick.end(last)) == E.COORDINATOR_LOAD_IN_PROGRESS
    assert quick.state() == "Ongoing"
    quick.ids_left = 1
    assert quick.producer(quick.end(last)) == (FIRST_ID + 1, 0)


# --- the decision and its markers ---


@rule("group 6.11")
@pytest.mark.parametrize("version", [0, 2])
def test_nothing_is_told_and_no_marker_written_before_the_decision_is_committed(version: int) -> None:
    world = TransactionWorld(version=version)
    producer = world.bring_to("Ongoing")
    world.autocommit = False
    ended = world.end(producer)
    assert ended not in world.answers and world.decided == []
    assert world.code(world.end(producer)) == BUSY, "so is whoever asks again"
    world.settle()
    assert world.code(ended) == OK
    (decided,) = world.decided
    assert decided.partitions == (A,) and decided.ending.committed


def test_a_decision_that_was_cut_was_none(world: TransactionWorld) -> None:
    producer = world.bring_to("Ongoing")
    world.autocommit = False
    ended = world.end(producer)
    assert world.shard.resigned() == [ended]
    world.fail_over(keep=len(world.log) - 1)
    world.autocommit = True
    world.settle()
    assert world.decided == [] and world.state() == "Ongoing"
    assert world.producer(world.end(producer, committed=False)) == newer(producer)


@rule("group 6.12", "bug 9777")
def test_a_transaction_is_complete_with_its_last_marker(world: TransactionWorld) -> None:
    producer = world.started()
    world.add(producer, A, B)
    world.automark = False
    world.end(producer)
    epoch = world.decided[0].ending.producer_epoch
    for partition in (A, A, ("other", 0)):
        world.step(world.shard.marker_written, "x", epoch, partition)
        assert world.state() == "PrepareCommit"
    world.step(world.shard.marker_written, "x", epoch - 1, B)
    assert world.state() == "PrepareCommit", "of an earlier transaction"
    world.step(world.shard.marker_written, "x", epoch, B)
    assert world.state() == "CompleteCommit" and world.described().topics == ()
    world.step(world.shard.marker_written, "x", epoch, B)
    assert world.state() == "CompleteCommit"


@rule("group 6.12", "bug 9777")
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_the_next_coordinator_has_all_markers_written_again(world: TransactionWorld, committed: bool) -> None:
    producer = world.started()
    world.add(producer, A, B)
    world.automark = False
    world.end(producer, committed=committed)
    (before,) = world.decided
    world.step(world.shard.marker_written, "x", before.ending.producer_epoch, A)
    world.fail_over()
    (after,) = world.decided
    assert after == before._replace(ending=before.ending._replace(coordinator_epoch=6))
    assert after.partitions == (A, B)
    world.write_markers()
    world.settle()
    assert world.state() == ("CompleteCommit" if committed else "CompleteAbort")


def test_what_was_loaded_counts_once_it_is_committed(world: TransactionWorld) -> None:
    producer = world.bring_to("Ongoing")
    world.autocommit = False
    world.end(producer)
    world.fail_over()
    assert world.decided == []
    for number in (
        world.end(producer),
        world.add(producer),
        world.verify(producer),
        world.init(),
        world.add_offsets(producer),
    ):
        assert world.code(number) == E.COORDINATOR_LOAD_IN_PROGRESS
    assert world.answers[world.call("describe", "x")].error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    world.commit_to(len(world.log) - 1)
    assert world.decided == []
    world.commit_to(len(world.log))
    assert len(world.decided) == 1
    assert world.answers[world.call("describe", "x")].error_code == E.NONE


def test_a_coordinator_that_is_fenced_stops(world: TransactionWorld) -> None:
    world.bring_to("PrepareCommit")
    world.step(world.shard.marker_refused, "x", 0)
    assert world.shard.given_up == frozenset(), "of an earlier transaction"
    world.step(world.shard.marker_refused, "x", 1)
    assert world.shard.given_up == {"x"}
    world.step(world.shard.marker_written, "x", 1, A)
    assert world.state() == "PrepareCommit", "the next coordinator decides about it"
    world.automark = True
    world.fail_over()
    assert world.state() == "CompleteCommit"


# --- time-outs ---


@rule("group 6.15")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(version: int) -> None:
    world = TransactionWorld(version=version)
    producer = world.started()
    world.add(producer, A)
    world.pass_ms(TIMEOUT_MS)
    assert world.state() == "Ongoing"
    world.pass_ms(10_000)
    assert world.state() == "CompleteAbort"
    assert world.described().producer_epoch == producer[1] + 1
    assert world.code(world.add(producer)) == FENCED
    for committed in (True, False):
        assert world.code(world.end(producer, committed=committed)) == FENCED
    world.fail_over()
    for committed in (True, False):
        assert world.code(world.end(producer, committed=committed)) == FENCED


def test_a_transaction_in_time_is_not_aborted(world: TransactionWorld) -> None:
    producer = world.started()
    for _ in range(3):
        world.add(producer, A)
        world.pass_ms(TIMEOUT_MS // 2)
        producer = world.producer(world.end(producer))
    world.pass_ms(10 * TIMEOUT_MS)
    assert world.state() == "CompleteCommit" and world.shard.next_timer_ms() is None


@rule("group 6.15")
def test_a_transaction_does_not_last_longer_with_each_partition(world: TransactionWorld) -> None:
    producer = world.started()
    world.add(producer, A)
    world.pass_ms(TIMEOUT_MS - 5_000)
    world.add(producer, B)
    world.pass_ms(15_000)
    assert world.state() == "CompleteAbort"


@rule("bug redpanda 9571")
def test_time_goes_on_over_a_failover(world: TransactionWorld) -> None:
    producer = world.started()
    world.add(producer, A)
    world.pass_ms(TIMEOUT_MS - 20_000)
    world.fail_over()
    world.pass_ms(15_000)
    assert world.state() == "Ongoing"
    world.pass_ms(15_000)
    assert world.state() == "CompleteAbort"


@pytest.mark.parametrize("jump_ms", [-(10**9), 10**9], ids=["back", "ahead"])
def test_a_wall_clock_that_jumps_neither_aborts_nor_spares(world: TransactionWorld, jump_ms: int) -> None:
    world.add(world.started(), A)
    world.wall_offset_ms = jump_ms
    world.pass_ms(TIMEOUT_MS - 1)
    assert world.state() == "Ongoing"
    world.pass_ms(10_001)
    assert world.state() == "CompleteAbort"


@rule("bug redpanda 9571")
def test_after_a_failover_too_no_transaction_lasts_longer(world: TransactionWorld) -> None:
    world.add(world.started(), A)
    world.wall_offset_ms = -(10**9)
    world.fail_over()
    world.pass_ms(TIMEOUT_MS + 10_000)
    assert world.state() == "CompleteAbort"


@rule("bug 5351")
def test_what_is_not_committed_is_looked_at_again() -> None:
    world = TransactionWorld(TransactionConfig(abort_interval_ms=1_000))
    producer = world.started()
    world.autocommit = False
    world.add(producer, A)
    world.pass_ms(2 * TIMEOUT_MS)
    assert len(world.log) == 2
    world.settle()
    world.pass_ms(1_000)
    world.settle()
    assert world.code(world.add(producer)) == FENCED

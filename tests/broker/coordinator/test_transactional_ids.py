"""Transactional ids as they lie in the log, as tools see them, and when they are forgotten."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.transactions import ListTransactionsRequest, TransactionTopic
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.transactions import TRANSACTION, TransactionKey, TransactionStatus, TransactionValue
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.settings.transactions import DAY_MS, TransactionConfig
from quorumlog.slices import at_once
from quorumlog_broker.coordinator.transactions import expiry
from quorumlog_broker.coordinator.transactions.describe import unknown_states
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from tests.broker.coordinator.transaction_world import FIRST_ID, TIMEOUT_MS, WALL_MS, A, B, TransactionWorld, replay
from tests.rules import rule

START, LATER = "000001a1fb930148", "000001a1fb930149"
BEFORE = "01 00 08 00000000000003e9"


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


# --- records ---


@rule("group 2.1")
def test_records_are_byte_for_byte_kafkas(world: TransactionWorld) -> None:
    """Kafka's own bytes of such a transaction, but for the times."""
    world.version = 1
    producer = world.started(transactional_id="tx11")
    world.add(producer, ("txn", 0), ("txn", 1), transactional_id="tx11")
    world.pass_ms(1)
    world.end(producer, transactional_id="tx11", version=0)
    start = f"0001 {FIRST_ID:016x} 0000 0000ea60"
    topics = "02 0474786e 03 00000000 00000001 00"
    assert [write.key.hex() for write in world.log] == ["0000000474783131"] * 4
    assert [write.value for write in world.log] == [
        bytes.fromhex(text)
        for text in (
            f"{start} 00 00 {START} ffffffffffffffff {BEFORE}",
            f"{start} 01 {topics} {START} {START} {BEFORE}",
            f"{start} 02 {topics} {LATER} {START} {BEFORE}",
            f"{start} 04 01 {LATER} {START} {BEFORE}",
        )
    ]


@rule("group 2.3")
def test_records_of_an_old_level_are_of_the_old_version() -> None:
    world = TransactionWorld(version=0)
    producer = world.bring_to("CompleteCommit")
    assert {write.value[:2] for write in world.log if write.value} == {b"\0\0"}
    world.version = 2
    world.fail_over()
    world.automark = True
    world.add(producer, A)
    assert world.log[-1].value is not None and world.log[-1].value[:2] == b"\0\1"
    assert world.producer(world.end(producer)) == (producer[0], producer[1] + 1)


@pytest.mark.parametrize("status", [TransactionStatus.DEAD, TransactionStatus.PREPARE_EPOCH_FENCE, 9])
def test_a_state_that_no_record_has_stops_the_load(world: TransactionWorld, status: int) -> None:
    value = TRANSACTION.encode(TransactionValue(1, 0, 1, status, (), 0), 1)
    with pytest.raises(CorruptRecords, match=f"transactional id x has state {int(status)}"):
        world.shard.replay_bytes(0, encode_key(TransactionKey("x")), value)


@rule("group 1.11", "bug 17306")
@pytest.mark.parametrize("seed", range(20))
def test_any_subset_that_compaction_leaves_is_loaded(seed: int) -> None:
    """The newest record of each id, and any of the others."""
    rng, world = random.Random(seed), TransactionWorld()
    for _ in range(60):
        name = rng.choice("abc")
        state = world.described(name)
        producer = (state.producer_id, state.producer_epoch)
        if rng.random() < 0.2:
            world.pass_ms(8 * DAY_MS)
            world.step(world.shard.expire)
        elif state.state == "Ongoing" and rng.random() < 0.6:
            world.end(producer, transactional_id=name, committed=rng.random() < 0.5)
        elif state.error_code or rng.random() < 0.2:
            world.init(name)
        else:
            world.add(producer, ("t", rng.randrange(9)), transactional_id=name)
    newest = {write.key: offset for offset, write in enumerate(world.log)}
    left = [w for o, w in enumerate(world.log) if newest[w.key] == o or rng.random() < 0.5]
    left = [w for w in left if w.value is not None or rng.random() < 0.5]
    fresh = TransactionWorld().shard
    replay(left, fresh)
    live = dict(world.shard._table.items())
    kept = {name: value for name, value in fresh._table.items() if name in live}
    assert kept == live and any(write.value is None for write in world.log)


# --- expiry ---


@rule("group 6.16")
def test_an_id_that_nobody_uses_is_forgotten(world: TransactionWorld) -> None:
    world.started()
    world.pass_ms(7 * DAY_MS - 1)
    world.step(world.shard.expire)
    assert world.state() == "Empty"
    world.pass_ms(1)
    world.step(world.shard.expire)
    assert world.described().error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    assert world.log[-1].value is None
    world.fail_over()
    assert world.described().error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    assert world.started() == (FIRST_ID + 1, 0)


KEPT = {"Empty": False, "PrepareCommit": True, "PrepareAbort": True, "CompleteCommit": False, "CompleteAbort": False}


@rule("group 6.16", "bug 9666")
@pytest.mark.parametrize("state", KEPT)
def test_what_expires(world: TransactionWorld, state: str) -> None:
    world.bring_to(state)
    world.pass_ms(8 * DAY_MS)
    world.step(world.shard.expire)
    assert (world.described().error_code == E.NONE) is KEPT[state]


@rule("group 6.16")
def test_an_open_transaction_does_not_expire(world: TransactionWorld) -> None:
    world.bring_to("Ongoing")
    world.wall_offset_ms = 8 * DAY_MS
    world.step(world.shard.expire)
    assert world.state() == "Ongoing"


def test_an_id_that_is_used_again_stays(world: TransactionWorld) -> None:
    world.started()
    world.pass_ms(6 * DAY_MS)
    producer = world.started()
    world.pass_ms(6 * DAY_MS)
    world.step(world.shard.expire)
    assert world.described().producer_epoch == producer[1]


@rule("bug 5351")
def test_what_is_not_committed_does_not_expire(world: TransactionWorld) -> None:
    world.autocommit = False
    world.init()
    world.pass_ms(8 * DAY_MS)
    world.step(world.shard.expire)
    assert len(world.log) == 1
    world.fail_over()
    world.step(world.shard.expire)
    assert len(world.log) == 1, "what was loaded may be cut"
    world.settle()
    world.step(world.shard.expire)
    assert len(world.log) == 2
    assert world.code(world.init()) == E.CONCURRENT_TRANSACTIONS, "its tombstone is not committed"


@rule("bug 13099")
def test_a_sweep_is_cut_into_turns(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "TOMBSTONES_PER_TURN", 3)
    monkeypatch.setattr(expiry, "LOOKS_PER_TURN", 4)
    for number in range(10):
        world.started(transactional_id=f"x{number}")
    world.pass_ms(8 * DAY_MS)
    world.step(world.shard.expire)
    assert len(world.shard._table) == 7
    world.pass_ms(1)
    assert len(world.shard._table) == 4
    world.pass_ms(10)
    assert len(world.shard._table) == 0 and world.shard.next_timer_ms() is None


# --- what tools see ---


def test_a_transaction_is_described(world: TransactionWorld) -> None:
    world.pass_ms(500)
    producer = world.started()
    world.add(producer, B, ("c", 3), A)
    found = world.described()
    assert (found.error_code, found.transactional_id, found.state) == (E.NONE, "x", "Ongoing")
    assert (found.producer_id, found.producer_epoch) == producer
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (TIMEOUT_MS, WALL_MS + 500)
    assert found.topics == (
        TransactionTopic(name="a", partitions=(0, 1)),
        TransactionTopic(name="c", partitions=(3,)),
    )


@rule("group 6.17")
def test_what_cannot_be_described(world: TransactionWorld) -> None:
    assert world.described("unknown").error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    assert world.described("").error_code == E.INVALID_REQUEST


def test_a_description_waits_for_what_it_says() -> None:
    world = TransactionWorld(autocommit=False)
    world.init()
    number = world.call("describe", "x")
    assert number not in world.answers
    assert len(world.shard.resigned()) == 2
    world.fail_over(keep=0)
    world.settle()
    assert world.described().error_code == E.TRANSACTIONAL_ID_NOT_FOUND


LISTED = [
    ({}, ["done", "idle", "old", "open"]),
    ({"state_filters": ("Ongoing",)}, ["old", "open"]),
    ({"state_filters": ("Empty", "CompleteCommit")}, ["done", "idle"]),
    ({"state_filters": ("Never",)}, []),
    ({"producer_id_filters": (FIRST_ID, FIRST_ID + 2)}, ["idle", "old"]),
    ({"duration_filter_ms": 1_000, "state_filters": ("Ongoing",)}, ["old"]),
    ({"duration_filter_ms": 5_000, "state_filters": ("Ongoing",)}, []),
    ({"duration_filter_ms": 0, "state_filters": ("Ongoing",)}, ["old"]),
]


@rule("group 6.17")
@pytest.mark.parametrize(("filters", "found"), LISTED, ids=[str(row[0]) for row in LISTED])
def test_which_ids_are_listed(world: TransactionWorld, filters: dict[str, tuple[str, ...]], found: list[str]) -> None:
    world.started(transactional_id="idle")
    done, old = world.started(transactional_id="done"), world.started(transactional_id="old")
    world.add(done, A, transactional_id="done")
    world.end(done, transactional_id="done")
    world.add(old, A, transactional_id="old")
    world.pass_ms(5_000)
    world.add(world.started(transactional_id="open"), A, transactional_id="open")
    assert world.listed(**filters) == found


@rule("group 6.17")
def test_ids_are_listed_by_pattern(world: TransactionWorld) -> None:
    for name in ("a1", "a2", "b1"):
        world.started(transactional_id=name)
    found = at_once(world.shard.list(ListTransactionsRequest(), lambda name: name.endswith("1")))
    assert [(one.transactional_id, one.producer_id, one.state) for one in found] == [
        ("a1", FIRST_ID, "Empty"),
        ("b1", FIRST_ID + 2, "Empty"),
    ]


@rule("group 6.17")
def test_states_that_do_not_exist_are_told() -> None:
    assert unknown_states(("Ongoing", "ongoing", "Dead", "Never", "Never")) == ("ongoing", "Never")


# --- memory ---


def test_the_memory_of_an_idle_id_is_what_is_stated() -> None:
    count, stated = 5_000, 600
    values = [
        (encode_key(TransactionKey(f"{n:036}")), TRANSACTION.encode(_idle(n), 1)) for n in range(1_000, 1_000 + count)
    ]
    tracemalloc.start()
    try:
        shard = TransactionShard(TransactionConfig(), lambda: 1, lambda *_: True, 0, lambda: 50, lambda: 2)
        before = tracemalloc.get_traced_memory()[0]
        for offset, (key, value) in enumerate(values):
            shard.replay_bytes(offset, key, value)
        shard.loaded(count)
        used = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    assert stated / 2 < used <= stated


def _idle(number: int) -> TransactionValue:
    done = TransactionStatus.COMPLETE_COMMIT
    return TransactionValue(number, 300, 60_000, done, (), WALL_MS, WALL_MS, previous_producer_id=number)

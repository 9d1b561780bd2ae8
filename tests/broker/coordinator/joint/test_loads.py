"""What a coordinator finds of joint transactions when it loads: any cut of the log, and what compaction leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.joint import JOINT, JointChild, JointKey
from quorumlog.records.coordinator.transactions import TRANSACTION, TransactionStatus
from quorumlog_broker.coordinator.transactions.joint import preparing
from quorumlog_broker.coordinator.transactions.state.joint_group import SHARED_TEXTS
from tests.broker.coordinator.joint.joint_world import HERE, R1, R2, Child, G, JointWorld
from tests.broker.coordinator.transaction_world import A, B, TransactionWorld, replay

OTHER = "another"


@pytest.fixture
def world() -> JointWorld:
    return JointWorld()


def begun(world: JointWorld, sequence: int, count: int, run: str = R1) -> list[Child]:
    tokens = [b"%d.%d" % (sequence, len(world.answers) + n) for n in range(count)]
    children = [world.opened(sequence, token, run=run) for token in tokens]
    for child in children:
        world.add(child.producer, A, transactional_id=child.transactional_id)
    return children


def decision_at(world: JointWorld) -> int:
    """Offset of the last decision."""
    found = [
        n for n, write in enumerate(world.log) if isinstance(decode(TRANSACTION_TYPES, write.key, None).key, JointKey)
    ]
    return found[-1]


def compacted(world: TransactionWorld, below: int) -> None:
    """Of the offsets below, the log keeps the last record of each key."""
    last = {write.key: n for n, write in enumerate(world.log[:below])}
    kept = [n for n in range(below) if last[world.log[n].key] == n]
    world.log = [world.log[n] for n in kept] + world.log[below:]


@pytest.mark.parametrize("missing", range(5))
def test_prepare_records_that_are_missing_are_written_again(world: JointWorld, missing: int) -> None:
    """A decision is in the log, and from 0 to 4 of its Prepare records."""
    world.autocommit = False
    children = []
    for n in range(4):
        number = world.begin(0, b"%d" % n)
        world.settle()
        children.append(world.child(number, b"%d" % n))
    world.commit(0, *children[:2])
    decision = decision_at(world)
    assert len(world.log) == decision + 5
    world.autocommit = True
    world.fail_over(keep=decision + 5 - missing)
    world.pass_ms(1)
    assert [world.state_of(child) for child in children] == ["CompleteCommit"] * 2 + ["CompleteAbort"] * 2
    assert world.last() == 0


def test_a_decision_that_is_cut_leaves_its_children_open(world: JointWorld) -> None:
    children = begun(world, 0, 3)
    end = len(world.log)
    world.autocommit = False
    world.commit(0, *children)
    world.autocommit = True
    world.fail_over(keep=end)
    assert [world.state_of(child) for child in children] == ["Ongoing"] * 3
    world.decide(0, *children)
    assert [world.state_of(child) for child in children] == ["CompleteCommit"] * 3


def test_a_decided_child_is_told_as_prepared_before_its_record_says_so(
    world: JointWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No timer, no producer and no other decision comes between."""
    children = begun(world, 0, 4)
    world.automark = False
    world.autocommit = False
    monkeypatch.setattr(preparing, "PREPARES_A_TURN", 1)
    monkeypatch.setattr(world.shard, "timers_due", lambda: None)
    world.commit(0, *children[:2])
    world.commit_to(len(world.log))
    world.decided_transactions()
    assert [world.state_of(child) for child in children] == ["PrepareCommit"] * 2 + ["PrepareAbort"] * 2
    for child in children:
        assert (
            world.code(world.verify(child.producer, transactional_id=child.transactional_id))
            == E.INVALID_PRODUCER_EPOCH
        )
        assert world.code(world.add(child.producer, A, transactional_id=child.transactional_id)) == E.PRODUCER_FENCED
    monkeypatch.undo()
    world.now_ms += 86_400_000  # every time-out has passed
    world.autocommit = True
    world.step(world.shard.timers_due)
    world.pass_ms(10_000)
    assert [world.state_of(child) for child in children] == ["PrepareCommit"] * 2 + ["PrepareAbort"] * 2


def test_many_prepare_records_are_written_some_a_turn(world: JointWorld) -> None:
    children = begun(world, 0, 150)
    world.autocommit = False
    before = len(world.log)
    world.shard.at(world.now_ms, world.wall_ms, 2)
    world.commit(0, *children)
    assert len(world.log) == before + 1 + preparing.PREPARES_A_TURN
    world.autocommit = True
    world.pass_ms(5)
    assert {world.state_of(child) for child in children} == {"CompleteCommit"}


def test_a_child_that_began_after_the_decision_is_not_touched_by_it(world: JointWorld) -> None:
    """The same slot and the same epoch as one that the last decision names, of another producer id."""
    first = world.opened(0, b"a")
    world.decide(0, first)
    second = world.opened(1, b"b")
    assert second.slot == first.slot
    said = decode(TRANSACTION_TYPES, world.log[-1].key, world.log[-1].value).value
    renewed = replace(said, producer_id=said.producer_id + 100, producer_epoch=first.producer[1])
    world.log[-1] = world.log[-1]._replace(value=TRANSACTION.encode(renewed, 1))
    world.fail_over()
    assert world.state_of(second) == "Ongoing"
    world.decide(1, second._replace(producer=(renewed.producer_id, renewed.producer_epoch)))
    assert world.state_of(second) == "CompleteCommit"


def test_every_cut_and_every_compaction_of_a_long_history_gives_the_same(world: JointWorld) -> None:
    """After each record: what a core that loads the compacted log knows is what it knows of the whole log."""
    open_before = begun(world, 0, 2)
    world.decide(0, open_before[0])
    begun(world, 1, 3)
    world.abort(1)
    second = begun(world, 1, 3)
    world.decide(1, *second[:2], run=R2)
    begun(world, 2, 2, run=R2)
    history = [*world.log]
    for end in range(len(history) + 1):
        found = []
        for below in (0, end):
            other = JointWorld(autocommit=False)
            other.log = history[:end]
            compacted(other, below)
            replay(other.log, other.shard)
            other.shard.loaded(len(other.log))
            other.commit_to(len(other.log))
            other.now_ms += 1
            other.step(other.shard.timers_due)
            other.settle()
            states = {name: other.described(name).state for name in other.listed()}
            found.append((states, other.listed_groups()))
        whole, left = found
        assert left == whole, f"after {end} records"


def test_a_load_takes_up_the_wait_and_the_tokens(world: JointWorld) -> None:
    child = begun(world, 0, 1)[0]
    world.automark = False
    world.decide(0, child)
    world.fail_over()
    number = world.commit(0, child, commit_wait_ms=5_000)
    assert number not in world.answers
    for one in world.decided_transactions():
        world.mark(one, A)
    assert world.answers[number].complete
    assert world.code(world.begin(0, child.token)) == E.NONE and world.answers[max(world.answers)].decided


def test_a_slot_forgets_no_token_of_another_one(world: JointWorld) -> None:
    """A token is at another slot since its first one was given away, and the cleaner has left the first record of the
    first slot, but not those that say that it was given away."""
    first = begun(world, 0, 1)[0]
    world.abort(0)
    other = begun(world, 0, 1)[0]
    assert other.slot == first.slot
    again = world.opened(0, first.token)
    assert again.slot != first.slot
    world.abort(0, token=other.token)
    ids = [decode(TRANSACTION_TYPES, write.key, None).key.transactional_id for write in world.log]
    of_first = [n for n, name in enumerate(ids) if name == first.transactional_id]
    world.log = [write for n, write in enumerate(world.log) if n not in of_first[1:-1]]
    world.fail_over()
    assert world.opened(0, first.token) == again


def test_kinds_and_causes_of_newer_software_are_told_and_end_no_call_with_an_error(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    world.abort(0)
    world.decide(0)
    log = []
    for write in world.log:
        record = decode(TRANSACTION_TYPES, write.key, write.value)
        if isinstance(record.key, JointKey):
            value = JOINT.encode(replace(record.value, kind=7), 0)
        else:
            value = TRANSACTION.encode(replace(record.value, joint=replace(record.value.joint, cause=7)), 1)
        log.append(write._replace(value=value))
    world.log = log
    world.fail_over()
    for number in (world.begin(1, b"b"), world.commit(1)):
        assert world.code(number) == E.INVALID_REQUEST and "kind 7" in world.answers[number].error_message
    world.forget()
    number = world.begin(0, child.token)
    assert world.code(number) == E.CHILD_NOT_OPEN and "it has ended" in world.answers[number].error_message


def changed(world: JointWorld, name: str, child: JointChild) -> None:
    """The last record of this id tells of another child, as no software of ours writes it."""
    for n, write in enumerate(world.log):
        record = decode(TRANSACTION_TYPES, write.key, write.value)
        if not isinstance(record.key, JointKey) and record.key.transactional_id == name:
            at, value = n, replace(record.value, joint=child)
    world.log[at] = world.log[at]._replace(value=TRANSACTION.encode(value, 1))


@pytest.mark.parametrize("slot", [0, 1])
def test_whatever_the_records_say_of_a_child_everything_ends(world: JointWorld, slot: int) -> None:
    """An id that says of itself that it is another group's child, or in another one's slot."""
    children = begun(world, 0, 2)
    world.autocommit = world.automark = False
    name = children[1].transactional_id
    world.add(children[1].producer, B, transactional_id=name)
    world.settle()
    changed(world, name, JointChild(OTHER if slot else G, slot=0, token=b"t", run=R1, sequence=0, location=HERE))
    world.fail_over()
    world.settle()
    world.commit(0)
    world.fail_over(keep=decision_at(world) + 1)
    world.autocommit = world.automark = True
    world.settle()
    world.pass_ms(100_000)
    states = {name: world.described(name).state for name in world.listed()}
    assert {*states.values()} == {"CompleteAbort"}, states
    assert all(one.ending == 0 and not one.open for one in world.listed_groups().values())


def test_time_goes_on_for_children_that_are_loaded(world: JointWorld) -> None:
    child = world.opened(0, b"a", timeout_ms=3_600_000)
    world.pass_ms(3_500_000)
    world.fail_over()
    world.pass_ms(90_000)
    assert world.state_of(child) == "Ongoing"
    world.pass_ms(30_000)
    assert world.state_of(child) == "CompleteAbort"


def test_records_say_what_kafka_reads(world: JointWorld) -> None:
    """Open with no partition, prepared, complete: ordinary states of an ordinary id."""
    child = world.opened(0, b"a")
    world.decide(0, child)
    values = [
        record.value
        for record in (decode(TRANSACTION_TYPES, write.key, write.value) for write in world.log)
        if not isinstance(record.key, JointKey)
    ]
    statuses = [TransactionStatus(value.transaction_status) for value in values]
    assert [status.name for status in statuses] == ["ONGOING", "PREPARE_COMMIT", "COMPLETE_COMMIT"]
    assert [value.producer_epoch for value in values] == [0, 1, 1]
    assert {value.joint.group for value in values} == {G}


@pytest.mark.parametrize("loads", [False, True])
def test_children_of_a_batch_share_their_texts(world: JointWorld, loads: bool) -> None:
    """A location may have 4,000 bytes, and there may be 100,000 children."""
    children = [*begun(world, 0, 3), world.opened(0, b"other", run=R2)]
    world.decide(0, *children[:2])
    children = begun(world, 1, 5)
    if loads:
        world.fail_over()
    values = [world.shard._table.get(child.transactional_id) for child in children]
    tags = [value.joint for value in values if value is not None and value.joint is not None]
    assert len(tags) == 5
    assert len({(id(one.group), id(one.run), id(one.location)) for one in tags}) == 1
    (group,) = world.shard._table.joint_groups.values()
    names = {name: name for name in world.shard._table.ids()}
    assert all(names[name] is name for name in group.ids.values())


def test_few_texts_are_remembered(world: JointWorld) -> None:
    for number in range(3 * SHARED_TEXTS):
        world.decide(number, world.opened(number, b"%d" % number, run=f"run {number}"), run=f"run {number}")
    (group,) = world.shard._table.joint_groups.values()
    assert len(group._texts) == SHARED_TEXTS

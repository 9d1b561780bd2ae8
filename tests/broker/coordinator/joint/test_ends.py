"""How children end without a decision, what others may do to them, and how a group is listed and forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.joint import AbortJointResponse
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.joint import JointKey
from quorumlog.settings.transactions import JointConfig, TransactionConfig
from quorumlog_broker.coordinator.transactions.joint import abort, expiry, given_up
from tests.broker.coordinator.joint.joint_world import HERE, R1, R2, THERE, G, JointWorld
from tests.broker.coordinator.transaction_world import FIRST_ID, A

DAY_MS = 86_400_000
VERSIONED, SINGLE = 1, 2


@pytest.fixture
def world() -> JointWorld:
    return JointWorld()


# --- AbortJoint ---


def test_what_is_decided_is_not_aborted_and_the_answer_says_so(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    world.add(child.producer, A, transactional_id=child.transactional_id)
    world.automark = False
    world.decide(0, child)
    records = len(world.log)
    assert world.answers[world.abort(0)] == AbortJointResponse(decided=True)
    assert world.state_of(child) == "PrepareCommit" and len(world.log) == records
    world.automark = True
    world.settle()
    world.decide(1)
    assert world.answers[world.abort(0)] == AbortJointResponse(decided=True)  # below the last one


def test_a_version_below_the_last_one_was_not_decided(world: JointWorld) -> None:
    world.decide(5, kind=VERSIONED)
    assert world.answers[world.abort(4)] == AbortJointResponse(decided=False, aborted=0)
    assert world.answers[world.abort(5)] == AbortJointResponse(decided=True)


MEANT: list[tuple[str, dict[str, Any], set[str]]] = [
    ("the run and the location", {"run": R1}, {"a", "b"}),
    ("the location alone", {}, {"a", "b", "run 2"}),
    ("one attempt", {"run": R1, "token": b"a"}, {"a"}),
    ("another location", {"location": THERE}, {"copy"}),
    ("another group", {"group_id": "another"}, {"stranger"}),
    ("another sequence", {"sequence": 1}, set()),
    ("a run that has none", {"run": "run 9"}, set()),
]


@pytest.mark.parametrize(("fields", "want"), [row[1:] for row in MEANT], ids=[row[0] for row in MEANT])
def test_which_children_are_aborted(world: JointWorld, fields: dict[str, Any], want: set[str]) -> None:
    children = {
        "a": world.opened(0, b"a"),
        "b": world.opened(0, b"b"),
        "run 2": world.opened(0, b"c", run=R2),
        "copy": world.opened(0, b"d", location=THERE),
        "stranger": world.opened(0, b"e", group_id="another"),
    }
    number = world.abort(**{"sequence": 0, **fields})
    assert world.answers[number] == AbortJointResponse(aborted=len(want))
    assert {name for name, child in children.items() if world.state_of(child) == "CompleteAbort"} == want
    assert {world.state_of(children[name]) for name in children.keys() - want} == {"Ongoing"}


def test_a_superseded_run_may_clean_up(world: JointWorld) -> None:
    late = world.opened(1, b"a", first_batch=1)
    world.decide(0, run=R1)
    assert world.state_of(late) == "CompleteAbort"
    late = world.opened(1, b"b", run=R1)
    other = world.opened(2, b"c", run=R1, first_batch=2)
    world.decide(1, late, run=R2)
    assert world.state_of(other) == "CompleteAbort"
    assert world.answers[world.abort(2, run=R1)] == AbortJointResponse(aborted=0)


def test_a_child_that_is_not_committed_is_aborted_too() -> None:
    world = JointWorld(autocommit=False)
    number = world.begin(0, b"a")
    aborted = world.abort(0)
    assert not world.answers
    world.settle()
    assert world.answers[aborted] == AbortJointResponse(aborted=1)
    assert world.state_of(world.child(number, b"a")) == "CompleteAbort"


def test_an_abort_of_many_children_takes_several_steps_and_is_answered_once(
    world: JointWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abort, "PREPARES_A_TURN", 2)
    children = [world.opened(0, b"%d" % n) for n in range(5)]
    steps = world.abort_in_steps(0)
    assert [world.state_of(child) for child in children] == ["CompleteAbort"] * 2 + ["Ongoing"] * 3
    world.decide(0, children[3])  # between two steps
    assert world.finish_steps(steps) == AbortJointResponse(aborted=2)
    assert [world.state_of(child) for child in children] == [
        *["CompleteAbort"] * 3,
        "CompleteCommit",
        "CompleteAbort",
    ]


# --- time ---


def test_a_child_lasts_as_long_as_its_own_time_out(world: JointWorld) -> None:
    short, long = world.opened(0, b"a", timeout_ms=60_000), world.opened(0, b"b", timeout_ms=DAY_MS)
    world.pass_ms(59_000)
    assert world.state_of(short) == "Ongoing"
    world.pass_ms(12_000)
    assert [world.state_of(short), world.state_of(long)] == ["CompleteAbort", "Ongoing"]
    world.pass_ms(DAY_MS)
    assert world.state_of(long) == "CompleteAbort"


def test_a_wake_up_of_somebody_elses_child_ends_no_other(world: JointWorld) -> None:
    """A late attempt of a dead driver begins and goes on beside the live one, and stops nothing."""
    world.decide(0)
    live = world.opened(1, b"live", run=R2)
    dead = world.opened(1, b"dead", run=R1)
    assert [world.state_of(live), world.state_of(dead)] == ["Ongoing", "Ongoing"]
    world.decide(1, live, run=R2)
    assert [world.state_of(live), world.state_of(dead)] == ["CompleteCommit", "CompleteAbort"]
    assert world.code(world.begin(2, b"later", run=R1)) == E.SUPERSEDED


# --- others ---


def test_nobody_else_touches_a_child(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    name = child.transactional_id
    records = len(world.log)
    refused = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    for state in ("Ongoing", "CompleteCommit"):
        assert world.state_of(child) == state
        assert world.code(world.init(transactional_id=name)) == refused
        producer = {"producer_id": child.producer[0], "producer_epoch": child.producer[1]}
        assert world.code(world.init(transactional_id=name, **producer)) == refused
        for committed in (True, False):
            for version in (0, 2):
                for epoch in (child.producer[1], child.producer[1] + 1):
                    number = world.end(
                        (child.producer[0], epoch), committed=committed, version=version, transactional_id=name
                    )
                    assert world.code(number) == refused
        assert len(world.log) == records
        if state == "Ongoing":
            world.decide(0, child)
            records = len(world.log)


def test_tools_are_told_whose_child_an_id_is(world: JointWorld) -> None:
    """A leader goes by it before it lets a client abort in one partition (decision 113)."""
    world.started(transactional_id="ordinary")
    child = world.opened(0, b"a", timeout_ms=3_600_000)
    producer_id, epoch = child.producer
    for state, at_epoch in (("Ongoing", epoch), ("PrepareCommit", epoch + 1), ("CompleteCommit", epoch + 1)):
        if state == "PrepareCommit":
            world.add(child.producer, A, transactional_id=child.transactional_id)
            world.automark = False
            world.decide(0, child)
        elif state == "CompleteCommit":
            world.write_markers()
            world.settle()
        found = {one.transactional_id: one for one in world.list_all()}
        assert found["ordinary"].joint_group == "" and world.described("ordinary").joint_group == ""
        one = found[child.transactional_id]
        assert (one.joint_group, one.state, one.producer_id, one.producer_epoch, one.timeout_ms) == (
            G, state, producer_id, at_epoch, 3_600_000,
        )  # fmt: skip
        assert one.start_time_ms == world.wall_ms
        assert world.described(child.transactional_id).joint_group == G


def test_what_is_not_committed_makes_no_id_a_child() -> None:
    """A failover may undo it: EndTxn is told to come again, as InitProducerId is."""
    world = JointWorld(autocommit=False)
    world.begin(0, b"a")
    (name,) = world.listed()
    assert world.code(world.end((FIRST_ID, 0), transactional_id=name)) == E.CONCURRENT_TRANSACTIONS
    world.fail_over()
    assert world.code(world.end((FIRST_ID, 0), transactional_id=name)) == E.COORDINATOR_LOAD_IN_PROGRESS
    world.settle()
    assert world.code(world.end((FIRST_ID, 0), transactional_id=name)) == E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_only_begin_joint_opens_a_child(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    name, (producer_id, epoch) = child.transactional_id, child.producer
    assert world.code(world.add(child.producer, A, transactional_id=name)) == E.NONE
    assert world.code(world.add_offsets(child.producer, transactional_id=name)) == E.NONE
    world.decide(0, child)
    records = len(world.log)
    for found in (epoch, epoch + 1):
        assert world.code(world.add((producer_id, found), A, transactional_id=name)) == E.PRODUCER_FENCED
        assert world.code(world.add_offsets((producer_id, found), transactional_id=name)) == E.PRODUCER_FENCED
    assert len(world.log) == records and world.state_of(child) == "CompleteCommit"


@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_answer_depends_on_the_level_of_transaction_version(level: int, fails_over: bool) -> None:
    """The feature of joint transactions needs level 2. What is open when it falls ends as it began."""
    worlds = [JointWorld(version=2), JointWorld(version=2)]
    for world, then in zip(worlds, (2, level), strict=True):
        child, lost = world.opened(0, b"a"), world.opened(0, b"b")
        world.version = then
        if fails_over:
            world.fail_over()
        world.add(child.producer, A, transactional_id=child.transactional_id)
        world.begin(0, b"a")
        world.commit(0, child)
        world.commit(0, child)
        world.abort(0)
        world.begin(1, b"c")
        world.describe_all(child, lost)
        world.forget()
    assert worlds[0].answers == worlds[1].answers
    assert worlds[0].log == worlds[1].log


# --- listed, forgotten, expired ---


def test_groups_are_listed_with_what_is_open(world: JointWorld) -> None:
    child = world.opened(0, b"a", timeout_ms=3_600_000)
    before = world.listed_groups()[G]
    assert (before.sequence, before.run, len(before.open)) == (-1, "", 1)
    assert before.open[0].transactional_id == child.transactional_id
    assert (before.open[0].run, before.open[0].sequence, before.open[0].timeout_ms) == (R1, 0, 3_600_000)
    world.add(child.producer, A, transactional_id=child.transactional_id)
    world.automark = False
    world.decide(0, child)
    after = world.listed_groups()[G]
    assert (after.sequence, after.run, after.location, after.open, after.ending) == (0, R1, HERE, (), 1)
    assert after.decided_at_ms == world.wall_ms


def test_a_group_is_forgotten_when_nothing_of_it_is_open(world: JointWorld) -> None:
    assert world.code(world.forget()) == E.GROUP_ID_NOT_FOUND
    child = world.opened(0, b"a")
    refused = world.answers[world.forget()]
    assert refused.error_code == E.JOINT_GROUP_OPEN
    assert f"1 open transactions, such as {child.transactional_id} of run {R1}, sequence 0" in refused.error_message
    world.add(child.producer, A, transactional_id=child.transactional_id)
    world.automark = False
    world.decide(0, child)
    assert world.code(world.forget()) == E.JOINT_GROUP_OPEN
    world.automark = True
    world.settle()
    late = world.opened(1, b"b")
    assert world.code(world.forget()) == E.JOINT_GROUP_OPEN
    world.abort(1)
    assert world.state_of(late) == "CompleteAbort"
    assert world.code(world.forget()) == E.NONE
    assert world.last() == -1
    world.fail_over()
    assert world.code(world.begin(1, b"c")) == E.DECISION_MISSING
    world.decide(0)


KEPT = [("a stream", 0, 90 * DAY_MS), ("versions", VERSIONED, 90 * DAY_MS), ("a single batch", SINGLE, DAY_MS)]


@pytest.mark.parametrize(("kind", "kept_ms"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_a_group_expires_after_its_last_decision(world: JointWorld, kind: int, kept_ms: int) -> None:
    world.decide(0, world.opened(0, b"a", kind=kind), kind=kind)
    world.wall_offset_ms = kept_ms - 1
    world.step(world.shard.expire)
    world.fail_over()
    assert world.last() == 0
    world.wall_offset_ms = kept_ms
    world.step(world.shard.expire)
    assert G not in world.listed_groups() or world.last() == -1
    world.fail_over()
    assert world.last() == -1


def test_a_group_with_an_open_child_does_not_expire(world: JointWorld) -> None:
    world.decide(0)
    world.wall_offset_ms = 91 * DAY_MS
    world.opened(1, b"a")
    world.step(world.shard.expire)
    assert world.last() == 0


def test_idle_ids_are_forgotten_like_others_and_their_groups_are_not(world: JointWorld) -> None:
    """After 8 idle days the next batch goes on."""
    world.decide(0, world.opened(0, b"a"), facts={})
    world.pass_ms(8 * DAY_MS)
    world.step(world.shard.expire)
    assert world.listed() == [] and world.last() == 0
    world.fail_over()
    child = world.opened(1, b"b")
    assert child.slot == 0 and child.producer == (0x3EA, 0)
    world.decide(1, child)
    assert world.state_of(child) == "CompleteCommit"


def single(world: JointWorld, number: int, *, is_decided: bool) -> None:
    """A batch without a name: its group has its run's."""
    name = {"group_id": f"write/{number}", "kind": SINGLE}
    children = [world.opened(0, bytes([number, task]), **name) for task in range(2)]
    if is_decided:
        world.decide(0, *children, **name)
    else:
        world.abort(0, group_id=f"write/{number}")


@pytest.mark.parametrize("is_decided", [True, False], ids=["decided", "aborted"])
def test_batches_without_names_leave_nothing_behind_their_day(world: JointWorld, is_decided: bool) -> None:
    """Each has ids and a group of its own; kept for the 7 days of other ids, they reach the limits of a partition."""
    for number in range(5):
        single(world, number, is_decided=is_decided)
    world.wall_offset_ms = DAY_MS - 1
    world.step(world.shard.expire)
    assert len(world.listed()) == 10 and world.shard.joint_counts == (5, 0), "for a lost answer"
    world.wall_offset_ms = DAY_MS
    world.step(world.shard.expire)
    assert world.listed() == [] and world.shard.joint_counts == (0, 0)
    world.fail_over()
    assert world.listed() == [] and world.shard.joint_counts == (0, 0)


@pytest.mark.parametrize("kind", [0, VERSIONED], ids=["a stream", "versions"])
def test_ids_that_the_next_batch_takes_are_kept_as_others_are(world: JointWorld, kind: int) -> None:
    world.decide(0, world.opened(0, b"a", kind=kind), kind=kind)
    world.wall_offset_ms = 7 * DAY_MS - 1
    world.step(world.shard.expire)
    assert len(world.listed()) == 1
    world.wall_offset_ms = 7 * DAY_MS
    world.step(world.shard.expire)
    assert world.listed() == []


def test_open_transactions_are_counted_through_all_that_ends_them(world: JointWorld) -> None:
    assert world.shard.joint_counts == (0, 0)
    first, second = world.opened(0, b"a"), world.opened(0, b"b")
    other = world.opened(0, b"c", group_id="spark/other")
    assert world.shard.joint_counts == (2, 3)
    world.decide(0, first)
    assert world.shard.joint_counts == (2, 1), "what the decision does not name is not open either"
    world.abort(0, group_id="spark/other")
    assert world.shard.joint_counts == (2, 0)
    again = world.opened(1, b"d")
    assert world.shard.joint_counts == (2, 1) and again.slot in (first.slot, second.slot)
    world.fail_over()
    assert world.shard.joint_counts == (2, 1) and other.slot == 0


def test_a_task_that_its_driver_has_given_up_begins_nothing(world: JointWorld) -> None:
    """Spark aborts while tasks of the job may still run; what they begin later would be open until its time-out."""
    first = world.opened(0, b"a")
    world.abort(0, token=b"a")
    second = world.opened(0, b"b")
    world.abort(0)
    third = world.opened(0, b"c")
    assert len({one.token for one in (first, second, third)}) == 3, "one attempt, or any run: nobody has given up"
    world.abort(0, run=R1)
    for fails_over in (False, True):
        if fails_over:
            world.fail_over()
        late = world.answers[world.begin(0, b"d")]
        assert late.error_code is E.CHILD_NOT_OPEN
        assert late.error_message == f"run {R1} has aborted sequence 0 of {G}: its driver is done"
        assert world.shard.joint_counts[1] == 0
    world.decide(0, world.opened(0, b"e", run=R2), run=R2)
    world.decide(1, world.opened(1, b"f", run=R2), run=R2)


def test_what_was_given_up_is_remembered_up_to_a_limit(world: JointWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given_up, "MAX_GIVEN_UP", 2)
    for group in ("a", "b", "c"):
        world.abort(0, group_id=group, run=R1)
    world.fail_over()
    told = [world.told(world.begin(0, b"t", group_id=group)) for group in ("a", "b", "c")]
    assert told == [E.NONE, E.CHILD_NOT_OPEN, E.CHILD_NOT_OPEN]


@pytest.mark.parametrize("is_kept", [True, False], ids=["the record is there", "the record is lost"])
def test_a_coordinator_that_fails_over_in_an_abort_has_told_nobody_before_its_record_is_committed(
    is_kept: bool,
) -> None:
    """Either way: a task that begins behind the answer to the abort is refused."""
    world = JointWorld()
    world.autocommit = False
    records = len(world.log)
    asked = world.abort(0, run=R1)
    assert world.told(asked) is None
    assert world.told(world.begin(0, b"a")) == E.CONCURRENT_TRANSACTIONS, "it may yet be undone"
    assert world.told(world.begin(0, b"b", run=R2)) == E.CONCURRENT_TRANSACTIONS
    world.autocommit = True
    world.fail_over(keep=records + is_kept)
    if not is_kept:
        assert world.told(asked) is None
        assert world.answers[world.abort(0, run=R1)] == AbortJointResponse(aborted=0)
    assert world.told(world.begin(0, b"c")) == E.CHILD_NOT_OPEN
    world.decide(0, world.opened(0, b"d", run=R2), run=R2)


def test_what_was_given_up_leaves_the_log_after_a_day(world: JointWorld) -> None:
    world.abort(0, run=R1)
    world.pass_ms(1_000)
    world.abort(0, run=R2)
    world.abort(0, run=R2)
    assert len(world.log) == 2, "once for each run"
    for wall_ms, left in ((DAY_MS - 1_001, 2), (DAY_MS - 1_000, 1), (DAY_MS, 0)):
        world.wall_offset_ms = wall_ms
        world.step(world.shard.expire)
        assert len(world.shard._table.given_up) == left
        world.fail_over()
        assert len(world.shard._table.given_up) == left


def test_a_commit_that_waits_is_answered_although_the_next_batch_is_given_up_meanwhile(world: JointWorld) -> None:
    """Its time is over while that record is not committed, and nothing else wakes it."""
    child = world.opened(0, b"a")
    world.add(child.producer, A, transactional_id=child.transactional_id)
    world.automark = False
    number = world.commit(0, child, commit_wait_ms=1_000)
    world.autocommit = False
    world.abort(1, run=R1)
    world.pass_ms(1_000)
    assert world.told(number) is None, "what is pending for the group is pending for its decision"
    world.commit_to(len(world.log))
    assert world.told(number) == E.NONE and not world.answers[number].complete


def test_a_sweep_goes_on_until_nothing_expired_is_left(world: JointWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition has room for 10,000 batches without names, and a sweep comes once an hour."""
    monkeypatch.setattr(expiry, "TOMBSTONES_A_TURN", 2)
    monkeypatch.setattr(expiry, "LOOKS_A_TURN", 3)
    for number in range(9):
        name = {"group_id": f"write/{number}", "kind": SINGLE}
        world.decide(0, world.opened(0, bytes([number]), **name), **name)
        world.abort(1, group_id=f"write/{number}", run=R1)
    world.wall_offset_ms = DAY_MS
    world.autocommit = False
    records = len(world.log)
    world.step(world.shard.expire)
    deleted = [decode(TRANSACTION_TYPES, one.key, None).key for one in world.log[records:]]
    assert sum(isinstance(key, JointKey) for key in deleted) == 2, "in parts that are short enough for a turn"
    world.autocommit = True
    world.pass_ms(100)
    assert world.shard.joint_counts == (0, 0) and not world.shard._table.given_up


def test_who_finds_no_room_for_a_group_is_told_the_limit_and_what_to_do() -> None:
    world = JointWorld(TransactionConfig(joint=JointConfig(max_groups=1)))
    world.opened(0, b"a")
    refused = world.answers[world.begin(0, b"b", group_id="write/1", kind=SINGLE)]
    assert refused.error_code == E.POLICY_VIOLATION
    for said in ("1 are the limit (joint.max.groups)", "24 hours", "writeId", "spark sink list"):
        assert said in refused.error_message

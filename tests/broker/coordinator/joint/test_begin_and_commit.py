"""BeginJoint and CommitJoint against a group's last decision: which answer comes first, and what a decision does."""

from __future__ import annotations

from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.joint import CommitJointResponse, JointChildRef
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.joint import JointKey, unpack
from quorumlog.settings.transactions import JointConfig, TransactionConfig
from quorumlog_broker.coordinator.placement import partition_of
from quorumlog_broker.coordinator.transactions.joint import begin, checks
from quorumlog_broker.coordinator.transactions.joint.begin import child_id
from tests.broker.coordinator.joint.joint_world import HERE, R1, R2, R3, THERE, G, JointWorld
from tests.broker.coordinator.transaction_world import A, B

OK, DECIDED = "a child", "decided"
STREAM, VERSIONED, SINGLE = 0, 1, 2


@pytest.fixture
def world() -> JointWorld:
    return JointWorld()


def decided_to(world: JointWorld, sequence: int, **more: Any) -> JointWorld:
    """By run 1 all but the last, which is by run 2."""
    for number in range(sequence):
        world.decide(number, **more)
    world.decide(sequence, run=R2, **more)
    return world


# --- the checks, in their order ---

CHECKS: list[tuple[str, dict[str, Any], E | str]] = [
    ("the next sequence", {"sequence": 4}, OK),
    ("the same sequence", {"sequence": 3}, DECIDED),
    ("below", {"sequence": 2}, E.CHECKPOINT_ROLLED_BACK),
    ("above the next", {"sequence": 5}, E.DECISION_MISSING),
    ("a run that is new", {"sequence": 4, "run": R3}, OK),
    ("a superseded run", {"sequence": 4, "run": R1}, E.SUPERSEDED),
    ("a superseded run, decided", {"sequence": 3, "run": R1}, E.SUPERSEDED),
    ("a superseded run, below", {"sequence": 2, "run": R1}, E.SUPERSEDED),
    ("a copy", {"sequence": 4, "location": THERE}, E.CHECKPOINT_COPIED),
    ("a copy, decided", {"sequence": 3, "location": THERE}, E.CHECKPOINT_COPIED),
    ("a copy, below", {"sequence": 2, "location": THERE}, E.CHECKPOINT_COPIED),
    ("a copy, of a superseded run", {"sequence": 4, "location": THERE, "run": R1}, E.CHECKPOINT_COPIED),
    ("a copy, above the next", {"sequence": 9, "location": THERE}, E.CHECKPOINT_COPIED),
    ("a checkpoint that was moved", {"sequence": 4, "location": THERE, "checkpoint_moved": HERE}, OK),
    ("moved, decided", {"sequence": 3, "location": THERE, "checkpoint_moved": HERE}, DECIDED),
    ("moved from elsewhere", {"sequence": 4, "location": THERE, "checkpoint_moved": "/x"}, E.CHECKPOINT_COPIED),
    ("moved, and superseded", {"sequence": 4, "location": THERE, "checkpoint_moved": HERE, "run": R1}, E.SUPERSEDED),
    ("the first batch is this one", {"sequence": 57, "first_batch": 57}, OK),
    ("the first batch was another", {"sequence": 58, "first_batch": 57}, E.DECISION_MISSING),
    ("the first batch lies below", {"sequence": 2, "first_batch": 2}, E.CHECKPOINT_ROLLED_BACK),
    ("the first batch is decided", {"sequence": 3, "first_batch": 3}, DECIDED),
    ("another kind", {"sequence": 4, "kind": VERSIONED}, E.INVALID_REQUEST),
]


@pytest.mark.parametrize(("fields", "want"), [row[1:] for row in CHECKS], ids=[row[0] for row in CHECKS])
def test_the_checks_of_both_calls(world: JointWorld, fields: dict[str, Any], want: E | str) -> None:
    decided_to(world, 3)
    records = len(world.log)
    options = {"run": R2, **fields}
    begun = world.begin(token=b"t", **options)
    assert world.code(begun) == (want if isinstance(want, E) else E.NONE)
    assert world.answers[begun].decided == (want == DECIDED)
    assert (len(world.log) > records) == (want == OK)
    committed = world.commit(**options)
    assert world.code(committed) == (want if isinstance(want, E) else E.NONE)
    assert world.last() == (fields["sequence"] if want == OK else 3)


WAYS_ON: list[tuple[str, dict[str, Any], str]] = [
    ("a copy", {"sequence": 4, "location": THERE}, "Give the copy a new sinkId and firstBatch=4; if"),
    ("a copy at its beginning", {"sequence": 0, "location": THERE}, "Give the copy a new sinkId; if"),
    ("rolled back", {"sequence": 2}, "give the sink a new sinkId and firstBatch=2, and it begins anew"),
    ("begun anew", {"sequence": 0}, "give the sink a new sinkId, and it begins anew"),
]


@pytest.mark.parametrize(("fields", "want"), [row[1:] for row in WAYS_ON], ids=[row[0] for row in WAYS_ON])
def test_the_way_on_that_is_told_is_one(world: JointWorld, fields: dict[str, Any], want: str) -> None:
    decided_to(world, 3)
    assert want in world.answers[world.begin(token=b"t", run=R3, **fields)].error_message
    first = {"first_batch": fields["sequence"]} if "firstBatch" in want else {}
    assert world.code(world.begin(token=b"t", run=R3, group_id="anew", **fields, **first)) == E.NONE


def test_the_way_on_of_a_version_is_another_name(world: JointWorld) -> None:
    world.decide(3, kind=VERSIONED)
    text = world.answers[world.begin(2, b"t", kind=VERSIONED)].error_message
    assert "give the sink a new writeId, and it begins anew" in text


UNKNOWN: list[tuple[str, dict[str, Any], E | str]] = [
    ("a stream begins at 0", {"sequence": 0}, OK),
    ("a stream that begins above", {"sequence": 1}, E.DECISION_MISSING),
    ("said to be the first", {"sequence": 57, "first_batch": 57}, OK),
    ("said of another", {"sequence": 56, "first_batch": 57}, E.DECISION_MISSING),
    ("a version", {"sequence": 57, "kind": VERSIONED}, OK),
    ("a single batch", {"sequence": 0, "kind": SINGLE}, OK),
    ("a single batch with a number", {"sequence": 1, "kind": SINGLE}, E.INVALID_REQUEST),
]


@pytest.mark.parametrize(("fields", "want"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN])
def test_a_group_without_a_decision(world: JointWorld, fields: dict[str, Any], want: E | str) -> None:
    code = want if isinstance(want, E) else E.NONE
    assert world.code(world.begin(token=b"t", **fields)) == code
    assert world.code(world.commit(**fields)) == code


def test_versions_only_rise(world: JointWorld) -> None:
    for version in (3, 3, 10):
        world.decide(version, kind=VERSIONED, location="", run=f"run {version}")
    assert world.code(world.begin(9, b"t", kind=VERSIONED, location="", run="run 9")) == E.CHECKPOINT_ROLLED_BACK
    assert world.last() == 10


def test_a_version_that_is_passed_after_its_begin_fails(world: JointWorld) -> None:
    mine = world.opened(3, b"t", kind=VERSIONED, location="", run=R1)
    world.decide(5, kind=VERSIONED, location="", run=R2)
    assert world.state_of(mine) == "CompleteAbort"
    assert world.code(world.commit(3, mine, kind=VERSIONED, location="", run=R1)) == E.CHECKPOINT_ROLLED_BACK


def test_the_second_override_of_a_moved_checkpoint_is_not_needed_and_does_no_harm(world: JointWorld) -> None:
    decided_to(world, 3)
    world.decide(4, run=R3, location=THERE, checkpoint_moved=HERE)
    world.decide(5, run=R3, location=THERE, checkpoint_moved=HERE)
    assert world.code(world.commit(6, run=R3)) == E.CHECKPOINT_COPIED  # back where it was


# --- children ---


def test_a_child_lies_in_its_groups_partition() -> None:
    for group in (G, "write/x", "grüße", ""):
        for slot in (0, 1, 999, 2**31 - 1):
            for partitions in (1, 2, 50, 97):
                name = child_id(group, slot, partitions)
                assert partition_of(name, partitions) == partition_of(group, partitions)
                assert name.startswith(f"joint:{group}:{slot}:")


def test_the_same_token_gets_the_same_child_and_another_one_never_does(world: JointWorld) -> None:
    first = world.opened(0, b"a")
    records = len(world.log)
    assert world.opened(0, b"a") == first
    assert len(world.log) == records
    second = world.opened(0, b"b")
    assert second.transactional_id != first.transactional_id
    assert second.producer[0] != first.producer[0]
    world.fail_over()
    assert world.opened(0, b"a") == first
    assert world.code(world.begin(0, b"a", run=R2)) == E.INVALID_REQUEST


def test_a_token_is_answered_after_its_child_is_committed() -> None:
    world = JointWorld(autocommit=False)
    first, again = world.begin(0, b"a"), world.begin(0, b"a")
    assert not world.answers
    world.settle()
    assert world.child(first, b"a") == world.child(again, b"a")


def test_a_token_whose_child_has_ended_gets_no_other_one(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    world.abort(0)
    number = world.begin(0, b"a")
    assert world.code(number) == E.CHILD_NOT_OPEN
    assert "AbortJoint has aborted it" in world.answers[number].error_message
    assert world.opened(0, b"b").slot == child.slot  # another attempt has the slot now, with another epoch


def test_a_slot_is_used_again_with_a_new_epoch_once_its_transaction_has_ended(world: JointWorld) -> None:
    world.automark = False
    first = world.opened(0, b"a")
    world.add(first.producer, A, transactional_id=first.transactional_id)
    world.decide(0, first)
    assert world.state_of(first) == "PrepareCommit"
    assert world.opened(1, b"b").slot == 1
    world.automark = True
    world.settle()
    third = world.opened(1, b"c")
    assert third.slot == 0
    assert third.producer == (first.producer[0], first.producer[1] + 1)


def test_a_slot_whose_end_is_not_committed_is_not_given() -> None:
    """A failover could take its last record: then its transaction has not ended."""
    world = JointWorld(autocommit=False)
    number = world.begin(0, b"a")
    world.settle()
    child = world.child(number, b"a")
    world.abort(0)
    world.commit_to(len(world.log))
    assert world.listed(state_filters=("CompleteAbort",)) == [child.transactional_id]
    second, later = world.begin(0, b"b"), len(world.log)
    world.commit_to(later)
    third = world.begin(0, b"c")
    world.commit_to(len(world.log))
    assert [world.child(second, b"b").slot, world.child(third, b"c").slot] == [1, 0]


def test_ids_are_as_many_as_attempts_that_were_open_at_once(world: JointWorld) -> None:
    for sequence in range(200):
        run = f"run {sequence // 3}"
        lost = world.opened(sequence, b"lost%d" % sequence, run=run)
        child = world.opened(sequence, b"t%d" % sequence, run=run)
        world.decide(sequence, child, run=run)
        assert world.state_of(lost) == "CompleteAbort"
    assert len(world.listed()) == 2
    assert next(world.producer_ids) == 0x3E9 + 2


def test_an_id_that_somebody_else_has_is_no_slot(world: JointWorld) -> None:
    taken = child_id(G, 0, 50)
    world.started(transactional_id=taken)
    assert world.opened(0, b"a").slot == 1
    assert world.code(world.init(transactional_id=taken)) == E.NONE


def test_ids_of_others_are_looked_at_up_to_a_limit_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may have as many ids of such names as there can be ids."""
    monkeypatch.setattr(begin, "MAX_SLOTS_TRIED", 3)
    tried: list[int] = []

    def named(group: str, slot: int, partitions: int) -> str:
        tried.append(slot)
        return child_id(group, slot, partitions)

    monkeypatch.setattr(begin, "child_id", named)
    world = JointWorld()
    for slot in range(7):
        world.started(transactional_id=child_id(G, slot, 50))
    number = world.begin(0, b"a")
    assert world.code(number) == E.POLICY_VIOLATION and tried == [0, 1, 2]
    assert f"{child_id(G, 2, 50)} the last one, are somebody else's" in world.answers[number].error_message
    world.decide(0)  # now the group is there, and remembers how far it came
    tried.clear()
    assert [world.code(world.begin(1, b"b")) for _ in range(2)] == [E.POLICY_VIOLATION] * 2
    assert world.opened(1, b"b").slot == 7
    assert world.opened(1, b"c").slot == 8
    assert tried == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_an_epoch_that_runs_out_gets_another_producer_id_at_the_begin(
    world: JointWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("state.table", "state.states", "joint.begin"):
        monkeypatch.setattr(f"quorumlog_broker.coordinator.transactions.{module}.LAST_EPOCH", 2)
    producers = []
    for sequence in range(6):
        child = world.opened(sequence, b"t%d" % sequence)
        world.ids_left = 0  # a decision needs none
        world.decide(sequence, child)
        assert world.state_of(child) == "CompleteCommit"
        world.ids_left = None
        producers.append(child.producer)
    assert producers == [(0x3E9, 0), (0x3E9, 1), (0x3E9, 2), (0x3EA, 0), (0x3EA, 1), (0x3EA, 2)]


def test_without_a_producer_id_nothing_begins(world: JointWorld) -> None:
    world.ids_left = 0
    assert world.code(world.begin(0, b"a")) == E.COORDINATOR_LOAD_IN_PROGRESS
    assert not world.log


LIMITS: list[tuple[str, dict[str, Any], E]] = [
    ("no group", {"group_id": ""}, E.INVALID_REQUEST),
    ("no run", {"run": ""}, E.INVALID_REQUEST),
    ("no token", {"token": b""}, E.INVALID_REQUEST),
    ("a long token", {"token": bytes(65)}, E.INVALID_REQUEST),
    ("a long group", {"group_id": "ü" * 501}, E.INVALID_REQUEST),
    ("a long location", {"location": "x" * 4_001}, E.INVALID_REQUEST),
    ("a long run", {"run": "x" * 201}, E.INVALID_REQUEST),
    ("an unknown kind", {"kind": 3}, E.INVALID_REQUEST),
    ("a negative sequence", {"sequence": -1}, E.INVALID_REQUEST),
    ("no time", {"timeout_ms": 0}, E.INVALID_TRANSACTION_TIMEOUT),
    ("more than a day", {"timeout_ms": 86_400_001}, E.INVALID_TRANSACTION_TIMEOUT),
]


@pytest.mark.parametrize(("fields", "want"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_what_is_no_request_is_refused(world: JointWorld, fields: dict[str, Any], want: E) -> None:
    assert world.code(world.begin(**{"sequence": 0, "token": b"t", **fields})) == want
    assert not world.log


def test_a_child_may_last_for_a_day_and_groups_and_ids_have_a_limit() -> None:
    world = JointWorld(TransactionConfig(max_ids=3, joint=JointConfig(max_groups=2)))
    world.opened(0, b"a", timeout_ms=86_400_000)
    world.opened(0, b"a", group_id="second")
    assert world.code(world.begin(0, b"a", group_id="third")) == E.POLICY_VIOLATION
    world.opened(0, b"b")
    full = world.begin(0, b"c")
    assert world.code(full) == E.POLICY_VIOLATION
    assert "(transaction.coordinator.max.ids); each task of a batch needs one" in world.answers[full].error_message
    assert len(world.listed()) == 3


def test_a_decision_without_children_makes_no_group_above_the_limit() -> None:
    """A batch without rows comes without a BeginJoint."""
    world = JointWorld(TransactionConfig(joint=JointConfig(max_groups=2)))
    world.decide(0, group_id="first")
    world.opened(0, b"a", group_id="second")
    records = len(world.log)
    number = world.commit(0, group_id="third")
    assert world.code(number) == E.POLICY_VIOLATION and "joint.max.groups" in world.answers[number].error_message
    assert len(world.log) == records and {*world.listed_groups()} == {"first", "second"}
    world.decide(0, group_id="second")
    world.decide(1, group_id="first")
    world.forget("first")
    world.decide(0, group_id="third")


# --- deciding ---


def test_one_record_decides_and_all_others_abort(world: JointWorld) -> None:
    named = [world.opened(0, b"n%d" % n) for n in range(3)]
    others = [world.opened(0, b"o%d" % n, run=R2) for n in range(2)]
    stranger = world.opened(0, b"a", group_id="another")
    for child in (*named, *others, stranger):
        assert world.code(world.add(child.producer, A, transactional_id=child.transactional_id)) == E.NONE
    world.decide(0, *named)
    assert [world.state_of(child) for child in named] == ["CompleteCommit"] * 3
    assert [world.state_of(child) for child in others] == ["CompleteAbort"] * 2
    assert world.state_of(stranger) == "Ongoing"
    records = [decode(TRANSACTION_TYPES, write.key, write.value) for write in world.log]
    (decision,) = [record.value for record in records if isinstance(record.key, JointKey)]
    assert [*unpack(decision.children)] == [(child.slot, child.producer[1]) for child in named]


def test_markers_have_the_epoch_behind_the_childs(world: JointWorld) -> None:
    """So a batch of the child that comes late is of an older epoch."""
    world.automark = False
    kept, lost = world.opened(0, b"a"), world.opened(0, b"b")
    for child in (kept, lost):
        world.add(child.producer, A, transactional_id=child.transactional_id)
    world.decide(0, kept)
    found = {one.transactional_id: one.ending for one in world.decided_transactions()}
    assert found[kept.transactional_id] == (kept.producer[0], kept.producer[1] + 1, True, 5, 2)
    assert found[lost.transactional_id] == (lost.producer[0], lost.producer[1] + 1, False, 5, 2)


def test_a_batch_without_rows_is_decided(world: JointWorld) -> None:
    number = world.commit(0, facts={})
    assert world.answers[number] == CommitJointResponse(complete=True)
    assert world.last() == 0


def test_equal_facts_get_the_same_answer_and_others_none(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    world.decide(0, child, facts={"rows": 7, "bytes": 70})
    records = len(world.log)
    world.decide(0, child, facts={"bytes": 70, "rows": 7})
    world.decide(0, facts={"bytes": 70, "rows": 7}, run=R3)  # what was sent is there, whoever asks
    for facts in ({"rows": 7}, {"rows": 7, "bytes": 71}, {"rows": 7, "bytes": 70, "more": 0}, {}):
        number = world.commit(0, child, facts=facts)
        assert world.code(number) == E.REPLAY_DIFFERS
        assert "replayMismatch=0" in world.answers[number].error_message
    world.decide(0, facts={}, replay_mismatch=0)
    assert world.code(world.commit(0, facts={}, replay_mismatch=1)) == E.REPLAY_DIFFERS
    assert len(world.log) == records


UNFIT: list[tuple[str, dict[str, Any]]] = [
    ("another slot", {"slot": 1}),
    ("another epoch", {"producer_epoch": 1}),
    ("another token", {"token": b"b"}),
]


@pytest.mark.parametrize("fields", [row[1] for row in UNFIT], ids=[row[0] for row in UNFIT])
def test_nothing_is_decided_with_a_child_that_is_another_one(world: JointWorld, fields: dict[str, Any]) -> None:
    child = world.opened(0, b"a")
    good = world.opened(0, b"good")
    given = {"slot": child.slot, "producer_epoch": child.producer[1], "token": child.token} | fields
    if fields.get("slot") == good.slot:
        world.abort(0, token=b"good")
        good = world.opened(0, b"better")
        given["slot"] = good.slot
    refs = [JointChildRef(**given)]
    number = world.commit_refs(0, refs)
    assert world.code(number) == E.CHILD_NOT_OPEN
    assert world.last() == -1 and world.state_of(child) == "Ongoing"


def test_nothing_is_decided_with_a_child_that_timed_out_and_the_text_says_so(world: JointWorld) -> None:
    child, other = world.opened(0, b"a"), world.opened(0, b"b", timeout_ms=3_600_000)
    world.pass_ms(80_000)
    assert world.state_of(child) == "CompleteAbort"
    number = world.commit(0, other, child)
    assert world.code(number) == E.CHILD_NOT_OPEN
    assert child.transactional_id in world.answers[number].error_message
    assert "transactionTimeout" in world.answers[number].error_message
    assert world.last() == -1 and world.state_of(other) == "Ongoing"


def test_the_text_says_how_a_slot_came_to_another_attempt(world: JointWorld) -> None:
    """The time-out of the child that is named can be told no more: its slot says it of its newest transaction only."""
    child = world.opened(0, b"a")
    world.pass_ms(100_000)
    assert world.opened(0, b"b").slot == child.slot
    number = world.commit(0, child)
    text = world.answers[number].error_message
    assert world.code(number) == E.CHILD_NOT_OPEN and child.transactional_id in text
    assert "transactionTimeout" in text and "AbortJoint" in text


def test_a_group_holds_no_children_of_its_last_decision(world: JointWorld) -> None:
    """Up to 960 kB, of each of 10,000 groups. The log has them."""
    for n in range(2):
        child = world.opened(n, b"%d" % n)
        world.decide(n, child)
        assert world.state_of(child) == "CompleteCommit"
        decision = world.shard._table.joint_groups[G].decision
        assert decision is not None and (decision.sequence, decision.children) == (n, b"")
        world.fail_over()


def test_a_child_of_another_sequence_is_none_of_this_batch(world: JointWorld) -> None:
    world.decide(0)
    early = world.opened(57, b"a", first_batch=57)
    assert world.code(world.commit(1, early)) == E.CHILD_NOT_OPEN
    assert world.last() == 0


def test_a_child_that_is_named_twice_is_refused(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    assert world.code(world.commit(0, child, child)) == E.INVALID_REQUEST


def test_too_many_children_are_refused_by_name(world: JointWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    children = [world.opened(0, b"t%d" % n) for n in range(3)]
    monkeypatch.setattr("quorumlog_broker.coordinator.transactions.joint.commit.MAX_CHILDREN", 2)
    assert world.code(world.commit(0, *children)) == E.TOO_MANY_CHILDREN
    assert checks.MAX_CHILDREN == 160_000
    world.decide(0, *children[:2])


def test_a_record_that_the_log_does_not_take_is_refused(world: JointWorld) -> None:
    children = [world.opened(0, b"t%d" % n) for n in range(30)]
    world.largest_record_bytes = 200
    assert world.code(world.commit(0, *children)) == E.TOO_MANY_CHILDREN
    assert world.state_of(children[0]) == "Ongoing"


def test_sixty_four_superseded_runs_are_remembered(world: JointWorld) -> None:
    for sequence in range(66):
        world.decide(sequence, run=f"run {sequence}")
    assert world.code(world.begin(66, b"t", run="run 0")) == E.NONE  # forgotten
    assert world.code(world.begin(66, b"u", run="run 1")) == E.SUPERSEDED
    assert world.code(world.begin(66, b"u", run="run 64")) == E.SUPERSEDED
    assert world.code(world.begin(66, b"u", run="run 65")) == E.NONE


# --- answers and the log ---


def test_a_decision_is_told_once_it_is_committed_and_what_is_pending_for_the_group_is_for_each_child() -> None:
    world = JointWorld(autocommit=False)
    first, second = world.begin(0, b"a"), world.begin(0, b"b")
    world.settle()
    child, other = world.child(first, b"a"), world.child(second, b"b")
    number = world.commit(0, child)
    assert number not in world.answers
    for code in (
        world.told(world.begin(1, b"c")),
        world.told(world.commit(1)),
        world.told(world.abort(0)),
        world.told(world.forget()),
        world.told(world.add(child.producer, A, transactional_id=child.transactional_id)),
        world.told(world.add(other.producer, A, transactional_id=other.transactional_id)),
    ):
        assert code == E.CONCURRENT_TRANSACTIONS
    world.settle()
    assert world.told(number) == E.NONE


def test_the_next_decision_waits_for_the_prepare_records_of_the_last() -> None:
    world = JointWorld(autocommit=False)
    begun = [world.begin(0, b"t%d" % n) for n in range(3)]
    world.settle()
    children = [world.child(number, b"t%d" % n) for n, number in enumerate(begun)]
    world.automark = False
    for child in children:
        world.add(child.producer, A, transactional_id=child.transactional_id)
    world.settle()
    decision = len(world.log)
    world.commit(0, children[0])
    assert len(world.log) == decision + 4
    world.commit_to(decision + 1)
    for committed in (decision + 2, decision + 3):  # the last one is of a child that aborts
        assert world.told(world.commit(1)) == E.CONCURRENT_TRANSACTIONS
        world.commit_to(committed)
    assert world.told(world.commit(1)) == E.CONCURRENT_TRANSACTIONS
    world.commit_to(decision + 4)
    number = world.commit(1)
    world.settle()
    assert world.told(number) == E.NONE and world.last() == 1


def test_the_call_returns_when_all_markers_are_written_or_after_its_wait(world: JointWorld) -> None:
    kept, lost = world.opened(0, b"a"), world.opened(0, b"b")
    for child in (kept, lost):
        world.add(child.producer, A, B, transactional_id=child.transactional_id)
    world.automark = False
    number = world.commit(0, kept, commit_wait_ms=2_000)
    world.pass_ms(1_999)
    assert number not in world.answers
    again = world.commit(0, kept, commit_wait_ms=5_000)
    at_once = world.commit(0, kept)
    assert world.answers[at_once] == CommitJointResponse(complete=False)
    world.pass_ms(1)
    assert world.answers[number] == CommitJointResponse(complete=False)
    decided = {one.transactional_id: one for one in world.decided_transactions()}[kept.transactional_id]
    world.mark(decided, A)
    assert again not in world.answers
    world.mark(decided, B)
    assert world.answers[again] == CommitJointResponse(complete=True)  # those that abort are not waited for
    assert world.state_of(lost) == "PrepareAbort"


def test_no_call_waits_for_longer_than_a_coordinator_lets_answers_wait(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    world.add(child.producer, A, transactional_id=child.transactional_id)
    world.automark = False
    number = world.commit(0, child, commit_wait_ms=3_600_000)
    world.pass_ms(9_999)
    assert number not in world.answers
    world.pass_ms(1)
    assert world.answers[number] == CommitJointResponse(complete=False)


def test_calls_that_wait_for_markers_are_dropped_with_the_leadership(world: JointWorld) -> None:
    child = world.opened(0, b"a")
    world.add(child.producer, A, transactional_id=child.transactional_id)
    world.automark = False
    number = world.commit(0, child, commit_wait_ms=5_000)
    assert world.shard.resigned() == [number]


@pytest.mark.parametrize("level", [0, 1])
def test_where_none_may_begin_what_is_open_still_ends(world: JointWorld, level: int) -> None:
    """The level of joint.version; at 0 nothing is decided any more."""
    world.decide(0)
    child = world.opened(1, b"a")
    world.joint_version = level
    refused = world.answers[world.begin(1, b"b")]
    assert refused.error_code is E.UNSUPPORTED_VERSION
    assert f"joint.version is {level}, and this takes 2" in refused.error_message
    assert world.opened(1, b"a") == child and world.answers[world.begin(0, b"c")].decided
    assert world.told(world.commit(1, child)) == (E.NONE if level == 1 else E.UNSUPPORTED_VERSION)

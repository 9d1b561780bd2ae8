"""CommitJoint of many children: it looks at them in steps, and what comes between two steps is seen by the last one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.joint import JointChildRef
from quorumlog_broker.coordinator.transactions.joint import commit
from quorumlog_broker.coordinator.transactions.joint.commit import Commit
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup
from tests.broker.coordinator.joint.joint_world import R2, Child, JointWorld
from tests.broker.coordinator.transaction_world import A, B

CHILDREN, A_STEP = 7, 2
STEPS = 4 + 4 + 1 + 1  # each child is looked at twice, then all that is open; the decision has a step of its own
BETWEEN = range(1, STEPS)


class Scene:
    """A batch of `CHILDREN` and a child that it does not name."""

    def __init__(self) -> None:
        self.world = JointWorld()
        self.children = [self.world.opened(0, b"%d" % n, timeout_ms=60_000 + 20_000 * n) for n in range(CHILDREN)]
        self.stray = self.world.opened(0, b"stray", timeout_ms=3_600_000)
        for child in self.children:
            self.add(child, A)

    def add(self, child: Child, partition: tuple[str, int]) -> int:
        return self.world.add(child.producer, partition, transactional_id=child.transactional_id)

    def decide(self, after: int, change: Callable[[Scene], None]) -> Any:
        """The answer, with `change` after so many steps."""
        number, steps = self.world.commit_in_steps(0, *self.children)
        done = 1
        while True:
            if done == after:
                change(self)
            done += 1
            if not self.world.run_step(steps):
                break
        self.world.autocommit = True
        self.world.settle()
        return self.world.answers[number]

    def states(self) -> list[str]:
        return [self.world.state_of(child) for child in [*self.children, self.stray]]


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "CHILDREN_A_STEP", A_STEP)


def nothing(scene: Scene) -> None:
    """Comes between."""


def a_time_out(scene: Scene) -> None:
    """Of the child that was looked at first."""
    scene.world.pass_ms(75_000)


def an_abort(scene: Scene) -> None:
    scene.world.abort(0, token=scene.children[-1].token)


def another_decision(scene: Scene) -> None:
    scene.world.decide(0, scene.stray, run=R2)


def another_decision_with_other_facts(scene: Scene) -> None:
    scene.world.decide(0, scene.stray, run=R2, facts={"rows": 8})


def partitions(scene: Scene) -> None:
    for child in scene.children:
        scene.add(child, B)


def a_record_that_is_not_committed(scene: Scene) -> None:
    scene.world.autocommit = False
    scene.add(scene.children[0], B)


def another_child(scene: Scene) -> None:
    scene.world.opened(0, b"late")


COMMITTED, ABORTED = ["CompleteCommit"] * CHILDREN, ["CompleteAbort"] * CHILDREN
OPEN = ["Ongoing"] * CHILDREN
# what comes between, the answer, the states of the children and of the stray
CHANGES: list[tuple[Callable[[Scene], None], E, list[str]]] = [
    (nothing, E.NONE, [*COMMITTED, "CompleteAbort"]),
    (a_time_out, E.CHILD_NOT_OPEN, ["CompleteAbort", *OPEN]),
    (an_abort, E.CHILD_NOT_OPEN, [*OPEN[1:], "CompleteAbort", "Ongoing"]),
    (another_decision, E.NONE, [*ABORTED, "CompleteCommit"]),
    (another_decision_with_other_facts, E.REPLAY_DIFFERS, [*ABORTED, "CompleteCommit"]),
    (partitions, E.NONE, [*COMMITTED, "CompleteAbort"]),
    (a_record_that_is_not_committed, E.CONCURRENT_TRANSACTIONS, [*OPEN, "Ongoing"]),
    (another_child, E.NONE, [*COMMITTED, "CompleteAbort"]),
]


@pytest.mark.parametrize("after", BETWEEN)
@pytest.mark.parametrize(("change", "code", "states"), CHANGES, ids=[change.__name__ for change, _, _ in CHANGES])
def test_what_comes_between_two_steps_counts(
    change: Callable[[Scene], None], code: E, states: list[str], after: int
) -> None:
    scene = Scene()
    assert scene.decide(after, change).error_code == code
    assert scene.states() == states


def test_a_partition_that_is_added_meanwhile_gets_its_marker() -> None:
    scene = Scene()
    scene.world.automark = False
    scene.decide(6, partitions)
    marked = {one.transactional_id: set(one.partitions) for one in scene.world.decided_transactions()}
    assert marked == {child.transactional_id: {A, B} for child in scene.children}


def test_no_step_looks_at_more_children_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all of them have changed meanwhile."""
    looked: list[int] = []
    unfit = Commit._unfit

    def counted(self: Commit, request: Any, group: Any, ref: JointChildRef) -> Any:
        looked.append(ref.slot)
        return unfit(self, request, group, ref)

    monkeypatch.setattr(Commit, "_unfit", counted)
    scene = Scene()
    number, steps = scene.world.commit_in_steps(0, *scene.children)
    for _ in range(STEPS - 2):
        assert len(looked) <= A_STEP
        looked.clear()
        assert scene.world.run_step(steps)
    partitions(scene)
    total, goes_on = 0, True
    while goes_on:
        looked.clear()
        goes_on = scene.world.run_step(steps)
        assert len(looked) <= A_STEP
        total += len(looked)
    assert total == CHILDREN
    assert scene.world.answers[number].error_code == E.NONE


def test_a_large_decision_changes_all_children_in_one_step_and_looks_at_none_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What becomes of them is computed before, and what comes between is in it."""
    looked: list[int] = []
    by_hand = JointGroup._decided_by
    monkeypatch.setattr(JointGroup, "_decided_by", lambda group, one: looked.append(1) or by_hand(group, one))
    scene = Scene()
    scene.world.automark = False
    _, steps = scene.world.commit_in_steps(0, *scene.children)
    done, late = 1, None
    while True:
        states, records = scene.states(), len(scene.world.log)
        goes_on = scene.world.run_step(steps)
        done += 1
        if scene.world.last() == 0:
            break
        assert goes_on and scene.states() == states and len(scene.world.log) == records
        if done == 6:
            late = scene.world.opened(0, b"late")
            scene.world.abort(0, token=scene.stray.token)
            partitions(scene)
    assert states == [*OPEN, "PrepareAbort"] or states == [*OPEN, "CompleteAbort"]
    assert scene.states()[:CHILDREN] == ["PrepareCommit"] * CHILDREN
    assert late is not None and scene.world.state_of(late) == "CompleteAbort"
    assert looked == [], "the step of the decision looks at each child"
    scene.world.fail_over()
    assert scene.states()[:CHILDREN] == ["PrepareCommit"] * CHILDREN


def test_a_call_that_is_given_up_watches_no_more() -> None:
    scene = Scene()
    _, steps = scene.world.commit_in_steps(0, *scene.children)
    for _ in range(5):
        scene.world.run_step(steps)
    (group,) = scene.world.shard._table.joint_groups.values()
    assert len(group._watching) == 1
    steps.close()  # type: ignore[attr-defined]
    assert group._watching == []


def test_a_child_that_is_named_twice_far_apart_is_refused() -> None:
    scene = Scene()
    scene.children.append(scene.children[0])
    assert scene.decide(2, nothing).error_code == E.INVALID_REQUEST
    assert scene.states()[:2] == OPEN[:2]

"""Several rolls of one cluster: one goes, whatever the order of their steps and however old what they see is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rolling_clusters import World

from quorumlog.ids import NodeId
from quorumlog.rolling.driving import MarksUnknown, carry_out
from quorumlog.rolling.obstacles import Limits
from quorumlog.rolling.picture import Node, Picture
from quorumlog.rolling.roll import (
    ClaimFailed,
    CommandEnded,
    Effect,
    ElectPreferred,
    End,
    Ending,
    Event,
    Interrupted,
    Looked,
    Restart,
    Roll,
    Tell,
)
from quorumlog.rolling.turn import Claim, Release, Turn
from tests.parts import few

LIMITS = Limits(turn_ms=100, whole_ms=5_000)


@dataclass
class Roller:
    """A roll whose marks are written at once, and whose restarts are steps of their own."""

    world: World
    mark: str
    wanted: Sequence[NodeId] = (1, 2, 3)
    instead_of: str = ""
    pending: list[tuple[str, NodeId]] = field(default_factory=list)
    end: End | None = None

    def __post_init__(self) -> None:
        self.roll = Roll(self.wanted, LIMITS, turn=Turn(self.mark, self.instead_of))

    def step(self, event: Event, now_ms: int = 0) -> list[NodeId]:
        """The nodes whose restart begins: one or none."""
        if self.end is not None:
            return []
        begun = []
        for effect in self.roll.step(event, now_ms):
            match effect:
                case Claim():
                    self.world.claim(effect)
                case Release():
                    self.world.release(effect.mark)
                case Restart():
                    begun.append(effect.node.node_id)
                case End():
                    self.end = effect
                case _:
                    assert isinstance(effect, Tell | ElectPreferred)
        for node_id in begun:
            self.pending = [(what, node_id) for what in ("leave", "come", "command", "catch up")]
        return begun

    def look(self, now_ms: int = 0, **ages: int) -> list[NodeId]:
        return self.step(Looked(picture=self.world.look(**ages)), now_ms)

    def go_on(self) -> None:
        """The next thing that its restart does."""
        if not self.pending:
            return
        what, node_id = self.pending.pop(0)
        if what == "command":
            self.step(CommandEnded(node_id=node_id))
        else:
            {"leave": self.world.leave, "come": self.world.come, "catch up": self.world.catch_up}[what](node_id)


def test_the_first_mark_goes_and_the_other_roll_ends_by_name() -> None:
    world = World()
    first, second = Roller(world, "a", (2,)), Roller(world, "b", (3,))
    assert first.look() == [] and second.look() == [], "both see a cluster that is whole"
    assert world.now.rolls == ("a", "b")
    assert second.look() == [] and first.look() == [2]
    assert second.end is not None
    assert (second.end.ending, second.end.left) == (Ending.REFUSED, (3,)) and "under way: a" in second.end.reason
    while first.end is None:
        first.go_on()
        first.look()
    assert first.end.ending is Ending.DONE and world.now.rolls == ()


def test_a_mark_that_a_dead_roll_has_left_is_taken_away_by_name_only() -> None:
    world = World()
    world.claim(Claim(mark="dead"))
    refused = Roller(world, "b")
    refused.look(), refused.look()
    assert refused.end is not None and "dead" in refused.end.reason and world.now.rolls == ("dead",)
    wrong = Roller(world, "c", instead_of="other")
    wrong.look(), wrong.look()
    assert wrong.end is not None and world.now.rolls == ("dead",)
    right = Roller(world, "d", instead_of="dead")
    assert right.look() == [] and right.look() == [2] and world.now.rolls == ("d",)


def test_a_roll_whose_mark_was_taken_away_restarts_no_further_node() -> None:
    world = World()
    roller = Roller(world, "a")
    roller.look(), roller.look()
    while roller.pending:
        roller.go_on()
    roller.look(10)
    world.claim(Claim(mark="b", instead_of="a"))
    assert roller.look(20) == [] and roller.end is None, "what does not show the mark may be old"
    assert roller.look(120) == []
    assert roller.end is not None
    assert (roller.end.ending, roller.end.done) == (Ending.NOT_WHOLE, (2,)) and "taken away" in roller.end.reason
    assert world.now.rolls == ("b",)


def test_what_was_seen_before_the_mark_does_not_count() -> None:
    """The roll before has ended with its node away, and a broker that is behind shows it as it was."""
    world = World()
    world.claim(Claim(mark="a"))
    world.leave(2)
    world.release("a")
    roller = Roller(world, "b")
    assert roller.look(nodes_back=2, topics_back=2) == [] and world.now.rolls == ("b",)
    assert roller.look(10, nodes_back=3, topics_back=3) == []
    assert roller.look(110) == []
    assert roller.end is not None and "node 2 does not serve" in roller.end.reason


@pytest.mark.parametrize(
    ("event", "ending"),
    [(ClaimFailed(reason="not allowed"), Ending.REFUSED), (Interrupted(), Ending.INTERRUPTED)],
    ids=["not written", "interrupt"],
)
def test_the_mark_is_taken_away_before_the_end(event: Event, ending: Ending) -> None:
    """One that was not answered may be there."""
    world = World()
    roll = Roll((1, 2, 3), LIMITS, turn=Turn("a"))
    assert roll.step(Looked(picture=world.look()), 0) == [Claim(mark="a")]
    release, end = roll.step(event, 10)
    assert release == Release(mark="a") and isinstance(end, End) and end.ending is ending


def test_a_cluster_without_marks_is_rolled_without() -> None:
    roll = Roll((2,), LIMITS, turn=Turn("a"))
    roll.step(Looked(picture=World().look()), 0)
    (told,) = roll.step(ClaimFailed(reason="no such setting", is_unknown=True), 0)
    assert isinstance(told, Tell) and "no such setting" in told.text
    assert [type(one) for one in roll.step(Looked(picture=World().look()), 0)] == [Restart]


ACTIONS = ("look", "look", "look", "go on", "go on", "interrupt", "fail")
AGES = st.sampled_from([0, 0, 0, 0, 0, 1, 2, 5])  # in changes of the metadata; mostly new, so that rolls come far


@settings(max_examples=few(300))
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(ACTIONS), AGES, AGES, AGES),
        min_size=10,
        max_size=120,
    )
)
def test_never_are_two_nodes_away_by_rolls_that_are_interleaved(
    steps: list[tuple[int, str, int, int, int]],
) -> None:
    """A command that fails may have its node leave later; the roll has ended by then."""
    world = World()
    rollers = [Roller(world, "a", (2, 3)), Roller(world, "b", (3, 2)), Roller(world, "c")]
    for number, what, nodes_back, topics_back, rolls_back in steps:
        roller, begun = rollers[number], list[NodeId]()
        running = [one for one in rollers if one.pending]
        if what == "look":
            begun = roller.look(nodes_back=nodes_back, topics_back=topics_back, rolls_back=rolls_back)
        elif what == "go on":
            roller.go_on()
        elif what == "interrupt" and nodes_back:
            roller.step(Interrupted())
        elif what == "fail" and nodes_back and len(roller.pending) == 2:
            roller.pending = []  # the node has come back, and is not in sync
            roller.step(CommandEnded(node_id=roller.roll.under_way or 0, failure="exit code 1"))
        for node_id in begun:
            assert world.is_whole, (
                f"node {node_id} is restarted by {roller.mark} although not all is whole: {world.now}"
            )
            assert not running, f"node {node_id} is restarted while {running[0].pending[0]} is to come"


class Asked:
    """A cluster that answers claims with an error, or does as it is told."""

    def __init__(self, world: World, failure: Exception | None = None) -> None:
        self.world, self.failure = world, failure
        self.released: list[str] = []

    def look(self) -> Picture:
        return self.world.look()

    def elect(self, effect: ElectPreferred) -> None:
        pass

    def claim(self, effect: Claim) -> None:
        if self.failure is not None:
            raise self.failure
        self.world.claim(effect)

    def release(self, effect: Release) -> None:
        self.released.append(effect.mark)
        self.world.release(effect.mark)


class AtOnce:
    def __init__(self, world: World) -> None:
        self.world, self.done = world, list[NodeId]()

    def begin(self, node: Node) -> None:
        for change in (self.world.leave, self.world.come, self.world.catch_up):
            change(node.node_id)
        self.done.append(node.node_id)

    def ended(self) -> str | None:
        return ""


@pytest.mark.parametrize(
    ("failure", "ending", "restarted", "released"),
    [
        (None, Ending.DONE, [2, 3, 1], ["a"]),
        (MarksUnknown("no such setting"), Ending.DONE, [2, 3, 1], []),
        (TimeoutError("nobody answers"), Ending.REFUSED, [], ["a"]),
    ],
    ids=["written", "unknown", "not answered"],
)
def test_the_shell_hands_on_what_became_of_the_mark(
    failure: Exception | None, ending: Ending, restarted: list[NodeId], released: list[str]
) -> None:
    world = World()
    asked, restarter, told, now = Asked(world, failure), AtOnce(world), list[str](), [0]

    def passes(seconds: float) -> None:
        now[0] += round(seconds * 1000)

    roll = Roll((1, 2, 3), LIMITS, turn=Turn("a"))
    end = carry_out(roll, asked, restarter, now_ms=lambda: now[0], sleep_s=passes, tell=told.append)
    assert (end.ending, restarter.done, asked.released) == (ending, restarted, released)
    assert world.now.rolls == ()


def test_effects_have_their_order() -> None:
    """A mark is taken away only when nothing more comes."""
    world = World()
    roll, seen = Roll((2,), LIMITS, turn=Turn("a")), list[Effect]()
    seen += roll.step(Looked(picture=world.look()), 0)
    world.claim(Claim(mark="a"))
    seen += roll.step(Looked(picture=world.look()), 0)
    world.leave(2), world.come(2), world.catch_up(2)
    seen += roll.step(CommandEnded(node_id=2), 0)
    for _ in range(2):
        seen += roll.step(Looked(picture=world.look()), 0)
    assert [type(one) for one in seen] == [Claim, Restart, Tell, Tell, ElectPreferred, Release, End]

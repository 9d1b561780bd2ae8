"""The steps of a roll: tables, and what holds in whatever order things happen and however old the answers are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rolling_clusters import THREE, WHOLE, World, node, partition, picture

from quorumlog.ids import NodeId
from quorumlog.rolling.obstacles import Limits
from quorumlog.rolling.picture import Picture, Voter
from quorumlog.rolling.roll import (
    Blind,
    CommandEnded,
    Effect,
    ElectPreferred,
    End,
    Ending,
    Interrupted,
    Looked,
    Restart,
    Roll,
    Tell,
)
from tests.parts import few

LIMITS = Limits(life_ms=1_000, whole_ms=5_000, settle_ms=300)


def restarted(effects: list[Effect]) -> list[NodeId]:
    return [effect.node.node_id for effect in effects if isinstance(effect, Restart)]


def end_of(effects: list[Effect]) -> End:
    (found,) = (effect for effect in effects if isinstance(effect, End))
    return found


def begun(world: World, wanted: tuple[NodeId, ...] = (1, 2, 3)) -> Roll:
    """Node 2 is under way, and its command has ended."""
    roll = Roll(wanted, LIMITS)
    assert restarted(roll.step(Looked(picture=world.look()), 0)) == [2]
    assert roll.step(CommandEnded(node_id=2), 0) == []
    return roll


def test_nodes_are_restarted_in_turn_and_each_must_be_whole_first() -> None:
    world = World()
    roll, order, now_ms = Roll((1, 2, 3), LIMITS), [], 0
    effects = roll.step(Looked(picture=world.look()), now_ms)
    while not any(isinstance(effect, End) for effect in effects):
        for node_id in restarted(effects):
            order.append(node_id)
            for change in (world.leave, world.come):
                change(node_id)
                now_ms += 10
                assert not restarted(roll.step(Looked(picture=world.look()), now_ms))
            roll.step(CommandEnded(node_id=node_id), now_ms)
            assert not restarted(roll.step(Looked(picture=world.look()), now_ms)), "it is not in sync yet"
            world.catch_up(node_id)
        effects = roll.step(Looked(picture=world.look()), now_ms := now_ms + 10)
    assert order == [2, 3, 1]
    assert end_of(effects) == End(ending=Ending.DONE, done=(2, 3, 1))


@pytest.mark.parametrize(
    ("found", "may_take", "reason"),
    [
        pytest.param(picture(THREE, [partition(0, (1, 2, 3), isr=(1, 2))]), True, "lacks node 3", id="short ISR"),
        pytest.param(picture(THREE, [partition(0, (2,))]), False, "t-0: its only replica", id="one replica"),
        pytest.param(picture([node(1), node(2)]), False, "no majority", id="two voters"),
    ],
)
def test_nothing_is_begun(found: Picture, may_take: bool, reason: str) -> None:
    end = end_of(Roll((2,), LIMITS, may_take=may_take).step(Looked(picture=found), 0))
    assert (end.ending, end.at, end.left) == (Ending.REFUSED, None, (2,)) and reason in end.reason


def test_the_flag_takes_it() -> None:
    found = picture([node(1), node(2)], [partition(0, (2,))])
    assert restarted(Roll((2,), LIMITS, may_take=True).step(Looked(picture=found), 0)) == [2]


def test_a_topic_that_was_made_since_is_not_taken_unasked() -> None:
    world = World()
    roll = begun(world)
    world.leave(2), world.come(2), world.catch_up(2)
    world.change(partitions=(*world.now.partitions, partition(9, (3,))))
    assert any(isinstance(effect, Tell) for effect in roll.step(Looked(picture=world.look()), 10))
    end = end_of(roll.step(Looked(picture=world.look()), 20))
    assert (end.ending, end.done, end.left) == (Ending.REFUSED, (2,), (1, 3)) and "t-9" in end.reason


def test_a_command_that_failed_ends_it() -> None:
    world = World()
    roll = Roll((1, 2, 3), LIMITS)
    roll.step(Looked(picture=world.look()), 0)
    end = end_of(roll.step(CommandEnded(node_id=2, failure="exit code 3"), 10))
    assert end == End(ending=Ending.COMMAND_FAILED, reason="exit code 3", at=2, left=(2, 1, 3))


def test_a_command_that_restarted_nothing_is_found() -> None:
    world = World()
    roll = begun(world)
    assert roll.step(Looked(picture=world.look()), 999) == []
    end = end_of(roll.step(Looked(picture=world.look()), 1_000))
    assert end.ending is Ending.NOT_RESTARTED and "still serves in the life it was in" in end.reason


def test_a_node_that_stays_away_is_told_apart() -> None:
    world = World()
    roll = begun(world)
    world.leave(2)
    roll.step(Looked(picture=world.look()), 10)
    assert "has not come back" in end_of(roll.step(Blind(reason="nobody answers"), 1_000)).reason


def test_a_node_that_does_not_become_whole() -> None:
    world = World()
    roll = begun(world)
    world.leave(2), world.come(2)
    assert len(roll.step(Looked(picture=world.look()), 10)) == 1
    assert roll.step(Looked(picture=world.look()), 5_009) == []
    end = end_of(roll.step(Looked(picture=world.look()), 5_010))
    assert end.ending is Ending.NOT_WHOLE and "t-0, t-1, t-2 lack node 2 in the ISR" in end.reason


def test_a_node_that_another_one_restarts_ends_it() -> None:
    """Two rolls at once, where nothing else keeps them apart."""
    world = World()
    roll = begun(world)
    world.leave(3), world.come(3)
    end = end_of(roll.step(Looked(picture=world.look()), 10))
    assert (end.ending, end.at) == (Ending.ELSEWHERE, 2) and "node 3" in end.reason


def test_an_older_answer_is_no_news() -> None:
    """A broker that is behind shows the ISRs of before the node was away."""
    world = World()
    roll = begun(world)
    world.leave(2), world.come(2)
    roll.step(Looked(picture=world.look()), 10)
    for back in ({"topics_back": 2}, {"nodes_back": 2, "topics_back": 2}):
        assert roll.step(Looked(picture=world.look(**back)), 20) == []
    world.catch_up(2)
    assert roll.step(Looked(picture=world.look()), 30) == [
        Tell(text="node 2 is whole again after 0.0 s"),
        *given_back(1),
    ]


def given_back(index: int) -> list[Effect]:
    return [ElectPreferred(partitions=(("t", index),))]


def test_without_epochs_a_node_must_be_seen_away_and_all_stay_whole_for_a_while() -> None:
    world = World(tells_epochs=False)
    roll = begun(world)
    roll.step(Looked(picture=world.look()), 10)
    world.leave(2)
    roll.step(Looked(picture=world.look()), 20)
    world.come(2), world.catch_up(2)
    for now_ms in (30, 329):
        assert not any(isinstance(effect, ElectPreferred) for effect in roll.step(Looked(picture=world.look()), now_ms))
    assert roll.step(Looked(picture=world.look()), 330)[1:] == given_back(1)


def test_a_controller_only_is_away_while_it_does_not_fetch() -> None:
    def quorum(since_fetch_ms: int) -> Picture:
        voter = Voter(since_fetch_ms=since_fetch_ms)
        return picture([node(1), node(2, is_broker=False, epoch=-1, voter=voter), node(3)])

    roll = Roll((2,), LIMITS)
    assert restarted(roll.step(Looked(picture=quorum(100)), 0)) == [2]
    roll.step(CommandEnded(node_id=2), 0)
    assert roll.step(Looked(picture=quorum(1_499)), 10) == []
    assert roll.step(Looked(picture=quorum(1_500)), 20) == []
    assert len(roll.step(Looked(picture=quorum(0)), 30)) == 2
    assert end_of(roll.step(Looked(picture=quorum(0)), 40)).done == (2,)


def test_an_interrupt_waits_for_the_node_under_way() -> None:
    world = World()
    roll = begun(world)
    assert len(roll.step(Interrupted(), 5)) == 1
    world.leave(2), world.come(2), world.catch_up(2)
    roll.step(Looked(picture=world.look()), 10)
    assert end_of(roll.step(Looked(picture=world.look()), 20)) == End(ending=Ending.INTERRUPTED, done=(2,), left=(1, 3))


def test_an_interrupt_between_two_nodes_ends_it() -> None:
    assert end_of(Roll((1, 2), LIMITS).step(Interrupted(), 0)).ending is Ending.INTERRUPTED


def test_what_comes_up_between_two_nodes_is_waited_for() -> None:
    world = World()
    roll = begun(world)
    world.leave(2), world.come(2), world.catch_up(2)
    roll.step(Looked(picture=world.look()), 10)
    short = replace(world.look(), moving=("t-0",))
    assert roll.step(Looked(picture=short), 20) == []
    assert end_of(roll.step(Looked(picture=short), 5_020)).ending is Ending.NOT_WHOLE


# --- any order ---

CHANGES = ("leave", "come", "catch up", "command", "leave", "come", "command", "flap", "others come", "interrupt")
LOOKS = ("look", "look", "look", "old topics", "blind", "none")


def change(world: World, what: str, running: NodeId | None, number: int) -> None:
    """Of the node under way, or of another one, which is not in a new life then."""
    nodes = world.now.nodes
    if running is not None and what == "leave" and nodes[running].is_serving:
        world.leave(running)
    elif running is not None and what == "come" and not nodes[running].is_serving:
        world.come(running)
    elif what == "catch up":
        for node_id, one in nodes.items():
            if one.is_serving and number % 4 != node_id:
                world.catch_up(node_id)
    elif what == "flap" and number % 3 + 1 != running and nodes[number % 3 + 1].is_serving:
        world.leave(number % 3 + 1)
    elif what == "others come":
        for node_id, one in nodes.items():
            if not one.is_serving and node_id != running:
                world.come(node_id, in_new_life=False)


@settings(max_examples=few(300))
@given(
    st.lists(
        st.tuples(st.sampled_from(CHANGES), st.integers(0, 5), st.sampled_from(LOOKS), st.sampled_from([0, 10, 1_000])),
        min_size=20,
        max_size=80,
    ),
    st.sampled_from([WHOLE, picture(THREE, [partition(0, (2, 3), min_isr=1)])]),
)
def test_no_node_is_restarted_while_another_is_away_or_an_isr_short(
    steps: list[tuple[str, int, str, int]], first: Picture
) -> None:
    """Nodes leave and come back by themselves, too, and partitions are told by images of any age."""
    world, roll, now_ms = World(first), Roll((1, 2, 3), LIMITS), 0
    commanded: NodeId | None = None
    for what, number, look, after_ms in [("none", 0, "look", 0), *steps]:
        now_ms += after_ms
        change(world, what, roll.under_way, number)
        effects: list[Effect] = []
        if what == "command" and commanded is not None:
            effects = roll.step(CommandEnded(node_id=commanded, failure="exit code 1" if number == 5 else ""), now_ms)
            commanded = None
        elif what == "interrupt" and number == 0:
            effects = roll.step(Interrupted(), now_ms)
        if look != "none" and not any(isinstance(effect, End) for effect in effects):
            found = world.look(topics_back=number if look == "old topics" else 0)
            effects += roll.step(Blind(reason="silence") if look == "blind" else Looked(picture=found), now_ms)
        for node_id in restarted(effects):
            assert world.is_whole, f"node {node_id} is restarted although not all is whole: {world.now}"
            commanded = node_id
        if any(isinstance(effect, End) for effect in effects):
            return


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60))
def test_nor_by_answers_of_any_age(ages: list[tuple[int, int]]) -> None:
    """Nothing but the roll harms the nodes here; both answers of a look may be of before anything happened."""
    world, roll = World(), Roll((1, 2, 3), LIMITS)
    pending: list[tuple[str, NodeId]] = []
    for nodes_back, topics_back in [(0, 0), *ages]:
        effects = roll.step(Looked(picture=world.look(nodes_back, topics_back)), 0)
        for node_id in restarted(effects):
            assert world.is_whole and not pending
            pending = [("leave", node_id), ("come", node_id), ("command", node_id), ("catch up", node_id)]
        if any(isinstance(effect, End) for effect in effects):
            assert end_of(effects).ending is Ending.DONE and world.is_whole
            return
        if pending:
            what, node_id = pending.pop(0)
            if what == "command":
                roll.step(CommandEnded(node_id=node_id), 0)
            else:
                {"leave": world.leave, "come": world.come, "catch up": world.catch_up}[what](node_id)

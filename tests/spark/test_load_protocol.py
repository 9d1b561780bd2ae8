"""The protocol of a load, in memory: two loaders at once, and a death between any two steps.

After every step no offset may be in two files, and none that a commit names may be missing (`World.check`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.client.errors import ConfigError
from quorumlog.ids import Offset, Uuid
from quorumlog.spark.load.choosing import CannotLoad, LostBeforeLoad, Wanted, choose
from quorumlog.spark.load.folder import BY_DAY, DELTA, BadRecord, commit_name, parse_commit, parse_plan, plan_name
from quorumlog.spark.load.protocol import Create, Ended, Put, Read
from quorumlog.spark.stream.planning import by_partition
from tests.spark.load_world import CLUSTER, TOPIC, Fault, Run, World, commits, load_all

Begun = Callable[[], World]

PLAIN = Wanted(rows_per_file=3)
DAYS = Wanted(rows_per_file=3, partition_by=BY_DAY)
AGAIN = Wanted(rows_per_file=2, starts={(TOPIC, 0): Offset(0), (TOPIC, 1): Offset(0)})
TABLE = Wanted(rows_per_file=3, table=DELTA)
OTHER = Wanted(rows_per_file=2)  # options that have changed since the plan


def steps_of(world: World, wanted: Wanted) -> int:
    return Run(world, "counts", wanted).go()


def grown(wanted: Wanted = DAYS) -> World:
    """Loaded once, and with more records since."""
    world = World()
    load_all(world, "first", wanted)
    world.ends = {0: 6, 1: 1, 2: 1}
    return world


def grown_table() -> World:
    return grown(TABLE)


def copy(world: World) -> World:
    return replace(
        world, ends=dict(world.ends), compacted=set(world.compacted), objects=dict(world.objects),
        starts=world.starts.copy(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "begun"),
    [
        (PLAIN, OTHER, World),
        (DAYS, OTHER, World),
        (DAYS, AGAIN, grown),
        (AGAIN, OTHER, grown),
        (TABLE, OTHER, World),
        (TABLE, AGAIN, grown_table),
        (AGAIN, OTHER, grown_table),
    ],
    ids=[
        "plain",
        "days",
        "days, and again",
        "again, and other options",
        "table",
        "table, and again",
        "table, again, and other options",
    ],
)
def test_two_loaders_and_a_death_between_any_two_steps(
    first: Wanted, second: Wanted, begun: Callable[[], World]
) -> None:
    """A takes i steps, B takes j; then one or both of them die, or none; then a third loads what is left.

    A table is rewritten by something else whenever nobody takes a step.
    """
    made = begun()
    for i in range(steps_of(copy(made), first) + 1):
        for j in range(steps_of(copy(made), like(second, first)) + 3):
            for deaths in ("", "a", "b", "ab"):
                world = copy(made)
                a, b = Run(world, "a", first), Run(world, "b", like(second, first))
                a.go(i)
                world.compacted.add((0, i % 5))
                world.rewrite()
                b.go(j)
                world.rewrite()
                for one, name in ((a, "a"), (b, "b")):
                    if name in deaths and one.lives:
                        one.die()
                    one.go()
                world.ends[0] += 2
                load_all(world, "c", Wanted(rows_per_file=100))
                world.check_whole()


def like(wanted: Wanted, first: Wanted) -> Wanted:
    """Of the same layout: the two do not quarrel about that."""
    return replace(wanted, partition_by=first.partition_by, table=first.table)


Move = tuple[str, Fault, int]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "grow", "compact", "rewrite", "die"]), st.sampled_from(Fault), st.integers(0, 8)
        ),
        max_size=80,
    ),
    st.sampled_from([PLAIN, DAYS, TABLE]),
    st.sampled_from([OTHER, AGAIN]),
)
@settings(deadline=None, max_examples=300)
def test_any_order_and_lost_answers(moves: list[Move], first: Wanted, second: Wanted) -> None:
    world = World()
    wants = {"a": first, "b": like(second, first)}
    runs = {name: Run(world, name, wanted) for name, wanted in wants.items()}
    for count, (what, fault, number) in enumerate(moves):
        if what == "grow":
            world.ends[number % 3] = world.ends.get(number % 3, 0) + 2
        elif what == "compact":
            world.compacted.add((number % 3, number))
        elif what == "rewrite":
            world.rewrite()
        elif what == "die":
            name = "ab"[number % 2]
            runs[name].die()
            runs[name] = Run(world, f"{name}{count}", wants[name])
        elif runs[what].lives:
            runs[what].go(1, fault)
        else:
            runs[what] = Run(world, f"{what}{count}", wants[what])
    for run in runs.values():
        run.go()
    load_all(world, "last", Wanted())
    world.check_whole()


def test_a_plan_without_its_commit_runs_as_it_was_planned() -> None:
    """Whatever the options now say; then what they say is done."""
    world = World(ends={0: 6})
    run = Run(world, "dead", Wanted(rows_per_file=2))
    while plan_name(1) not in world.objects:
        run.go(1)
    run.die()
    world.ends[0] = 9
    load_all(world, "next", Wanted(rows_per_file=9))
    found = [[(one.start, one.end) for one in commit.ranges] for commit in commits(world)]
    assert found == [[(0, 2), (2, 4), (4, 6)], [(6, 9)]]
    assert parse_commit(commit_name(1), world.objects[commit_name(1)]).token == "next"


def test_the_loser_of_a_plan_writes_nothing() -> None:
    world = World()
    a, b = Run(world, "a", PLAIN), Run(world, "b", OTHER)
    for run in (a, b):
        while type(run.step).__name__ != "Create":
            run.go(1)
    a.go(1)
    before = dict(world.objects)
    b.go()
    assert b.outcome is not None and (b.outcome.ended, b.outcome.number) == (Ended.LOST, 1)
    assert world.objects == before


def test_an_answer_that_was_lost_is_no_loss() -> None:
    """Its own token: it won, and goes on; absent: it tries again."""
    for fault in (Fault.DONE_UNHEARD, Fault.NOT_DONE):
        world = World()
        run = Run(world, "a", PLAIN)
        met: set[str] = set()
        while run.step is not None:
            name = run.step.name if isinstance(run.step, Create | Put) else ""
            run.go(1, Fault.NONE if name in met else fault)
            met.add(name)
        assert run.outcome is not None and run.outcome.ended is Ended.COMMITTED
        world.check_whole()


def test_a_run_without_records_remembers_what_it_saw() -> None:
    """P13: the next one begins there, a partition that comes later at its start; without news nothing is written."""
    world = World(ends={0: 0, 1: 0, 2: 0})
    assert load_all(world, "a", Wanted()).ended is Ended.COMMITTED and not world.files()
    before = dict(world.objects)
    assert load_all(world, "b", Wanted()).ended is Ended.NOTHING and world.objects == before
    world.ends = {0: 200, 1: 100, 2: 0}
    load_all(world, "c", Wanted())
    world.ends[3] = 100
    load_all(world, "d", Wanted())
    assert load_all(world, "e", Wanted()).ended is Ended.NOTHING
    world.check_whole()
    assert sum(len(rows) for _, rows in world.files().values()) == 400
    world.starts.update(world.ends)  # all records are deleted
    assert load_all(world, "f", Wanted()).ended is Ended.NOTHING


def test_what_is_loaded_again_keeps_its_names() -> None:
    world = World(ends={0: 10})
    load_all(world, "a", Wanted(rows_per_file=4))
    before = set(world.files())
    world.ends[0] = 12
    load_all(world, "b", Wanted(rows_per_file=5, starts={(TOPIC, 0): Offset(5)}))
    *_, last = commits(world)
    assert [(one.start, one.end) for one in last.ranges] == [(3, 6), (6, 10), (10, 12)]
    assert before < set(world.files()) and len(world.files()) == len(before) + 1
    world.check_whole()


def test_a_beginning_before_the_first_load_fills_what_lies_before() -> None:
    world = World(ends={0: 10})
    load_all(world, "a", Wanted(starts={(TOPIC, 0): Offset(6)}))
    load_all(world, "b", Wanted(starts={(TOPIC, 0): Offset(2)}, ends={(TOPIC, 0): Offset(6)}))
    *_, last = commits(world)
    assert [(one.start, one.end) for one in last.ranges] == [(2, 6)]
    assert last.position.offsets == {(TOPIC, 0): 10}
    world.check()


def test_a_partition_that_came_later_begins_at_its_start_whatever_is_loaded_again() -> None:
    """P13. `--from` is about what was loaded before: nothing of a new partition may be left out in silence."""
    again = {(TOPIC, partition): Offset(3) for partition in range(3)}
    world = World(ends={0: 5})
    load_all(world, "a", Wanted())
    world.ends = {0: 6, 1: 5, 2: 1}
    world.starts[1] = 1
    load_all(world, "b", Wanted(starts=again))
    world.check_whole()
    *_, last = commits(world)
    assert [(one.partition, one.start, one.end) for one in last.ranges] == [(0, 0, 5), (0, 5, 6), (1, 1, 5), (2, 0, 1)]


@pytest.mark.parametrize("begun", [World, grown])
def test_an_end_before_the_beginning_is_refused(begun: Begun) -> None:
    """A first load would remember the beginning, and leave out what lies before it for ever."""
    world = begun()
    before = dict(world.objects)
    with pytest.raises(ConfigError, match=r"--from and --until leave nothing of orders-0: .* from offset 3 to 2"):
        load_all(world, "a", Wanted(starts={(TOPIC, 0): Offset(3)}, ends={(TOPIC, 0): Offset(2)}))
    assert world.objects == before


def test_a_slower_loader_writes_nothing_over_once_the_load_is_committed() -> None:
    """The commit counts the bytes of the faster one."""
    world = grown()
    slow = Run(world, "slow", AGAIN)
    while slow.step != Read("the log"):
        slow.go(1)
    Run(world, "fast", OTHER).go()
    before = dict(world.objects)
    world.compacted.add((0, 1))  # so the slow one has another file than the fast one had
    slow.go()
    assert world.objects == before
    assert slow.outcome is not None and slow.outcome.commit is not None and slow.outcome.commit.token == "fast"


def test_an_end_is_where_the_next_load_begins() -> None:
    world = World(ends={0: 10})
    load_all(world, "a", Wanted(ends={(TOPIC, 0): Offset(4)}))
    assert sorted(world.files().values()) == [(0, [0, 1, 2, 3])]
    load_all(world, "b", Wanted())
    world.check_whole()


def test_what_the_log_no_longer_has_is_never_loaded_again() -> None:
    """The files hold all that is left of it."""
    world = World(ends={0: 10})
    load_all(world, "a", Wanted(rows_per_file=5))
    world.starts[0] = 3
    before = dict(world.objects)
    with pytest.raises(CannotLoad, match=r"Give a --from of 5 or more"):
        load_all(world, "b", Wanted(starts={(TOPIC, 0): Offset(4)}))
    assert world.objects == before
    load_all(world, "c", Wanted(starts={(TOPIC, 0): Offset(5)}))
    world.check()


def test_records_that_went_before_they_were_loaded() -> None:
    world = World(ends={0: 4})
    load_all(world, "a", Wanted())
    world.ends[0], world.starts[0] = 10, 7
    with pytest.raises(LostBeforeLoad, match=r"orders-0: 3 offsets from 4 to 7 .* --skip-lost"):
        load_all(world, "b", Wanted())
    load_all(world, "b", Wanted(skip_lost=True))
    *_, last = commits(world)
    assert [(one.start, one.end) for one in last.lost] == [(4, 7)]
    assert [(one.start, one.end) for one in last.ranges] == [(7, 10)]
    load_all(world, "c", Wanted(starts={(TOPIC, 0): Offset(7)}))  # and they are not missed again
    world.check()


def test_another_topic_of_the_name_another_cluster_or_another_layout_is_refused() -> None:
    world = World()
    load_all(world, "a", Wanted())
    last = next(commits(world))
    spans = by_partition([replace(span, topic_id=Uuid(bytes(16))) for span in world.spans()])
    with pytest.raises(CannotLoad, match="deleted and created again"):
        choose(last, {}, spans, Wanted(), CLUSTER)
    with pytest.raises(CannotLoad, match="loaded from cluster c, and these addresses lead to cluster other"):
        choose(last, {}, by_partition(world.spans()), Wanted(), "other")
    with pytest.raises(ConfigError, match="--partition-by is none in this folder"):
        choose(last, {}, by_partition(world.spans()), DAYS, CLUSTER)
    with pytest.raises(ConfigError, match="--isolation-level is read_committed"):
        choose(last, {}, by_partition(world.spans()), Wanted(isolation_level="read_uncommitted"), CLUSTER)


def test_files_of_nobody_are_refused() -> None:
    world = World(objects={"topic=orders/p=0/old.parquet": (0, [0])})
    with pytest.raises(CannotLoad, match="Load into an empty folder"):
        load_all(world, "a", Wanted())


def test_a_leader_that_names_a_lower_end_takes_nothing_back() -> None:
    world = World(ends={0: 10})
    load_all(world, "a", Wanted())
    world.ends[0] = 7
    assert load_all(world, "b", Wanted()).ended is Ended.NOTHING
    world.ends[0] = 12
    load_all(world, "c", Wanted())
    world.check_whole()


def test_records_come_back_as_they_were_written_and_others_are_refused() -> None:
    world = World()
    load_all(world, "a", DAYS)
    plan = parse_plan("p", world.objects[plan_name(1)])
    commit = parse_commit("c", world.objects[commit_name(1)])
    assert plan.to_bytes() == world.objects[plan_name(1)]
    assert commit.to_bytes() == world.objects[commit_name(1)] and commit.position == plan.position
    for broken in (b"", b"[]", b'{"v":1}', b'{"v":2}'):
        with pytest.raises(BadRecord, match="commit-7"):
            parse_commit("commit-7", broken)
        with pytest.raises(BadRecord, match="plan-7"):
            parse_plan("plan-7", broken)

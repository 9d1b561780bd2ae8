"""Subscriptions by regular expression: resolved off the way of calls, over topics that come and go."""

from __future__ import annotations

import pytest

from quorumlog_broker.coordinator.groups.consumer.subscriptions import MAX_LENGTH, SLICE, resolve, why_invalid
from tests.broker.coordinator.consumer_world import ConsumerWorld, assignment, topics
from tests.broker.coordinator.test_consumer_static import drain
from tests.rules import rule


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld(foo1=1, foo2=1, barfoo1=1)


@pytest.mark.parametrize(
    ("regex", "found"),
    [
        ("foo.*", ("foo1", "foo2")),
        ("foo", ()),
        (".*foo1", ("barfoo1", "foo1")),
        ("foo1|foo2", ("foo1", "foo2")),
        ("(?i)FOO1", ("foo1",)),
    ],
)
def test_an_expression_matches_whole_names(regex: str, found: tuple[str, ...]) -> None:
    assert drain(resolve(regex, ["barfoo1", "foo1", "foo2"])) == found


def test_names_are_looked_through_in_slices() -> None:
    assert sum(1 for _ in resolve("a", ["x"] * (3 * SLICE))) == 3


@rule("group 5.2")
@pytest.mark.parametrize("regex", ["(", "(?=a)", r"\1", "a" * (MAX_LENGTH + 1), "(" * 2_000])
def test_expressions_that_are_not_taken(regex: str) -> None:
    assert why_invalid(regex)


def test_an_expression_that_backtracks_elsewhere_is_harmless() -> None:
    assert drain(resolve("(a*)*b", ["a" * 200])) == ()


def test_the_topics_come_when_the_expression_is_resolved(world: ConsumerWorld) -> None:
    world.works = False
    answer = world.enter("m1", None, regex="foo.*")
    assert (answer.member_epoch, assignment(answer)) == (2, {})
    assert assignment(world.told("m1", 2)) is None
    world.works = True
    world.pass_ms(0)
    answer = world.told("m1", 2)
    assert (answer.member_epoch, assignment(answer)) == (3, {"foo1": {0}, "foo2": {0}})
    assert world.group.regexes["foo.*"].topics == ("foo1", "foo2")


def test_a_known_expression_counts_at_once(world: ConsumerWorld) -> None:
    world.enter("m1", None, regex="foo.*")
    world.told("m1", 2)
    answer = world.enter("m2", None, regex="foo.*")
    assert answer.member_epoch == 4 and len(world.group.target_of("m2")) == 1


def test_names_and_expression_add_up(world: ConsumerWorld) -> None:
    world.enter("m1", "barfoo1", regex="foo1")
    assert assignment(world.told("m1", 2)) == {"barfoo1": {0}, "foo1": {0}}


def test_a_topic_that_comes_later_is_found_not_before_10_s(world: ConsumerWorld) -> None:
    world.enter("m1", None, regex="foo.*")
    world.told("m1", 2)
    world.use(topics(version=1, foo1=1, foo2=1, foo3=1))
    world.pass_ms(9_999)
    world.told("m1", 3)
    assert world.told("m1", 3).assignment is None
    world.pass_ms(1)
    world.told("m1", 3)
    assert assignment(world.told("m1", 3)) == {"foo1": {0}, "foo2": {0}, "foo3": {0}}


def test_an_expression_that_nobody_uses_is_deleted(world: ConsumerWorld) -> None:
    world.enter("m1", None, regex="foo.*")
    world.told("m1", 2)
    assert assignment(world.told("m1", 3, regex="")) == {}, "it gives up what it has"
    assert world.group.regexes == {}
    world.told("m1", 3, {}, regex="bar.*")
    world.told("m1", -1)
    assert world.group.regexes == {}


def test_after_a_failover_expressions_are_looked_at_again(world: ConsumerWorld) -> None:
    world.enter("m1", None, regex="foo.*")
    world.told("m1", 2)
    world.fail_over()
    before = len(world.log)
    world.told("m1", 3)
    assert len(world.log) == before, "nothing has changed"
    world.use(topics(version=1, foo1=1))
    world.fail_over()
    world.told("m1", 3)
    assert world.group.regexes["foo.*"].topics == ("foo1",)


def test_topics_that_the_member_may_not_describe_are_left_out(world: ConsumerWorld) -> None:
    """Their ids and partitions would be told, and they would be assigned to a member that cannot read them."""
    world.sees = lambda name: name != "foo2"
    world.enter("m1", None, regex="foo.*|barfoo.*")
    assert assignment(world.told("m1", 2)) == {"foo1": {0}, "barfoo1": {0}}
    world.use(topics(version=1, foo1=1, foo2=1, foo3=1, barfoo1=1))
    world.sees = lambda name: name != "foo3"
    world.pass_ms(10_000)
    world.told("m1", 3)
    assert world.group.regexes["foo.*|barfoo.*"].topics == ("barfoo1", "foo1", "foo2")

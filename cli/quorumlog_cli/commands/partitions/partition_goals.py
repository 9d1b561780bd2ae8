"""From the words of a command to a plan: what `plan`, `move` and `drain` have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple

import typer

from quorumlog.planner.balance import Limits, add_brokers, balance
from quorumlog.planner.cluster import Assignment, Cluster, TopicPartition, by_bytes, by_replicas
from quorumlog.planner.directories import drain_directory
from quorumlog.planner.evacuate import drain_brokers, drain_rack, move_to_brokers
from quorumlog.planner.leaders import balance_leaders
from quorumlog.planner.plan import Plan, make_plan
from quorumlog_cli.commands.partitions.partition_reading import chosen_partitions
from quorumlog_cli.terminal.errors import CliError, Exit


class By(StrEnum):
    BYTES = "bytes"
    REPLICAS = "replicas"
    LEADERS = "leaders"


GIVEN = f"{By.BYTES},{By.LEADERS}"
ByOption = Annotated[
    str, typer.Option("--by", metavar="WHAT,…", help="bytes, replicas, leaders: one after the other, in this order.")
]
_WEIGHTS = {By.BYTES: by_bytes, By.REPLICAS: by_replicas}


class Within(NamedTuple):
    tolerance: float
    limits: Limits


def within(tolerance: float, max_bytes: int | None) -> Within:
    if not 0 <= tolerance < 1:
        raise CliError(Exit.USAGE, f"--tolerance {tolerance}: a part of the mean, at least 0 and less than 1")
    return Within(tolerance, Limits(size_bytes=max_bytes))


def balanced(picture: Cluster, by: str, wish: Within) -> Plan:
    return _in_order(
        picture,
        _goals(by),
        lambda found, goal: balance(found, _WEIGHTS[goal], tolerance=wish.tolerance, limits=wish.limits),
    )


def filled(picture: Cluster, brokers: Sequence[int], by: str, wish: Within) -> Plan:
    return _in_order(
        picture,
        _goals(by),
        lambda found, goal: add_brokers(found, brokers, _WEIGHTS[goal], tolerance=wish.tolerance, limits=wish.limits),
    )


def _in_order(picture: Cluster, goals: Sequence[By], even_out: Callable[[Cluster, By], Plan]) -> Plan:
    """Each goal starts from what the ones before it have planned."""
    wanted: dict[TopicPartition, Assignment] = {}
    for goal in goals:
        found = picture.with_assignments(wanted)
        wanted |= (balance_leaders(found) if goal is By.LEADERS else even_out(found, goal)).assignments()
    return make_plan(picture, wanted)


def _goals(text: str) -> list[By]:
    try:
        return [By(word.strip()) for word in text.split(",")]
    except ValueError:
        raise CliError(Exit.USAGE, f"--by {text}: name bytes, replicas, leaders, or several with commas") from None


def drained(brokers: Sequence[int], rack: str | None, directory: str | None) -> Callable[[Cluster], Plan]:
    """Raises CliError(USAGE) unless it is clear what is drained."""
    if (rack is not None) is bool(brokers):
        raise CliError(Exit.USAGE, "give the brokers to drain, or --rack")
    if directory is not None and len(brokers) != 1:
        raise CliError(Exit.USAGE, "--directory needs the one broker that has it")
    if rack is not None:
        return lambda picture: drain_rack(picture, rack)
    if directory is not None:
        return lambda picture: drain_directory(picture, brokers[0], directory)
    return lambda picture: drain_brokers(picture, brokers)


def moved(names: Sequence[str], to: str) -> Callable[[Cluster], Plan]:
    brokers = broker_ids(to)
    return lambda picture: move_to_brokers(picture, chosen_partitions(picture.partitions, names), brokers)


def placed_exactly(names: Sequence[str]) -> Callable[[Cluster], dict[TopicPartition, Assignment]]:
    """Of `orders-3=1,2,4` and the like. Raises CliError(USAGE)."""
    pairs = [name.partition("=") for name in names]
    lists = {name: broker_ids(replicas) for name, _, replicas in pairs}
    if len(lists) < len(names):
        raise CliError(Exit.USAGE, "a partition is given twice")

    def make(picture: Cluster) -> dict[TopicPartition, Assignment]:
        wanted = {}
        for name, replicas in lists.items():
            for key in chosen_partitions(picture.partitions, [name]):
                wanted[key] = Assignment.of(replicas)
        return wanted

    return make


def broker_ids(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise CliError(Exit.USAGE, f"{text!r} is no list of broker ids, such as 1,2,3")
    if len(set(words)) < len(words):
        raise CliError(Exit.USAGE, f"{text} names a broker twice")
    return [int(word) for word in words]

"""Equal promises, both clusters up: ours on disk and `durability=replicated`, Kafka's page cache and flush.messages=1.

For each load, rounds of all four variants alternate, each on a new topic, all with one warm Java client (java_load.py).
First come warm-up rounds of the same volume, until every variant's processor time per MB is alike in two rounds in a
row (rounds.py), at most `Size.warm_up_rounds`. While one cluster is loaded, the other idles beside it; what that costs
is in the figures of both, and is the figure `idle`.

Samples of each load and variant: MB/s; user and system, ms of processor time of the three nodes per MB; for Kafka also
compiling, the percentage of its processor time that its virtual machines' compilers used, a sign of how warm it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from bench.kafka import clients
from bench.kafka.figures import PARTITIONS, Size
from bench.kafka.java_load import LOADS, Cost, JavaLoad, run_load
from bench.kafka.lives import start_peer
from bench.kafka.table import Samples, not_warm, or_why, ratios, why_cold, without_goals
from bench.kafka.warm_producer import WarmProducer
from bench.measuring.processor_time import NOTHING, spent_by, spent_by_threads
from bench.measuring.report import Row
from bench.measuring.rounds import in_turn
from bench.peers.kafka_tools import Kafka
from bench.peers.peer import Peer

COMPILERS = ("C1 ", "C2 ")  # how a virtual machine names its compiler threads


@dataclass(frozen=True, slots=True)
class Variant:
    """side: the name of its cluster and of that one's samples. title: in rows. config: of its topics."""

    name: str
    side: str
    title: str
    config: Mapping[str, str] = field(default_factory=dict)


DISK = Variant("disk", "quorumlog", "on disk")
REPLICATED = Variant("replicated", "quorumlog", "replicated", {"durability": "replicated"})
CACHE = Variant("cache", "Kafka", "Kafka, page cache")
FLUSH = Variant("flush", "Kafka", "Kafka, flush.messages=1", {"flush.messages": "1"})
VARIANTS = (DISK, CACHE, REPLICATED, FLUSH)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two running clusters."""

    peer: Peer
    figures: Samples


def measure(
    kafka: Kafka,
    make_theirs: Callable[[], Peer],
    make_ours: Callable[[], Peer],
    size: Size,
    theirs: Samples,
    ours: Samples,
) -> None:
    """Starts both clusters, measures, and stops both."""
    with ExitStack() as running:
        sides: dict[str, Side] = {}
        for make, figures in ((make_theirs, theirs), (make_ours, ours)):
            figures.attempt(["promises"], partial(_start, make, figures, sides, running))
        if len(sides) < 2:
            return
        with WarmProducer(kafka) as client:
            for key in LOADS:
                _measure_load(client, key, sides, size)
        ours.attempt(["idle"], partial(_measure_idle, list(sides.values()), size))


def _start(make: Callable[[], Peer], figures: Samples, sides: dict[str, Side], running: ExitStack) -> None:
    peer = make()
    running.callback(peer.close)
    start_peer(peer)
    sides[figures.name] = Side(peer, figures)


def _measure_load(client: WarmProducer, key: str, sides: Mapping[str, Side], size: Size) -> None:
    for turn in range(size.warm_up_rounds):
        if not any(_needs_warm_up(sides[variant.side].figures, key, variant) for variant in VARIANTS):
            break
        for _, variant in in_turn(VARIANTS, turn):
            side = sides[variant.side]
            side.figures.attempt([_warm_up(key, variant)], partial(_warm, client, side, variant, key, size))
    for turn in range(size.rounds):
        for _, variant in in_turn(VARIANTS, turn):
            side = sides[variant.side]
            names = [f"{key} {variant.name} {name}" for name in ("MB/s", "user", "system")]
            side.figures.attempt(names, partial(_sample, client, side, variant, key, size))


def _needs_warm_up(figures: Samples, key: str, variant: Variant) -> bool:
    figure = _warm_up(key, variant)
    return figure not in figures.failed and bool(why_cold(figures, figure))


def _warm_up(key: str, variant: Variant) -> str:
    """The figure's name."""
    return f"{key} {variant.name} warm-up"


def _warm(client: WarmProducer, side: Side, variant: Variant, key: str, size: Size) -> None:
    cost, _ = _run(client, side.peer, variant, LOADS[key], size.promise_share)
    side.figures.add(_warm_up(key, variant), cost.ms_per_mb)
    print(f"warm-up: {_text(variant, key, cost)}", flush=True)


def _sample(client: WarmProducer, side: Side, variant: Variant, key: str, size: Size) -> None:
    cost, compiling = _run(client, side.peer, variant, LOADS[key], size.promise_share)
    figure = f"{key} {variant.name}"
    side.figures.add(f"{figure} MB/s", cost.mb_per_s)
    side.figures.add(f"{figure} user", cost.user_ms_per_mb)
    side.figures.add(f"{figure} system", cost.system_ms_per_mb)
    side.figures.add(f"{figure} client", cost.client_ms_per_mb)
    if variant in (CACHE, FLUSH):
        side.figures.add(f"{figure} compiling", compiling)
    print(_text(variant, key, cost), flush=True)


def _run(client: WarmProducer, peer: Peer, variant: Variant, load: JavaLoad, share: float) -> tuple[Cost, float]:
    """With the percentage of the nodes' processor time, start and end of the run included, that compilers used."""
    servers, pids = peer.bootstrap_servers, peer.pids()
    with clients.new_topic(servers, PARTITIONS, variant.config) as topic:
        before, threads_before = spent_by(pids), spent_by_threads(pids)
        cost = run_load(client, servers, topic, load, pids, share * load.measured_mb)
        after, threads_after = spent_by(pids), spent_by_threads(pids)
    compiling_s = sum(
        spent.since(threads_before.get(name, NOTHING)).total_s
        for name, spent in threads_after.items()
        if name.startswith(COMPILERS)
    )
    return cost, 100 * compiling_s / after.since(before).total_s


def _measure_idle(sides: Sequence[Side], size: Size) -> None:
    """Percent of one processor, the three nodes together, of both clusters at the same time. Each has one topic."""
    for side in sides:
        clients.create_topic(clients.make_admin(side.peer.bootstrap_servers), "idle", PARTITIONS)
    time.sleep(size.settle_s)  # deleted topics are freed a minute later, on both sides
    for _ in range(size.rounds):
        start_s, before = time.perf_counter(), [spent_by(side.peer.pids()) for side in sides]
        time.sleep(size.idle_s)
        after, seconds = [spent_by(side.peer.pids()) for side in sides], time.perf_counter() - start_s
        for side, was, now in zip(sides, before, after, strict=True):
            side.figures.add("idle", 100 * now.since(was).total_s / seconds)


def _text(variant: Variant, key: str, cost: Cost) -> str:
    return (
        f"{LOADS[key].name}, {variant.side} {variant.name}: {cost.mb_per_s:.1f} MB/s, {cost.ms_per_mb:.1f} ms/MB, "
        f"client {cost.client_ms_per_mb:.1f}"
    )


@dataclass(frozen=True, slots=True)
class Goals:
    """Ratios of MB/s, except cost: ms of processor time per MB, ours on disk."""

    disk: float  # beside Kafka's page cache
    flushed: float  # ours on disk, beside flush.messages=1
    replicated: float  # beside Kafka's page cache
    cost: float


GOALS = {
    "defaults": Goals(disk=1.0, flushed=2.0, replicated=1.0, cost=32),
    "large": Goals(disk=1.2, flushed=1.6, replicated=1.2, cost=9),
    "small": Goals(disk=1.2, flushed=2.0, replicated=1.2, cost=10),
}
IDLE_GOAL = 1.5  # percent of one core, three nodes together


def promise_rows(theirs: Samples, ours: Samples) -> list[Row]:
    sides = {of.name: of for of in (theirs, ours)}
    return [*(row for key in LOADS for row in _load_rows(key, sides)), *_idle_rows(theirs, ours)]


def _load_rows(key: str, sides: Mapping[str, Samples]) -> list[Row]:
    title, goals = LOADS[key].name, GOALS[key]
    rows = [
        *_rate(CACHE, title, key, sides),
        *_rate(FLUSH, title, key, sides),
        *_rate_beside(DISK, CACHE, "page cache", title, key, sides, goals.disk),
        *_rate_beside(DISK, FLUSH, "flushed", title, key, sides, goals.flushed),
        *_rate_beside(REPLICATED, CACHE, "page cache", title, key, sides, goals.replicated),
        *(row for variant in VARIANTS for row in _costs(variant, title, key, sides, goals)),
        *(row for variant in (CACHE, FLUSH) for row in _compiling(variant, title, key, sides)),
    ]
    cold = [
        f"{variant.title}: {why}"
        for variant in VARIANTS
        if (why := why_cold(sides[variant.side], f"{key} {variant.name} warm-up"))
    ]
    return [*not_warm(title, cold, "this load"), *without_goals(rows)] if cold else rows


def _figure(variant: Variant, key: str, name: str, sides: Mapping[str, Samples]) -> Sequence[float]:
    return sides[variant.side][f"{key} {variant.name} {name}"]


def _rate(variant: Variant, title: str, key: str, sides: Mapping[str, Samples]) -> list[Row]:
    name = f"{variant.title}: {title}"
    return or_why(name, lambda: [Row(name=name, unit="MB/s", rounds=_figure(variant, key, "MB/s", sides))])


def _rate_beside(
    variant: Variant, other: Variant, of: str, title: str, key: str, sides: Mapping[str, Samples], goal: float
) -> list[Row]:
    """A rate with its share of the other variant's, which `of` names."""
    name = f"{variant.title} / {of}: {title}"

    def make() -> list[Row]:
        base, rates = _figure(other, key, "MB/s", sides), _figure(variant, key, "MB/s", sides)
        return [Row(name=name, unit="MB/s", rounds=rates, shares=ratios(base, rates), of=of, goal=goal)]

    return or_why(name, make)


def _costs(variant: Variant, title: str, key: str, sides: Mapping[str, Samples], goals: Goals) -> list[Row]:
    """Processor time of the three nodes, user and system together, and apart."""
    name = f"CPU, {variant.title}: {title}"

    def make() -> list[Row]:
        user, system = (_figure(variant, key, part, sides) for part in ("user", "system"))
        both = [sum(parts) for parts in zip(user, system, strict=True)]
        goal = goals.cost if variant is DISK else None
        return [
            Row(name=name, unit="ms/MB", rounds=both, goal=goal, at_least=False),
            Row(name="  of it user", unit="ms/MB", rounds=user),
            Row(name="  of it system", unit="ms/MB", rounds=system),
        ]

    return or_why(name, make)


def _compiling(variant: Variant, title: str, key: str, sides: Mapping[str, Samples]) -> list[Row]:
    """Of its processor time, the share of its virtual machines' compilers: less is warmer."""
    name = f"JIT, {variant.title}: {title}"
    return or_why(name, lambda: [Row(name=name, unit="% of CPU", rounds=_figure(variant, key, "compiling", sides))])


def _idle_rows(theirs: Samples, ours: Samples) -> list[Row]:
    unit = "% of a core"
    return [
        *or_why("Kafka: idle", lambda: [Row(name="Kafka: idle", unit=unit, rounds=theirs["idle"])]),
        *or_why("idle", lambda: [
            Row(name="idle", unit=unit, rounds=ours["idle"], goal=IDLE_GOAL, at_least=False)
        ]),
    ]  # fmt: skip

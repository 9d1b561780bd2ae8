"""The table: Kafka's figure, ours, the ratio and its goal. The goals were set in advance.

A row whose figures could not be measured gives the reason; the other rows are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from bench.kafka.cleaner import OVERWRITTEN, UNIQUE
from bench.kafka.figures import KIB, LINGERS_MS, RATES
from bench.kafka.groups import group_rows
from bench.kafka.partitions import partition_rows
from bench.kafka.promises import promise_rows
from bench.kafka.recovery import PROCESSOR_SECONDS, SECONDS
from bench.kafka.security import security_rows
from bench.kafka.table import Samples, beside, not_warm, or_why, why_cold, without_goals
from bench.kafka.transactions import transaction_rows
from bench.measuring.machine import MEGABYTE
from bench.measuring.report import Row

PARTS = (
    "start",
    "produce",
    "consume",
    "latency",
    "memory",
    "failover",
    "promises",
    "recovery",
    "cleaner",
    "groups",
    "transactions",
    "partitions",
    "security",
)
WARM_PARTS = ("produce", "consume", "latency")  # judged only if both clusters were warm
LEAST_MS = 0.5  # the Java tool prints whole milliseconds: 0 means less than 1
FLOOR_GOAL = 0.6
LATENCY_GOAL = 0.5
RECOVERY_GOAL = 0.35
CLEANER_GOAL = 1.0
AT_REST = {"p50 2000 0": 1.5, "p99 2000 0": 0.3}  # goals of single requests, without the client's linger


def rows(parts: Sequence[str], theirs: Samples, ours: Samples) -> list[Row]:
    made = {
        "start": _start, "produce": _produce, "consume": _consume, "latency": _latency, "memory": _memory,
        "failover": _failover, "promises": promise_rows, "recovery": _recovery,
        "cleaner": _cleaner, "groups": group_rows, "transactions": transaction_rows,
        "partitions": partition_rows, "security": security_rows,
    }  # fmt: skip
    cold = _cold(theirs, ours)
    found = list(cold)
    for part in (part for part in PARTS if part in parts):
        of_part = made[part](theirs, ours)
        found += without_goals(of_part) if cold and part in WARM_PARTS else of_part
    return found


def _cold(theirs: Samples, ours: Samples) -> list[Row]:
    """A row that says which cluster did not get warm, if one did not."""
    why = [
        f"{of.name}: {reason}"
        for of in (theirs, ours)
        if "warm-up" in of.starting_with("warm-up") and (reason := why_cold(of, "warm-up"))
    ]
    return not_warm("warm-up", why, ", ".join(WARM_PARTS))


Values = Callable[[], Sequence[float]]


def _beside(name: str, unit: str, theirs: Values, ours: Values, goal: float, at_least: bool = True) -> list[Row]:
    return or_why(name, lambda: beside(name, unit, theirs(), ours(), goal, at_least))


def _start(theirs: Samples, ours: Samples) -> list[Row]:
    name = "start to first acknowledged write"
    return _beside(name, "s", lambda: theirs["start"], lambda: ours["start"], 0.25, at_least=False)


def _produce(theirs: Samples, ours: Samples) -> list[Row]:
    def same(name: str, figure: str, goal: float) -> list[Row]:
        name = f"produce 1 KiB, {name}"
        return _beside(name, "MB/s", lambda: _mb(theirs[figure]), lambda: _mb(ours[figure]), goal)

    def best(
        name: str, unit: str, size: str, values: Callable[[Sequence[float]], list[float]], goal: float
    ) -> list[Row]:
        return _beside(name, unit, lambda: values(_best(theirs, size)), lambda: values(ours[f"own {size}"]), goal)

    return [
        *same("Java", "java kib", 1.3),
        *same("librdkafka", "rdkafka kib", 1.3),
        *best("produce 1 KiB, own best", "MB/s", "kib", _mb, 2.5),
        *same("Java defaults", "java defaults kib", 1.0),
        *best("produce 100 B, own best", "records/s", "small", list, 2.5),
        *(row for figure in ours.starting_with("floor ") for row in _floor(ours, figure)),
    ]


def _floor(ours: Samples, figure: str) -> list[Row]:
    name = f"produce 1 KiB, {figure.split()[1]} partitions"

    def make() -> list[Row]:
        floor, rates = ours[figure], ours[f"of {figure}"]
        shares = [rate / base for rate, base in zip(rates, floor, strict=True)]
        return [
            Row(name=f"floor: {name}", unit="MB/s", rounds=_mb(floor)),
            Row(name=name, unit="MB/s", rounds=_mb(rates), shares=shares, of="the floor", goal=FLOOR_GOAL),
        ]

    return or_why(name, make)


def _consume(theirs: Samples, ours: Samples) -> list[Row]:
    def best(
        name: str, unit: str, size: str, figure: str, values: Callable[[Sequence[float]], list[float]], goal: float
    ) -> list[Row]:
        def fastest() -> list[float]:
            return values(_best_of(theirs[f"java consume {size}"], theirs[f"rdkafka consume {size}"]))

        return _beside(name, unit, fastest, lambda: values(ours[figure]), goal)

    def plain(name: str, of: Samples) -> list[Row]:
        return or_why(name, lambda: [Row(name=name, unit="MB/s", rounds=_mb(of["rdkafka consume kib"]))])

    return [
        *best("consume 1 KiB, own best", "MB/s", "kib", "own consume chunks kib", _mb, 2.0),
        *best("consume 1 KiB, into Arrow", "MB/s", "kib", "own consume columns kib", _mb, 2.0),
        *best("consume 100 B, into Arrow", "records/s", "small", "own consume columns small", list, 5.0),
        *plain("consume 1 KiB, librdkafka", ours),
        *plain("Kafka: consume 1 KiB, librdkafka", theirs),
    ]


def _latency(theirs: Samples, ours: Samples) -> list[Row]:
    def at_least(of: Samples, figure: str) -> list[float]:
        return [max(value, LEAST_MS) for value in of[figure]]

    return [
        row
        for linger_ms in LINGERS_MS
        for rate in RATES
        for part in ("p50", "p99")
        for row in _beside(
            f"{part}, 1 KiB at {rate:,}/s, Java, linger {linger_ms} ms", "ms",
            partial(at_least, theirs, f"{part} {rate} {linger_ms}"),
            partial(at_least, ours, f"{part} {rate} {linger_ms}"),
            AT_REST.get(f"{part} {rate} {linger_ms}", LATENCY_GOAL), at_least=False,
        )
    ]  # fmt: skip


def _memory(theirs: Samples, ours: Samples) -> list[Row]:
    name = "resident memory of a node after load"
    return _beside(name, "MB", lambda: theirs["memory"], lambda: ours["memory"], 0.2, at_least=False)


def _failover(theirs: Samples, ours: Samples) -> list[Row]:
    name = "kill -9 of a leader to next acknowledged write"
    return _beside(name, "s", lambda: theirs["failover"], lambda: ours["failover"], 0.1, at_least=False)


def _recovery(theirs: Samples, ours: Samples) -> list[Row]:
    """Not warm, on either side: every process has just been started."""
    seconds, used = SECONDS, PROCESSOR_SECONDS
    return [
        *_beside(
            "all nodes killed, until every ISR is whole", "s", lambda: theirs[seconds], lambda: ours[seconds],
            RECOVERY_GOAL, at_least=False,
        ),
        *or_why("Kafka: processor time of it", lambda: [
            Row(name="Kafka: processor time of it", unit="s", rounds=theirs[used])
        ]),
        *or_why("processor time of it", lambda: [Row(name="processor time of it", unit="s", rounds=ours[used])]),
    ]  # fmt: skip


def _cleaner(theirs: Samples, ours: Samples) -> list[Row]:
    names = {OVERWRITTEN: "compaction, most overwritten", UNIQUE: "compaction, none overwritten"}
    return [
        row
        for figure, name in names.items()
        for row in _beside(
            name, "MB/s", partial(theirs.__getitem__, figure), partial(ours.__getitem__, figure), CLEANER_GOAL
        )
    ]


def _best(figures: Samples, size: str) -> list[float]:
    return _best_of(figures[f"java {size}"], figures[f"rdkafka {size}"])


def _best_of(*clients: Sequence[float]) -> list[float]:
    """The faster client's value of each round."""
    return [max(found) for found in zip(*clients, strict=True)]


def _mb(records_per_s: Sequence[float]) -> list[float]:
    return [rate * KIB / MEGABYTE for rate in records_per_s]

"""The rounds of equal promises: the same warm-up for all variants, and a failure that leaves the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bench.kafka import promises as kafka_promises
from bench.kafka.figures import Size
from bench.kafka.java_load import Cost, JavaLoad
from bench.kafka.promises import Variant
from bench.kafka.table import Samples

SIZE = Size(rounds=3, warm_up_rounds=4)
Costs = Callable[[Variant, int], float]  # ms per MB of the n-th run of the variant and load, from 0


class Peer:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Client:
    def __init__(self, _kafka: Any) -> None: ...

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None: ...


def measure(monkeypatch: pytest.MonkeyPatch, costs: Costs) -> tuple[Samples, Samples, list[str]]:
    """Kafka's samples, ours, and the variants of the first load in the order of their runs."""
    runs: list[tuple[str, str]] = []

    def run(_client: Any, _peer: Any, variant: Variant, load: JavaLoad, _share: float) -> tuple[Cost, float]:
        times = runs.count((load.name, variant.name))
        runs.append((load.name, variant.name))
        return Cost(10.0, costs(variant, times), 0.0, 5.0), 1.0

    peers = [Peer(), Peer()]
    monkeypatch.setattr(kafka_promises, "_run", run)
    monkeypatch.setattr(kafka_promises, "start_peer", lambda _peer: 0.0)
    monkeypatch.setattr(kafka_promises, "WarmProducer", Client)
    monkeypatch.setattr(kafka_promises, "_measure_idle", lambda _sides, _size: None)
    theirs, ours = Samples("Kafka"), Samples("quorumlog")
    make: list[Any] = [lambda: peers[0], lambda: peers[1]]
    kafka_promises.measure(None, make[0], make[1], SIZE, theirs, ours)  # type: ignore[arg-type]
    assert [peer.closed for peer in peers] == [1, 1]
    first = runs[0][0]
    return theirs, ours, [variant for load, variant in runs if load == first]


def test_all_variants_warm_up_until_the_last_one_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    falling = [200.0, 100.0, 95.0]
    theirs, ours, runs = measure(
        monkeypatch, lambda variant, turn: falling[min(turn, 2)] if variant.name == "flush" else 50.0
    )
    assert list(theirs["defaults flush warm-up"]) == falling
    assert list(theirs["defaults cache warm-up"]) == list(ours["defaults disk warm-up"]) == [50.0] * 3
    assert list(ours["defaults disk user"]) == [50.0] * SIZE.rounds
    assert runs[:8] == ["disk", "cache", "replicated", "flush", "flush", "replicated", "cache", "disk"]
    assert len(runs) == 4 * (3 + SIZE.rounds)


def test_a_warm_up_that_never_settles_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, _, runs = measure(monkeypatch, lambda _variant, turn: 1000.0 / 2**turn)
    assert len(theirs["small cache warm-up"]) == SIZE.warm_up_rounds
    assert len(runs) == 4 * (SIZE.warm_up_rounds + SIZE.rounds)


def test_a_variant_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(variant: Variant, _turn: int) -> float:
        if variant.name == "replicated":
            raise TimeoutError("no acknowledgement")
        return 50.0

    theirs, ours, runs = measure(monkeypatch, fails)
    assert runs.count("disk") == 2 + SIZE.rounds
    assert len(theirs["large flush MB/s"]) == len(ours["large disk MB/s"]) == SIZE.rounds
    assert ours.failed["large replicated user"] == "TimeoutError: no acknowledgement"

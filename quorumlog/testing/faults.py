"""Faults that come by themselves while a test runs: `@pytest.mark.quorumlog(faults="partition,pause", seed=7)`.

The plan follows from the seed alone: which fault, of which nodes, after how long and for how long. At most a minority
of the nodes is struck at once, so that the cluster goes on, if only after an election.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from quorumlog.ids import NodeId
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.waiting import TimedOut

PARTITION, PAUSE, KILL = "partition", "pause", "kill"
KINDS = (PARTITION, PAUSE, KILL)
WAIT_MS = (300, 2_000)  # of quiet before each fault, inclusive
HOLD_MS = (500, 5_000)  # from shorter than a session to longer
END_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """nodes: struck; of a partition they are cut off from all others."""

    kind: str
    nodes: tuple[NodeId, ...]
    wait_ms: int
    hold_ms: int

    def __str__(self) -> str:
        return f"{self.kind} of {', '.join(map(str, self.nodes))} for {self.hold_ms / 1000:.1f} s"


def parse_kinds(text: str) -> tuple[str, ...]:
    """Of a marker: names with commas between. Raises ValueError."""
    kinds = tuple(name.strip() for name in text.split(",") if name.strip())
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"faults={text!r}: {kind!r} is none of {', '.join(KINDS)}")
    return kinds


def plan(kinds: Sequence[str], nodes: Sequence[NodeId], seed: int) -> Iterator[Fault]:
    """Without end. Raises ValueError for a partition of one node."""
    if PARTITION in kinds and len(nodes) < 2:
        raise ValueError("a partition needs two nodes")
    rng = Random(seed)
    minority = max(1, (len(nodes) - 1) // 2)
    while True:
        kind = rng.choice(kinds)
        struck = rng.sample(nodes, rng.randint(1, minority) if kind == PARTITION else 1)
        wait_ms, hold_ms = rng.randint(*WAIT_MS), rng.randint(*HOLD_MS)
        yield Fault(kind=kind, nodes=tuple(sorted(struck)), wait_ms=wait_ms, hold_ms=hold_ms)


class Faults:
    """Strikes the nodes by a thread from `start` to `stop`. done: what has been done so far, a line each."""

    def __init__(self, nodes: LocalNodes, kinds: Sequence[str], seed: int) -> None:
        """Raises ValueError."""
        self.seed = seed
        self.done: list[str] = []
        self._nodes, self._plan = nodes, plan(kinds, nodes.ids, seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="faults", daemon=True)
        self._failure: Exception | None = None
        self._began_s = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End them, also the one in force, so that every node runs again and reaches all others. May be called twice.

        Raises what kept a fault from being made or ended.
        """
        self._ended.set()
        self._thread.join(END_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimedOut(f"the faults did not end within {END_TIMEOUT_S:.0f} s: {self.done[-1:]}")
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for fault in self._plan:
                if self._ended.wait(fault.wait_ms / 1000):
                    return
                self._strike(fault)
        except Exception as error:
            self._failure = error

    def _strike(self, fault: Fault) -> None:
        is_struck = self._begin(fault)
        at_s = time.monotonic() - self._began_s
        self.done.append(f"{at_s:6.1f} s  {fault}" + ("" if is_struck else ": the test had struck it already"))
        if not is_struck:
            return
        try:
            self._ended.wait(fault.hold_ms / 1000)
        finally:
            self._end(fault)

    def _begin(self, fault: Fault) -> bool:
        if fault.kind == PARTITION:
            self._nodes.cut(fault.nodes)
            return True
        (node,) = fault.nodes
        return self._nodes.pause(node) if fault.kind == PAUSE else self._nodes.kill(node)

    def _end(self, fault: Fault) -> None:
        if fault.kind == PARTITION:
            self._nodes.heal(fault.nodes)
            return
        (node,) = fault.nodes
        if fault.kind == PAUSE:
            self._nodes.resume(node)
        else:
            self._nodes.start([node])

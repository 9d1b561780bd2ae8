"""Strikes drawn from a seed, one after the other, while the pipeline runs.

Targets come in decks: each deck has every target once, shuffled. So a run of a few kills meets all of them. Most
strikes wait until a batch was decided behind the one before; the others come at once, on what is still recovering.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jepsen.live.minimums import Minimum
from jepsen.pipeline.nodes import Leaders
from jepsen.pipeline.places import RAISES_AFTER, RAISES_BEFORE, STOP
from jepsen.pipeline.spark_processes import EXECUTOR
from jepsen.pipeline.targets import OF_NODES, Target, targets
from jepsen.pipeline.world import PARTITIONS, SINK, World
from quorumlog.ids import NodeId

AT_ONCE = 0.3  # of the strikes
DELAY_S, AWAY_S = 1.0, 2.0  # at most


LEAST_SHARE = 2 * len(Target)  # of so many kills, one has each target


@dataclass(frozen=True, slots=True)
class Strike:
    """what: who was struck, in words. bit: it was there to be struck. rows: whose batches the driver was told are
    decided, when it was struck. replays: of decided batches, until then."""

    number: int
    target: Target
    what: str
    bit: bool
    at_s: float
    rows: int
    batches: int
    replays: int


def minimums(kills: int, strikes: Sequence[Strike], known: Sequence[Target], decided: int) -> list[Minimum]:
    """kills: that were asked for; 0: as many as fit into the time. decided: batches."""
    bit = Counter(one.target for one in strikes if one.bit)
    is_whole = not kills or kills >= len(known)  # fewer kills are no deck
    least = max(1, kills // LEAST_SHARE) if is_whole else 0
    found = [Minimum("kills that bit", kills or len(known), sum(bit.values()))]
    found += [Minimum(f"kills of {one.value}", least, bit[one]) for one in known]
    found.append(Minimum("batches decided", max(1, kills // 2), decided))
    late = sum(one.rows > 0 for one in strikes)
    found.append(Minimum("kills behind acknowledged rows", max(1, len(strikes) // 2), late))
    return found


class Nemesis:
    """struck: so far. say: a line of progress."""

    def __init__(self, world: World, rng: random.Random, say: Callable[[str], None]) -> None:
        self._world, self._rng, self._say = world, rng, say
        self._began = time.monotonic()
        self.known = tuple(one for one in Target if world.nodes is not None or one not in OF_NODES)
        self._drawn = targets(rng, self.known)
        self.struck: list[Strike] = []

    def strike(self) -> Strike:
        """The next one. Raises TimedOut, NodeEnded: the pipeline, or a node, does not go on."""
        target = next(self._drawn)
        if self._rng.random() >= AT_ONCE:
            before = len(self._world.told())
            self._world.wait_for(lambda: len(self._world.told()) > before, "a batch that is decided")
        time.sleep(self._rng.uniform(0.0, DELAY_S))  # the moment is drawn; nothing waits for it
        told = self._world.told()
        what, bit = self._carry_out(target)
        decided = {one.number: one.rows for one in told}
        one = Strike(
            number=len(self.struck) + 1,
            target=target,
            what=what,
            bit=bit,
            at_s=time.monotonic() - self._began,
            rows=sum(decided.values()),
            batches=len(decided),
            replays=sum(one.replayed for one in told),
        )
        self.struck.append(one)
        self._say(
            f"{one.at_s:6.0f} s  {one.number:>4} {target.value:<11} {what}{'' if bit else ' (MISSED)'}; "
            f"{one.batches:,} batches of {one.rows:,} rows acknowledged, {one.replays} replays"
        )
        return one

    def _carry_out(self, target: Target) -> tuple[str, bool]:
        if target in OF_NODES:
            return self._kill_node(target)
        world = self._world
        if target is Target.DRIVER:
            bit = world.driver.kill()
            world.driver.start()
            return "kill -9 of the driver", bit
        if target is Target.EXECUTOR:
            return self._kill_executor()
        if target is Target.STOP:
            before = world.count("stopped")
            world.folder.order(STOP)
            world.wait_for(lambda: world.count("stopped") > before, "query.stop()")
            return "query.stop()", bool(world.events("stopped")[-1]["ran"])
        order = self._rng.choice((RAISES_BEFORE, RAISES_AFTER))
        world.folder.order(order)
        world.wait_for(lambda: not world.folder.has(order), "a commit that raises")
        return f"a commit that raises ({order})", True

    def _kill_executor(self) -> tuple[str, bool]:
        """Of the executors and their Python workers, each is as likely."""
        driver = self._world.driver
        wants_worker = self._rng.random() < 0.5
        self._world.wait_for(lambda: bool(driver.executors()), "an executor")
        processes = (driver.workers() if wants_worker else []) or driver.executors()
        if not processes:
            return "kill -9 of an executor", False
        one = self._rng.choice(sorted(processes, key=lambda process: process.pid))
        kind = "an executor" if EXECUTOR in one.words else "a Python worker"
        driver.kill_process(one)
        return f"kill -9 of {kind}", True

    def _kill_node(self, target: Target) -> tuple[str, bool]:
        world, restarter = self._world, self._world.restarter
        assert restarter is not None and world.leaders is not None
        restarter.wait()
        node_id = aimed(world, target, world.leaders, self._rng)
        restarter.kill(node_id, self._rng.uniform(0.0, AWAY_S))
        return f"kill -9 of node {node_id}", True


def aimed(world: World, target: Target, leaders: Leaders, rng: random.Random) -> NodeId:
    """Raises TimedOut."""
    if target is Target.LEADER:
        return leaders.of(SINK, rng.randrange(PARTITIONS))
    if target is Target.COORDINATOR:
        return leaders.coordinator(world.group())
    return leaders.controller()

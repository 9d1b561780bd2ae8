"""Plays cells of the matrix, one after the other, over one cluster and one query, and judges what is left."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from jepsen.checkers.findings import Finding
from jepsen.pipeline.cells import Cell, Way, cells
from jepsen.pipeline.checker import Judgement
from jepsen.pipeline.history import Shape
from jepsen.pipeline.places import CHECKPOINT, IN_TASKS, PAUSE, RESUME, Place
from jepsen.pipeline.report import keep, write_facts
from jepsen.pipeline.strikes import aimed
from jepsen.pipeline.targets import OF_NODES, Target
from jepsen.pipeline.world import DRIVER_S, START_S, World, planned_of, world
from quorumlog.testing.nodes import NodeEnded
from quorumlog.testing.waiting import TimedOut

RECORDS = 60  # of a batch
AWAY_S = 0.5  # of a node


@dataclass(frozen=True, slots=True)
class Played:
    """why_not: the cell was not reached; empty: it was."""

    cell: Cell
    took_s: float
    why_not: str = ""

    def __str__(self) -> str:
        told = f"NOT REACHED: {self.why_not}" if self.why_not else "reached"
        return f"{self.cell!s:<40} {told}, {self.took_s:.1f} s"


@dataclass(slots=True)
class Outcome:
    wanted: Sequence[Cell]
    played: list[Played] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    took_s: float = 0.0

    @property
    def reached(self) -> int:
        return sum(not one.why_not for one in self.played)

    @property
    def verdict(self) -> str:
        if self.findings:
            return "INVALID"
        return "VALID" if self.wanted and self.reached == len(self.wanted) else "NOT EXERCISED"

    def table(self) -> list[str]:
        """A line for each cell, and one for each kind of impossible ones."""
        lines = [str(one) for one in self.played]
        left = len(self.wanted) - len(self.played)
        lines += [f"{left} cells were not played"] if left else []
        impossible: dict[str, list[Cell]] = {}
        for cell in cells():
            if cell.impossible:
                impossible.setdefault(f"*/{cell.place.value}/*/replay: {cell.impossible}", []).append(cell)
        return lines + [f"impossible, {len(found)} cells: {text}" for text, found in impossible.items()]


def play(wanted: Sequence[Cell], seed: int, report: Path, say: Callable[[str], None]) -> Outcome:
    """seed: decides which partition's leader is meant. Raises as `carry_out` of a run."""
    began = time.monotonic()
    outcome = Outcome(wanted)
    with tempfile.TemporaryDirectory(prefix="quorumlog-pipeline-") as root:
        with world(Path(root), Shape.MAP, 0.0, holds=True) as made:
            try:
                _play_all(made, outcome, random.Random(seed), say)
            finally:
                keep(made.folder, report)
    outcome.took_s = time.monotonic() - began
    write_facts(
        report,
        {
            "verdict": outcome.verdict, "table": outcome.table(), "counts": outcome.counts,
            "findings": [str(one) for one in outcome.findings], "took_s": round(outcome.took_s, 1),
        },
    )  # fmt: skip
    return outcome


def _play_all(made: World, outcome: Outcome, rng: random.Random, say: Callable[[str], None]) -> None:
    player = Player(made, rng)
    player.begin()
    say("the first batch is decided; cells begin")
    try:
        for cell in outcome.wanted:
            began = time.monotonic()
            why_not = player.play(cell)
            one = Played(cell, time.monotonic() - began, why_not)
            outcome.played.append(one)
            say(f"{len(outcome.played):>4} of {len(outcome.wanted)}  {one}")
    except (TimedOut, NodeEnded) as error:
        outcome.findings.append(Finding("pipeline-stalled", f"{cell}: {error}"))
    judgement = Judgement(made.history(player.acknowledged, made.finish()))
    outcome.findings += judgement.findings
    outcome.counts = dict(judgement.counts)


class Player:
    """acknowledged: places of all that was fed."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng
        self.acknowledged: list[tuple[int, int]] = []

    def begin(self) -> None:
        """A batch without a strike. Raises TimedOut."""
        self._feed()
        self._wait_until_whole(START_S)

    def play(self, cell: Cell) -> str:
        """Why it was not reached; "": it was. Raises TimedOut, NodeEnded: the pipeline does not go on behind it."""
        world, folder = self._world, self._world.folder
        if cell.replay:
            self._feed()
            self._wait_until_whole()
            self._pause_and_forget_the_last()
        stopped = world.count("stopped")
        folder.hold(cell.place)
        if cell.way is not Way.STOP:
            folder.order(cell.order)
        if cell.replay:
            folder.order(RESUME)
        else:
            self._feed()
        try:
            world.wait_for(lambda: folder.is_reached(cell.place), f"somebody at {cell.place.value}")
        except TimedOut as error:
            why_not = str(error)[:500]
        else:
            why_not = self._strike(cell)
        folder.release(cell.place)
        if world.restarter is not None:
            world.restarter.wait()
        self._wait_until_whole()
        if folder.take(cell.order) and not why_not:
            why_not = f"nobody has taken the order {cell.order}"
        if cell.way is Way.STOP and cell.target is not Target.DRIVER and world.count("stopped") == stopped:
            why_not = why_not or "query.stop() has not returned"
        return why_not

    # --- a batch ---

    def _feed(self) -> None:
        self.acknowledged += self._world.feeder.feed_at_once(RECORDS)

    def _wait_until_whole(self, timeout_s: float = DRIVER_S) -> None:
        """All that was fed is of decided batches, and Spark has noted the last one."""
        checkpoint = self._world.folder.path / CHECKPOINT

        def is_whole() -> bool:
            planned = planned_of(checkpoint)
            if not planned or not (checkpoint / "commits" / str(planned[-1].number)).exists():
                return False
            ends = planned[-1].ends
            return all(offset < ends.get(partition, 0) for partition, offset in self.acknowledged)

        self._world.wait_for(is_whole, "the batch to be whole", timeout_s)

    def _pause_and_forget_the_last(self) -> None:
        """The query is stopped, and the last batch counts as not done for Spark."""
        world = self._world
        before = world.count("paused")
        world.folder.order(PAUSE)
        world.wait_for(lambda: world.count("paused") > before, "the query to be stopped")
        checkpoint = world.folder.path / CHECKPOINT
        last = planned_of(checkpoint)[-1].number
        for name in (str(last), f".{last}.crc"):
            with suppress(FileNotFoundError):
                (checkpoint / "commits" / name).unlink()

    # --- its strike ---

    def _strike(self, cell: Cell) -> str:
        """Somebody is at the place. Returns why nothing was struck."""
        world = self._world
        if cell.way is Way.STOP:
            world.folder.order(cell.order)
            world.wait_for(lambda: not world.folder.has(cell.order), "query.stop() to be called")
        if not world.folder.is_reached(cell.place):
            return "the place was left before the kill"
        if cell.target in OF_NODES:
            assert world.restarter is not None and world.leaders is not None
            world.restarter.kill(aimed(world, cell.target, world.leaders, self._rng), AWAY_S)
            return ""
        if cell.target is Target.DRIVER:
            killed = world.driver.kill()
            world.driver.start()
            return "" if killed else "the driver had ended"
        return self._kill_executors(cell.place)

    def _kill_executors(self, place: Place) -> str:
        """In a task: both, since one of them has it."""
        found = self._world.driver.executors()
        for one in found if place in IN_TASKS else found[:1]:
            self._world.driver.kill_process(one)
        return "" if found else "no executor was there"

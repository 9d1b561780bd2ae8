"""One run: start everything, feed, strike, bring back, write what is left, and judge what is there."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from jepsen.checkers.findings import Finding
from jepsen.live.minimums import Minimum
from jepsen.pipeline.checker import Judgement
from jepsen.pipeline.history import Shape
from jepsen.pipeline.report import keep, write_facts
from jepsen.pipeline.strikes import Nemesis, Strike, minimums
from jepsen.pipeline.targets import Target
from jepsen.pipeline.world import START_S, World, world
from quorumlog.testing.nodes import NodeEnded
from quorumlog.testing.waiting import TimedOut

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """kills: 0: as many as fit into the time. per_second: records that the source gets. kafka: servers of one."""

    minutes: float
    kills: int
    seed: int
    shape: Shape
    per_second: float
    kafka: str = ""


@dataclass(slots=True)
class Outcome:
    options: Options
    known: tuple[Target, ...] = tuple(Target)
    strikes: list[Strike] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    number: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    took_s: float = 0.0
    stalled: bool = False

    @property
    def minimums(self) -> list[Minimum]:
        decided = self.counts.get("batches decided", 0)
        return minimums(self.options.kills, self.strikes, self.known, decided)

    @property
    def verdict(self) -> str:
        if self.findings:
            return "INVALID"
        return "VALID" if all(one.is_met for one in self.minimums) else "NOT EXERCISED"

    @property
    def by_target(self) -> list[str]:
        """A line for each target."""
        lines = []
        for target in self.known:
            found = [one for one in self.strikes if one.target is target]
            rows = [one.rows for one in found]
            between = f", {min(rows):,} to {max(rows):,} rows acknowledged at them" if rows else ""
            lines.append(f"{target.value}: {len(found)} kills, {sum(one.bit for one in found)} bit{between}")
        return lines

    def facts(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "options": {**asdict(self.options), "shape": self.options.shape.value},
            "took_s": round(self.took_s, 1),
            "counts": self.counts,
            "events": self.events,
            "number of findings": self.number,
            "findings": [asdict(one) for one in self.findings],
            "by target": self.by_target,
            "minimums": [str(one) for one in self.minimums],
            "strikes": [{**asdict(one), "target": one.target.value} for one in self.strikes],
        }


def carry_out(options: Options, report: Path, say: Say) -> Outcome:
    """Writes the report into `report`. Raises LayoutError, NodeEnded, NoFreePorts, TimedOut: it could not begin."""
    began = time.monotonic()
    outcome = Outcome(options)
    with tempfile.TemporaryDirectory(prefix="quorumlog-pipeline-") as root:
        with world(Path(root), options.shape, options.per_second, kafka=options.kafka) as made:
            try:
                _strike_and_judge(made, outcome, say)
            finally:
                keep(made.folder, report)
    outcome.took_s = time.monotonic() - began
    write_facts(report, outcome.facts())
    return outcome


def _strike_and_judge(made: World, outcome: Outcome, say: Say) -> None:
    options = outcome.options
    made.feeder.start()
    try:
        made.wait_for(lambda: bool(made.told()), "the first batch", START_S)
    except BaseException:
        made.feeder.stop()  # the run could not begin
        raise
    say("the first batch is decided; kills begin")
    nemesis = Nemesis(made, random.Random(options.seed), say)
    outcome.known, outcome.strikes = nemesis.known, nemesis.struck
    deadline = time.monotonic() + options.minutes * 60
    try:
        while time.monotonic() < deadline and (not options.kills or len(nemesis.struck) < options.kills):
            nemesis.strike()
        if made.restarter is not None:
            made.restarter.wait()
    except (TimedOut, NodeEnded) as error:
        outcome.findings.append(Finding("pipeline-stalled", str(error)))
        outcome.number["pipeline-stalled"] = 1
    acknowledged = made.feeder.stop()
    say("the last kill is over; the driver writes what is left")
    is_finished = made.finish()
    judgement = Judgement(made.history(acknowledged, is_finished))
    outcome.findings += judgement.findings
    outcome.number.update(judgement.number)
    outcome.counts = dict(judgement.counts)
    outcome.events = dict(Counter(one["event"] for one in made.folder.events()))

"""One drill: a cluster under load, four watchers, faults one after the other, and what was told of each."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jepsen.drill.faults import Fault, Place
from jepsen.drill.load import Load
from jepsen.drill.sights import ALERT, Course, Expected, Sights, Verdict, judged, named_after, silent_after
from jepsen.drill.watchers import Watchers, causes_of_alerts, monotonic_from_now
from jepsen.drill.world import DrillCluster

WITHIN_S = 30.0
MARGIN_S = 15.0  # a look that ends later is told with its time, and fails
QUIET_LOOKS = 2  # of each watcher before a fault is put
QUIET_S = 120.0
POLL_S = 0.2
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one fault. expected: None: it could not be put, which `trouble` says."""

    fault: Fault
    expected: Expected | None
    verdicts: tuple[Verdict, ...] = ()
    noise: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def went_away(self) -> bool:
        """It was lifted, and all watchers are silent: what comes after it can be judged only then."""
        return not self.trouble and all(one.silent_s is not None for one in self.verdicts)

    def failures(self) -> list[str]:
        found = [f"{self.fault.name}: {self.trouble}"] if self.trouble else []
        return found + [f"{self.fault.name}: {text}" for one in self.verdicts for text in one.failures(WITHIN_S)]


class Drill:
    """With a cluster, its load and its watchers that run. watched: names of the watchers. say: takes a line."""

    def __init__(self, cluster: DrillCluster, load: Load, watchers: Watchers, watched: Sequence[str], say: Say) -> None:
        self._place, self._watchers, self._watched, self.say = Place(cluster, load), watchers, watched, say
        self._causes_of = causes_of_alerts()

    @property
    def sights(self) -> Sights:
        return self._watchers.sights

    def strike_all(self, faults: Iterable[Fault], now_s: Callable[[], float]) -> list[Outcome]:
        """One after the other, until one does not go away: what comes after it would be judged in its shadow."""
        outcomes: list[Outcome] = []
        stays: Outcome | None = None
        for fault in faults:
            if stays is None:
                outcomes.append(self.strike(fault, now_s))
                stays = None if outcomes[-1].went_away else outcomes[-1]
            else:
                why = f"it was not put, because {stays.fault.name} did not go away"
                outcomes.append(Outcome(fault=fault, expected=None, trouble=why))
        return outcomes

    def strike(self, fault: Fault, now_s: Callable[[], float]) -> Outcome:
        fault.prepare(self._place)
        self._wait_quiet(now_s)
        noise = {name for one in self._watched for name in self.sights.background(one, now_s())}
        put_s = now_s()
        try:
            struck = fault.put(self._place)
        except Exception as error:
            return Outcome(fault=fault, expected=None, trouble=f"it could not be put: {type(error).__name__}: {error}")
        put_s += struck.begins_in_s
        trouble = ""
        try:
            self._wait(lambda: self._is_named(struck.expected, put_s, now_s()), put_s + WITHIN_S + MARGIN_S, now_s)
        finally:
            lifted_s = now_s()
            try:
                struck.lift()
            except Exception as error:
                trouble = f"it could not be lifted: {type(error).__name__}: {error}"
        lifted_s = max(lifted_s, put_s)
        done_s = now_s()  # a node that is started again takes its time
        self._wait(lambda: self._is_silent(struck.expected, put_s, done_s, now_s()), done_s + fault.silent_s, now_s)
        course = Course(put_s=put_s, lifted_s=done_s, ended_s=now_s())
        verdicts = tuple(judged(self.sights, one, struck.expected, course, self._causes_of) for one in self._watched)
        found = Outcome(
            fault=fault, expected=struck.expected, verdicts=verdicts, noise=tuple(sorted(noise)), trouble=trouble
        )
        times = ", ".join(f"{one.watcher} {one.times()}" for one in verdicts)
        for line in [f"{fault.name}: {times}", *found.failures()]:
            self.say(f"{now_s():7.1f} s  {line}")
        return found

    def _wanted(self, expected: Expected) -> list[str]:
        return [one for one in self._watched if one != ALERT or expected.alerts]

    def _is_named(self, expected: Expected, put_s: float, now_s: float) -> bool:
        return all(
            named_after(self.sights.of(one, put_s, now_s), expected, put_s) is not None
            for one in self._wanted(expected)
        )

    def _is_silent(self, expected: Expected, put_s: float, lifted_s: float, now_s: float) -> bool:
        def silent(one: str) -> bool:
            looks = self.sights.of(one, put_s, now_s)
            return silent_after(looks, expected, lifted_s, self.sights.background(one, put_s)) is not None

        return all(silent(one) for one in self._watched)

    def _wait_quiet(self, now_s: Callable[[], float]) -> None:
        """Until each watcher has looked some more: what it tells then is the background of the fault."""
        began_s = now_s()

        def looked() -> bool:
            return all(
                sum(not one.trouble and one.began_s >= began_s for one in self.sights.of(name, began_s, now_s()))
                >= QUIET_LOOKS
                for name in self._watched
            )

        self._wait(looked, began_s + QUIET_S, now_s)

    def _wait(self, holds: Callable[[], bool], until_s: float, now_s: Callable[[], float]) -> None:
        while not holds() and now_s() < until_s:
            time.sleep(POLL_S)


def with_drill(
    root: Path, watched: Sequence[str], say: Say, work: Callable[[Drill, DrillCluster, Load, Callable[[], float]], None]
) -> None:
    """Makes the cluster in `root`, and removes it when the work has ended. Raises what its parts raise."""
    logging.getLogger("quorumlog").setLevel(logging.CRITICAL)  # clients of struck nodes log many errors
    now_s = monotonic_from_now()
    cluster = DrillCluster(root / ".quorumlog")
    with cluster:
        load = Load(cluster)
        watchers = Watchers(cluster, root / "watchers", watched, now_s)
        try:
            load.start()
            cluster.wait_healthy()
            watchers.start()
            say(f"{now_s():7.1f} s  three nodes run under load, watched by {', '.join(watched)}")
            work(Drill(cluster, load, watchers, watched, say), cluster, load, now_s)
        finally:
            watchers.stop()
            load.stop()

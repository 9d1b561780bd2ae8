"""`./dev crash-sweep`: every call of every workload with every fault, seed after seed, in a few processes.

First each pair of a site and a fault a few times, then the rest. So a sweep that is stopped early has met every pair.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jepsen.crash.coverage import SAMPLE_IMAGES, WHOLE_IMAGES, Coverage, table
from jepsen.crash.faults import Fault, Variant
from jepsen.crash.runs import BY_NAME, UNEXPECTED, Case, Outcome, cases_of, run
from jepsen.crash.sites import production_sites
from jepsen.crash.workloads.catalogue import WORKLOADS, Workload

SAMPLE_OF_EACH = 2  # runs of each site, fault and variant in a sample, where there are so many
CHUNK = 20  # runs that a process takes at once
PROGRESS_S = 5.0
MOST_TOLD = 10  # broken runs whose evidence is printed

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What to run. None or (): all. site: as text, `FILE:LINE:METHOD`. minutes: a limit. sample: of each seed."""

    first: int = 1
    seeds: int = 1
    minutes: float | None = None
    sample: bool = False
    processes: int = 2
    site: str | None = None
    fault: Fault | None = None
    variant: Variant | None = None
    workloads: tuple[str, ...] = ()
    call: int | None = None

    @property
    def is_replay(self) -> bool:
        chosen = any(one is not None for one in (self.site, self.fault, self.variant, self.call))
        return chosen or bool(self.workloads)

    def wants(self, case: Case) -> bool:
        return (
            self.site in (None, case.site)
            and self.fault in (None, case.fault)
            and self.variant in (None, case.variant)
            and (not self.workloads or case.workload in self.workloads)
            and self.call in (None, case.at)
        )


def sweep(chosen: Chosen, say: Say = print) -> int:
    """Run, tell, and return 1 if a promise was broken or the sweep reached too little."""
    unexplained = production_sites().ambiguous
    for line in unexplained:
        say(f"not known to be a Disk or a File, or not to be one: {line}; see jepsen/crash/sites.py")
    coverage, complete = reach(chosen, say)
    if chosen.is_replay:
        return _told_replay(coverage, say)
    for line in table(production_sites().found, coverage.runs) + coverage.lines():
        say(line)
    is_whole = complete and not chosen.sample
    short = coverage.shortfalls(WHOLE_IMAGES if is_whole else SAMPLE_IMAGES)
    for line in short:
        say(f"too little: {line}")
    _tell_broken(coverage, say)
    return 1 if coverage.broken or short or unexplained else 0


def reach(chosen: Chosen, say: Say) -> tuple[Coverage, bool]:
    """What was run, and whether that is all that was chosen."""
    coverage, started = Coverage(), time.monotonic()
    told, complete = started, True
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        workloads = [BY_NAME[name] for name in chosen.workloads] or WORKLOADS
        cases = [case for case in in_order(seed, chosen.sample, workloads) if chosen.wants(case)]
        for number, outcome in enumerate(_outcomes(cases, chosen.processes), start=1):
            coverage.add(outcome)
            now = time.monotonic()
            if now - told >= PROGRESS_S:
                told = now
                say(
                    f"seed {seed}: {number:,} of {len(cases):,} runs, {len(coverage.images):,} images, "
                    f"{len(coverage.broken)} broken, {now - started:.0f} s"
                )
            if chosen.minutes is not None and now - started >= chosen.minutes * 60:
                return coverage, False
    return coverage, complete


def in_order(seed: int, sample: bool, workloads: Sequence[Workload]) -> list[Case]:
    """All cases of a seed; a few of each site, fault and variant come first. sample: only those."""
    cases = [case for workload in workloads for case in cases_of(workload, seed)]
    random.Random(seed).shuffle(cases)
    met: dict[tuple[str, Fault, Variant], int] = {}
    early: list[Case] = []
    late: list[Case] = []
    for case in cases:
        key = (case.site, case.fault, case.variant)
        met[key] = met.get(key, 0) + 1
        (early if met[key] <= SAMPLE_OF_EACH else late).append(case)
    return early if sample else early + late


def _outcomes(cases: Sequence[Case], processes: int) -> Iterator[Outcome]:
    """Closing the iterator ends the processes."""
    if len(cases) <= CHUNK or processes <= 1:
        yield from map(run, cases)
        return
    with multiprocessing.get_context("spawn").Pool(processes, initializer=_begin_process) as pool:
        yield from pool.imap(run, cases, CHUNK)


def _begin_process() -> None:
    """What is imported stays: to look through it at every collection would take a fifth of the time."""
    gc.collect()
    gc.freeze()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """However that ends: what has begun of a chunk, and what is queued, would take seconds."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _told_replay(coverage: Coverage, say: Say) -> int:
    runs = sum(coverage.runs.values())
    _tell_broken(coverage, say)
    say(f"{runs} runs, {len(coverage.broken)} broken")
    if runs == 0:
        say(f"no call is like that; the workloads are: {', '.join(BY_NAME)}")
    return 1 if coverage.broken or runs == 0 else 0


def _tell_broken(coverage: Coverage, say: Say) -> None:
    """Promises first: an exception often follows from what broke one."""
    ordered = sorted(coverage.broken, key=lambda outcome: outcome.broken.startswith(UNEXPECTED))
    for outcome in ordered[:MOST_TOLD]:
        say(f"BROKEN {outcome.broken}\n  replay: {outcome.case.replay}")
    if coverage.broken:
        say(f"{len(coverage.broken)} runs broke a promise")

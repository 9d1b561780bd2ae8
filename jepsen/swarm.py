"""Runs many seeds in a few processes; each seed has its own process, so that a failing one does not affect others."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from jepsen.pool.pool import results
from jepsen.pool.shrunk import shrink_in_children
from jepsen.sim.job import QUORUM, Job
from jepsen.sim.profiles.plan import PROFILES
from jepsen.sim.result import rate_of
from jepsen.sim.shrink.options import replay

MAX_SHRUNK = 3  # failing seeds of a swarm that are cut down: a mistake fails many
TURNS = ("swarm", QUORUM, *sorted(PROFILES))  # the profiles of successive seeds, if none is chosen


def profile_of(turn: int, chosen: str | None) -> str:
    """turn: counts the seeds of one run from 0. chosen: the profile of all seeds; None: all profiles by turns."""
    return TURNS[turn % len(TURNS)] if chosen is None else chosen


def swarm(first: int, seeds: int, profile: str | None, seconds: int, processes: int, limit_s: float | None) -> int:
    """Print one line per seed and the totals. Returns 1 if any seed was not VALID. profile: see `profile_of`."""
    started = time.monotonic()

    def jobs() -> Iterator[Job]:
        for turn in range(seeds):
            if limit_s is not None and time.monotonic() - started >= limit_s:
                return
            yield Job(seed=first + turn, profile=profile_of(turn, profile), seconds=seconds)

    bad, count, shrunk, totals = 0, 0, 0, dict[str, int]()
    lines, processor_s = 0, 0.0
    with closing(results(jobs(), processes, os.environ)) as found:  # an interrupt ends all processes at once
        for job, result in found:
            count += 1
            for name, times in result["exercised"].items():
                totals[name] = totals.get(name, 0) + times
            lines, processor_s = lines + result.get("lines", 0), processor_s + result.get("processor_s", 0.0)
            if result["verdict"] != "VALID":
                bad += 1
            print(line_of(job, result), flush=True)
            if result["verdict"] == "INVALID" and (shrunk := shrunk + 1) <= MAX_SHRUNK:
                _shrink(job)
    print("exercised: " + ", ".join(f"{name} {times}" for name, times in totals.items()))
    print(rate_of(lines, processor_s))
    print(f"{count} seeds, {bad} not VALID, {time.monotonic() - started:.0f} s")
    return 1 if bad else 0


def _shrink(job: Job) -> None:
    """Print the smallest run that fails; the other processes go on meanwhile."""
    command = shrink_in_children(job, say=lambda line: print(line, flush=True))
    print(f"  replay: {command}" if command else f"  seed {job.seed} did not fail again", flush=True)


def line_of(job: Job, result: Mapping[str, Any]) -> str:
    line = f"seed {job.seed}: {result['verdict']} {job.profile} {result['wire']} {result['trace'][:16]}"
    line += f" acked {result['exercised'].get('acked', 0)}"
    if result["verdict"] == "VALID":
        return line
    return "\n".join([line, *_evidence(result["findings"]), f"  replay: {replay(job.seed, job.profile, job.seconds)}"])


def _evidence(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"  {finding['name']}: {finding['text']}" for finding in findings[:3]]

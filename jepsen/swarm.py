"""Runs many seeds in a few processes; each seed has its own process, so that a failing one does not affect others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jepsen.sim.plan import PROFILES

SEED_LIMIT_S = 300  # of real time, for one seed
_TAIL_CHARACTERS = 2_000
TURNS = ("swarm", *sorted(PROFILES))  # the profiles of successive seeds, if none is chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One simulation. folder: the tree to run, put first on its import path."""

    seed: int
    profile: str
    seconds: int
    folder: Path | None = None


def command(job: Job) -> list[str]:
    options = ["--seed", str(job.seed), "--profile", job.profile, "--seconds", str(job.seconds), "--json"]
    return [sys.executable, "-m", "jepsen", "sim", *options]


def results(
    jobs: Iterator[Job], processes: int, environment: Mapping[str, str]
) -> Generator[tuple[Job, dict[str, Any]], None, None]:
    """Each job with its result, in the order of the jobs. Closing the iterator kills running jobs."""
    running: list[tuple[Job, subprocess.Popen[str]]] = []
    try:
        for job in jobs:
            running.append((job, _start(job, environment)))
            if len(running) >= processes:
                yield _take(running)
        while running:
            yield _take(running)
    finally:
        for _, process in running:
            process.kill()
            process.communicate()


def _start(job: Job, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    folder = job.folder
    environment = {**environment, **({"PYTHONPATH": str(folder)} if folder else {})}
    pipe = subprocess.PIPE
    return subprocess.Popen(command(job), cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def _take(running: list[tuple[Job, subprocess.Popen[str]]]) -> tuple[Job, dict[str, Any]]:
    job, process = running[0]
    try:
        out, errors = process.communicate(timeout=SEED_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        out, errors = "", f"no result within {SEED_LIMIT_S} s"
    del running[0]
    lines = out.strip().splitlines()
    if process.returncode in (0, 1) and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return job, found
    return job, {"verdict": "BROKEN", "wire": "-", "trace": "", "exercised": {}, "findings": [_failure(errors)]}


def _failure(errors: str) -> dict[str, Any]:
    return {"name": "simulation-error", "text": errors[-_TAIL_CHARACTERS:], "at_ns": -1}


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

    bad, count, totals = 0, 0, dict[str, int]()
    for job, result in results(jobs(), processes, os.environ):
        count += 1
        for name, times in result["exercised"].items():
            totals[name] = totals.get(name, 0) + times
        if result["verdict"] != "VALID":
            bad += 1
        print(line_of(job, result), flush=True)
    print("exercised: " + ", ".join(f"{name} {times}" for name, times in totals.items()))
    print(f"{count} seeds, {bad} not VALID, {time.monotonic() - started:.0f} s")
    return 1 if bad else 0


def line_of(job: Job, result: Mapping[str, Any]) -> str:
    line = f"seed {job.seed}: {result['verdict']} {job.profile} {result['wire']} {result['trace'][:16]}"
    line += f" acked {result['exercised'].get('acked', 0)}"
    if result["verdict"] == "VALID":
        return line
    return "\n".join([line, *_evidence(result["findings"]), f"  replay: {_replay(job)}"])


def _evidence(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"  {finding['name']}: {finding['text']}" for finding in findings[:3]]


def _replay(job: Job) -> str:
    profile = "" if job.profile == "swarm" else f" --profile {job.profile}"
    return f"./dev sim --seed {job.seed}{profile} --seconds {job.seconds}"

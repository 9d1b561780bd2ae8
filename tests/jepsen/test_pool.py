"""Simulations in forked children: the results of processes of their own, in order, and an end to all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from jepsen.pool.pool import Pool, results
from jepsen.pool.runner import Runner
from jepsen.sim.job import QUORUM, Job

ROOT = Path(__file__).resolve().parents[2]


def short(seed: int, *, noting: bool = False) -> Job:
    return Job(seed=seed, profile=QUORUM, seconds=2, noting=noting)


def in_its_own_process(job: Job) -> dict[str, object]:
    command = [sys.executable, "-m", "jepsen", *job.options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def without_time(result: dict[str, object]) -> dict[str, object]:
    """All but the one field that is measured by a real clock."""
    assert isinstance(result.pop("processor_s"), float)
    return result


def test_a_child_gives_the_result_of_a_process_of_its_own_whatever_ran_before_it() -> None:
    jobs = [short(1), short(2), short(1), short(2, noting=True)]
    found = list(results(iter(jobs), 2, os.environ))
    assert [job for job, _ in found] == jobs
    first, second, again, noted = (without_time(result) for _, result in found)
    assert first == again == without_time(in_its_own_process(jobs[0]))
    assert noted.pop("functions") and noted == second


def test_a_job_that_fails_is_broken_and_leaves_the_next_one_alone() -> None:
    found = [result for _, result in results(iter([Job(seed=1, profile="none", seconds=1), short(1)]), 1, os.environ)]
    assert [result["verdict"] == "BROKEN" for result in found] == [True, False]
    assert "invalid choice: 'none'" in found[0]["findings"][0]["text"]


@pytest.mark.parametrize(
    ("limits", "said"),
    [({"real_s": 0.5}, "no result within 0.5 s"), ({"processor_s": 1}, "no result within 1 s of processor time")],
)
def test_a_job_beyond_a_limit_is_ended_and_the_next_one_runs(limits: dict[str, Any], said: str) -> None:
    runner = Runner(None, False, os.environ)
    try:
        late = runner.run(Job(seed=1, profile="calm", seconds=1_000_000), **limits)
        assert late["verdict"] == "BROKEN" and said in late["findings"][0]["text"]
        assert runner.run(short(1))["trace"]
    finally:
        runner.close()
    assert runner.run(short(1))["verdict"] == "BROKEN"


def test_a_job_that_gets_no_processor_for_longer_than_its_limit_is_not_ended() -> None:
    """What else the machine does is no fault of it: 760014 and 980024 were called BROKEN where many others ran."""
    others, limit_s = {*psutil.Process().children()}, 4
    runner = Runner(None, False, os.environ)
    (template,) = {*psutil.Process().children()} - others
    try:
        with ThreadPoolExecutor(1) as beside:
            pending = beside.submit(runner.run, short(1), processor_s=limit_s)
            while not (running := template.children()):
                assert not pending.done()
            (child,) = running
            child.suspend()
            with pytest.raises(TimeoutError):
                pending.result(limit_s + 0.5)
            child.resume()
            assert pending.result()["trace"]
    finally:
        runner.close()


@pytest.mark.parametrize("noting", [False, True])
def test_closing_ends_all_processes(noting: bool) -> None:
    others = {*psutil.Process().children(recursive=True)}  # as multiprocessing's tracker, which a test before may leave
    pool = Pool(2, os.environ)
    pending = [pool.begin(Job(seed=seed, profile="calm", seconds=1_000_000, noting=noting)) for seed in range(4)]
    pool.begin(short(1)).cancel()
    while len({*psutil.Process().children(recursive=True)} - others) < 2 and not any(one.done() for one in pending):
        pass
    pool.close()
    assert [one.cancelled() or one.result()["verdict"] == "BROKEN" for one in pending] == [True] * 4
    assert {*psutil.Process().children(recursive=True)} <= others

"""Begins the simulations of all chosen tests before the first test, so that both processors have work until the end.

A test says which jobs it looks at with `@marked(jobs)` (simulations.py), and gets their results from `simulated`.
"""

from __future__ import annotations

import os

import pytest

from jepsen.pool.pool import Pending, Pool
from jepsen.sim.job import Job

PROCESSES = 2
_BEGUN = pytest.StashKey[dict[Job, Pending]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "simulations(*jobs): the jobs whose results a test looks at")


def pytest_collection_finish(session: pytest.Session) -> None:
    marks = [mark for item in session.items for mark in item.iter_markers("simulations")]
    jobs = dict.fromkeys(job for mark in marks for job in mark.args)
    if session.config.option.collectonly or not jobs:
        return
    pool = Pool(PROCESSES, os.environ)
    session.config.add_cleanup(pool.close)
    session.config.stash[_BEGUN] = {job: pool.begin(job) for job in jobs}


@pytest.fixture(scope="session")
def simulated(request: pytest.FixtureRequest) -> object:
    """The results of jobs that a chosen test is marked with, in the order in which it asks (`Simulated`)."""
    begun = request.config.stash[_BEGUN]
    return lambda jobs: [begun[job].result() for job in jobs]

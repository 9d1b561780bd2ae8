"""Probes every log directory once a second, each in a worker of its own: the shell around
`quorumlog_storage/directory/directory.py`.

A probe waits neither for the writer's queue nor for a recovery. One that hangs is seen by the watch on hanging disks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from quorumlog_storage.directory.directory import DirectoryProbe
from quorumlog_storage.log.log_errors import is_back_pressure
from quorumlog_storage.writer.directory_life import DirectoryLife, Generation
from quorumlog_storage.writer.worker import Worker, WorkerClosed
from quorumlog_storage.writer.writer import CallJob, Outcome

PROBE_INTERVAL_MS = 1_000


@dataclass(slots=True)
class Probed:
    """One generation of a log directory. under_way: the answer of the last probe has not come."""

    life: DirectoryLife
    generation: Generation
    worker: Worker
    probe: DirectoryProbe
    under_way: bool = False


async def probe_for_ever(directories: Sequence[Probed]) -> None:
    """Runs until cancelled. A directory that is offline is not probed."""
    while True:
        await asyncio.sleep(PROBE_INTERVAL_MS / 1_000)
        for one in directories:
            if one.generation.is_usable and not one.under_way:
                _begin(one)


def _begin(one: Probed) -> None:
    try:
        one.worker.submit(CallJob(one.probe), None, partial(_ended, one))
    except WorkerClosed:
        return
    one.under_way = True


def _ended(one: Probed, outcome: Outcome) -> None:
    one.under_way = False
    error = outcome.error
    if error is not None and not is_back_pressure(error):
        one.life.fail(error, one.generation)

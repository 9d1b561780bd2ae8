"""A scripted fault: empty disks under an old id, as after a disk or a machine has died (KIP-858).

By turns, and as the broker has directories for it:

- one of two log directories is replaced while the broker is down;
- all of them are: the broker comes back with nothing but its id, without metadata of its own;
- one is replaced under the running process, which has lost it before. It must not take the empty one in its place, also
  when it is asked to; its next process does;
- the broker is started with a directory of another one by mistake, and with its own again (disk_of_another.py).

A new directory has another id. Its logs are gone, so the broker must not count as one that holds them: what it led or
could lead is taken from it when it registers. The script waits until others hold all that it is about to destroy
(last_copies.py). What must hold is in invariants/placement/new_disks.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import SECOND_DATA
from jepsen.sim.strikes.scripts.aimed import Script, bring_back, let_pass
from jepsen.sim.strikes.scripts.disk_of_another import DISKS_OF_OTHERS, disk_of_another
from jepsen.sim.strikes.scripts.last_copies import goes_down, logs_on, others_hold_all
from quorumlog.errors import ApiError
from quorumlog_storage.writer.directory_life import DirectoryState

NEW_DISKS, ALL_NEW_DISKS = "log directories with a new disk", "brokers with nothing but new disks"
NEW_WHILE_RUNNING = "disks replaced under a process"
_HELD_MS, _FAILED_MS = 10_000, 8_000
_ANSWERED_MS = 35_000  # `log-dirs online` waits nearly as long

_Kind = Callable[[SimCluster, random.Random, Machine], Script]


def new_disk(cluster: SimCluster, rng: random.Random) -> Script:
    sick, expected = cluster.invariants.sick_directories, cluster.invariants.crashes_expected
    able = [one for one in cluster.brokers if one.alive and not one.paused and one.host not in {**sick, **expected}]
    if not able:
        return
    victim = rng.choice(able)
    sick[victim.host] = None
    try:
        yield from _next_kind(cluster, victim)(cluster, rng, victim)
    finally:
        sick.pop(victim.host, None)
        bring_back(victim)


def _next_kind(cluster: SimCluster, victim: Machine) -> _Kind:
    """The one that was done least in this run; of several, another one first in each seed."""
    kinds: dict[str, _Kind] = {ALL_NEW_DISKS: _all, DISKS_OF_OTHERS: disk_of_another}
    if SECOND_DATA in victim.config.log_dirs:
        kinds |= {NEW_WHILE_RUNNING: _while_it_runs, NEW_DISKS: _one}
    names = list(kinds)
    first = cluster.scheduler.seed % len(names)
    return kinds[min((*names[first:], *names[:first]), key=lambda name: cluster.counts.get(name, 0))]


def _one(cluster: SimCluster, rng: random.Random, victim: Machine) -> Script:
    yield from _while_down(cluster, rng, victim, (SECOND_DATA,), NEW_DISKS)


def _all(cluster: SimCluster, rng: random.Random, victim: Machine) -> Script:
    yield from _while_down(cluster, rng, victim, victim.config.directories, ALL_NEW_DISKS)


def _while_down(
    cluster: SimCluster, rng: random.Random, victim: Machine, directories: Sequence[str], name: str
) -> Script:
    yield from goes_down(cluster, rng, victim, directories)
    if victim.alive:  # another fault has ended, and started it
        return
    cluster.count(name)
    _replace(cluster, victim, directories)
    yield from let_pass(cluster, rng.randint(0, 3_000))


def _while_it_runs(cluster: SimCluster, rng: random.Random, victim: Machine) -> Script:
    life, mounts = victim.life, victim.disk.mounts
    mounts.unmount(SECOND_DATA, leaves_a_directory=rng.random() < 0.5)
    victim.note_struck(SECOND_DATA)

    def is_same() -> bool:
        return victim.alive and victim.life == life

    try:
        yield lambda: _has_failed(victim) or not is_same(), _FAILED_MS
        yield lambda: others_hold_all(cluster, victim, (SECOND_DATA,)) or not is_same(), _HELD_MS
        if not is_same() or victim.paused:
            return
        mounts.mount(SECOND_DATA)
        _replace(cluster, victim, (SECOND_DATA,))
        cluster.count(NEW_WHILE_RUNNING)
        answer = _ask_back(victim)
        yield lambda: answer.has_come or not is_same(), _ANSWERED_MS
        if is_same():
            is_offline = _has_failed(victim)
            cluster.invariants.new_disks.on_asked_back(victim, SECOND_DATA, is_offline=is_offline)
        yield from let_pass(cluster, rng.randint(0, 3_000))
    finally:
        mounts.mount(SECOND_DATA)
        if is_same():  # only its next process takes a disk that it has lost, old or new
            victim.kill()


def _replace(cluster: SimCluster, victim: Machine, directories: Sequence[str]) -> None:
    for directory in directories:
        logs = logs_on(victim, (directory,))
        for log in logs:
            cluster.invariants.partitions.forget_disk(log, victim)
        cluster.invariants.new_disks.on_replaced(victim, directory, logs)
    for directory in directories:
        victim.exchange_directory(directory, None)
    victim.format(again=True)


def _has_failed(victim: Machine) -> bool:
    lives = () if victim.node is None else victim.node.lives
    return any(life.path == SECOND_DATA and life.state is DirectoryState.FAILED for life in lives)


@dataclass(slots=True)
class _Answer:
    has_come: bool = field(default=False)


def _ask_back(victim: Machine) -> _Answer:
    """As `quorumlog log-dirs online` does."""
    answer, node, loop = _Answer(), victim.node, victim.loop
    if node is None or node.broker is None or loop is None:
        return answer
    directory_return = node.broker._directory_return

    async def ask() -> None:
        with suppress(ApiError):
            await directory_return.begin(SECOND_DATA)
        answer.has_come = True

    loop.create_task(ask(), name="log-dirs online")
    return answer

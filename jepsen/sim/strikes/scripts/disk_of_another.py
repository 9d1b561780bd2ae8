"""Part of a scripted fault: a broker is started with a copy of another broker's log directory, by mistake.

The process must refuse to start, and leave the directory as it is, so that its owner finds it so. The copy has often
the marker of a clean stop, which its owner would need. Then the broker gets its own directory back.

While its own is away nobody sees what the broker holds, so others hold it all (last_copies.py).
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.exchange import copy_of, files_in
from jepsen.sim.machine.machine import Machine
from jepsen.sim.machine.page_cache import FileNode
from jepsen.sim.strikes.scripts.aimed import Script
from jepsen.sim.strikes.scripts.last_copies import goes_down, logs_on
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog_storage.directory.directory import CLEAN_SHUTDOWN, LOCK_NAME

DISKS_OF_OTHERS = "starts with another broker's directory"
_REFUSED_MS = 5_000
_MARKER = b'{"version":0,"brokerEpoch":77}'


def disk_of_another(cluster: SimCluster, rng: random.Random, victim: Machine) -> Script:
    directory = rng.choice(victim.config.directories)
    others = [one for one in cluster.brokers if one is not victim and directory in one.config.directories]
    yield from goes_down(cluster, rng, victim, (directory,))
    if victim.alive:  # another fault has ended, and started it
        return
    foreign = copy_of(rng.choice(others).disk, directory)
    if rng.random() < 0.7:
        foreign.current[CLEAN_SHUTDOWN] = FileNode.holding(_MARKER)
    before = _content(files_in(foreign))
    logs = logs_on(victim, (directory,))
    for log in logs:
        cluster.invariants.partitions.forget_disk(log, victim)
    own = victim.exchange_directory(directory, foreign)
    try:
        victim.start()
        life, until_ns = victim.life, cluster.scheduler.now_ns + _REFUSED_MS * NS_PER_MS
        yield lambda: not victim.alive or cluster.scheduler.now_ns >= until_ns, 2 * _REFUSED_MS
        if victim.paused or victim.life != life or victim.host in cluster.invariants.crashes_expected:
            return  # another fault: it says nothing
        after = _content(files_in(copy_of(victim.disk, directory)))
        changed = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
        cluster.invariants.new_disks.on_foreign_start(victim, directory, runs=victim.alive, changed=changed)
        cluster.count(DISKS_OF_OTHERS)
    finally:
        victim.kill()
        victim.exchange_directory(directory, own)
        for log in logs:
            cluster.invariants.partitions.remember_disk(log, victim)


def _content(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name != LOCK_NAME}

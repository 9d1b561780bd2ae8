"""A scripted fault: a voter comes back with an older disk, as from a backup or a snapshot of a virtual machine.

What is promised:

- Where the log is older than its recovery point, the voter notices it. It lacks records that it may have acknowledged,
  so it does not vote before it has caught up (decision 17).
- Otherwise nothing on this machine tells it: all files are older, or the log was synced since the last recovery point.
  It has forgotten acknowledgements, and perhaps votes. Raft does not cover that; nor does Kafka. It is sound only while
  every other voter holds all that is committed, and none of them needs its vote meanwhile. The script waits for that,
  and no other fault strikes in its profile. Then nothing is lost, and the voter catches up. The invariants forget what
  it promised since the copy was made.
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import METADATA_LOG
from jepsen.sim.strikes.scripts.aimed import Script, bring_back, let_pass
from jepsen.sim.truth.mirrors import METADATA
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.raft import RaftRole
from quorumlog_storage.directory.offset_files import LOG_STARTS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.names import CACHE_SUFFIXES, LOG_SUFFIX

OLDER_LOGS, OLDER_DISKS = "voters with an older log", "voters with an older disk"
SHORT_LOGS = "logs shorter than their recovery point"
_WHOLE_MS, _START_MS, _CAUGHT_UP_MS = 5_000, 2_000, 10_000
_OF_THE_LOG = (LOG_SUFFIX, *CACHE_SUFFIXES, "leader-epoch-checkpoint", LOG_STARTS, ".checkpoint")


def older_disk(cluster: SimCluster, rng: random.Random) -> Script:
    voter = rng.choice(cluster.controllers)
    if not voter.alive:
        return
    copy = voter.disk.copy_of(METADATA_LOG)
    done = cluster.counts.get(OLDER_LOGS, 0) + cluster.counts.get(OLDER_DISKS, 0)
    log_only = (done + cluster.scheduler.seed) % 2 == 1  # by turns; another one first in the next seed
    try:
        yield from let_pass(cluster, rng.randint(3_000, 6_000))
        others = [machine for machine in cluster.controllers if machine is not voter]
        yield from _replaced(cluster, voter, others, copy, log_only=log_only)
        yield lambda: _holds_all(cluster, voter), _CAUGHT_UP_MS
    finally:
        bring_back(voter)


def _replaced(
    cluster: SimCluster, voter: Machine, others: list[Machine], copy: dict[str, bytes], *, log_only: bool
) -> Script:
    """The voter stops, its files are replaced, and it starts. Where its log is short, it must know that."""
    voter.power_cut()
    yield lambda: all(_holds_all(cluster, machine) for machine in others) and _is_led(cluster, others), _WHOLE_MS
    now = voter.disk.copy_of(METADATA_LOG)
    newer = {name: content for name, content in now.items() if not _is_of_the_log(name)} if log_only else {}
    older = {name: content for name, content in copy.items() if not log_only or _is_of_the_log(name)}
    cluster.count(OLDER_LOGS if log_only else OLDER_DISKS)
    voter.restore(METADATA_LOG, {**older, **newer})
    if not log_only:
        cluster.invariants.quorum.forget_disk(voter.host)
        cluster.invariants.promises.forget_disk(voter.host)
    points = OffsetFile(voter.disk, f"{METADATA_LOG}/{RECOVERY_POINTS}")
    is_short = cluster.invariants.mirrors.of(voter, METADATA).end < points.get(METADATA_PARTITION)
    bring_back(voter)
    yield lambda: _lost_before(voter) is not None, _START_MS
    if is_short:
        cluster.count(SHORT_LOGS)
    if is_short and not _lost_before(voter):
        cluster.findings.broken("older-log-is-noticed", f"{voter.host} believes its older log to be whole")


def _is_of_the_log(name: str) -> bool:
    return any(part in name for part in _OF_THE_LOG)


def _is_led(cluster: SimCluster, others: list[Machine]) -> bool:
    leader = cluster.active_controller()
    raft = None if leader is None or leader.node is None or leader.node.driver is None else leader.node.driver.core
    return leader in others and raft is not None and raft.role.role is RaftRole.LEADER


def _holds_all(cluster: SimCluster, voter: Machine) -> bool:
    mirrors = cluster.invariants.mirrors
    return mirrors.truth(METADATA).is_held_by(mirrors.of(voter, METADATA), mirrors.of(voter, METADATA).durable_end())


def _lost_before(voter: Machine) -> int | None:
    """Up to where the log was synced once and is not there; 0: it is whole; None: it is not open yet."""
    driver = None if voter.node is None else voter.node.driver
    return None if driver is None or driver.opened is None else driver.opened.lost_before

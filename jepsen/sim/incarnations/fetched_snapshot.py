"""A majority is lost, and a broker knew more than the survivor from a snapshot alone.

As `lost_majority`, but the survivor and one broker fall behind together, until the others' logs begin with a snapshot
beyond. Then the broker hears of them again: it fetches the snapshot, its log begins anew behind that, and it is killed
before it has fetched a record. Nothing in its log tells what it knew (adopted-knew-no-more).
"""

from __future__ import annotations

from jepsen.sim.incarnations.lost_majority import LostMajority, Result
from jepsen.sim.incarnations.two_incarnations import OLD
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import CONTROLLERS, METADATA_LOG
from jepsen.sim.simulation import run_alone
from quorumlog_quorum.offline.metadata_survey import batches_of

SNAPSHOT_ALONE = "brokers that knew more from a snapshot alone"
UNSEEN = "unseen-"  # names of topics that the survivor does not know begin with it
SETTINGS = {
    "metadata.log.segment.bytes": "2000",
    "metadata.log.segment.ms": "1000",
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "metadata.max.retention.bytes": "1000",
    "metadata.retention.check.interval.ms": "300",
}
_TOPICS_MAX, _GAP_MS = 60, 200


def run(seed: int) -> Result:
    return run_alone(lambda: _FetchedSnapshot(seed, SETTINGS))


class _FetchedSnapshot(LostMajority):
    _late: Machine | None = None
    _struck = False

    def _lose(self) -> None:
        brokers = [machine for host, machine in self.machines.items() if host not in CONTROLLERS]
        self._late = self.rng.choice(brokers)
        left = (self.survivor, self._late)
        for machine in left:
            for other in self.machines.values():
                if other is not machine:
                    self.network.cut_both(machine.host, other.host)
        self.until(lambda: self.leader(OLD) not in (None, self.survivor), "is led without the survivor")
        for number in range(_TOPICS_MAX):
            self.create(OLD, f"{UNSEEN}{number}")
            self.run_for_ms(_GAP_MS)
            if all(_log_start(machine) > _log_end(self._late) for machine in self.lost):
                break
        for machine in self.lost:
            self.network.heal(self._late.host, machine.host)
            self.network.heal(machine.host, self._late.host)
        self.until(lambda: self._struck, "a broker fetches a snapshot")
        if _log_end(self._late) <= _log_end(self.survivor):
            self.count(SNAPSHOT_ALONE)
        for machine in self.machines.values():
            machine.kill()
        self.network.heal_all()

    def _on_touch(self, machine: Machine) -> None:
        before = self.known.image_of(machine.host)
        super()._on_touch(machine)
        if machine is self._late and not self._struck:
            known = self.known.image_of(machine.host)
            if known is not before and any(name.startswith(UNSEEN) for name in known.topic_ids):
                self._struck = True
                self.scheduler.call_later(1, machine.kill)


def _log_start(machine: Machine) -> int:
    """Of the metadata log on this machine's disk."""
    return next((header.base_offset for _, header in batches_of(machine.disk, METADATA_LOG)), 0)


def _log_end(machine: Machine) -> int:
    return max((header.next_offset for _, header in batches_of(machine.disk, METADATA_LOG)), default=0)

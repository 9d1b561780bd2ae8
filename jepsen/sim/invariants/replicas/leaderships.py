"""The leaderships of every partition: which life led in which epoch, and how far it could acknowledge.

Kept by the invariants of answers. A leadership is over in the step in which its replica stops leading, or with its
process. Its answers may leave later, because a response waits for all partitions of its request.
"""

from __future__ import annotations

from dataclasses import dataclass

from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog.ids import Epoch, Offset
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica


@dataclass(slots=True)
class Leadership:
    """One leadership of one life. Offsets are exclusive ends.

    high_watermark: the largest it has had. on_disk: what acks=1 may cover. It is kept when the leadership is over,
    because the log may be cut then, and while written records are enough, because `durability` may be raised before
    their answer leaves. acked, chain: how far it has acknowledged with acks=1, and the log's chain there.
    """

    epoch: Epoch
    high_watermark: Offset = 0
    is_over: bool = False
    on_disk: Offset = 0
    acked: Offset = 0
    chain: bytes = b""


class Leaderships(Invariant):
    def __init__(self, mirrors: Mirrors) -> None:
        self._mirrors = mirrors
        self._of_lives: dict[tuple[str, int], dict[PartitionKey, list[Leadership]]] = {}  # by host and life
        self._named: dict[tuple[str, int, str], list[Leadership]] = {}  # by host, life and name
        self._weak: dict[tuple[str, int, PartitionKey], None] = {}  # by host and life: where writing is enough

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        for replica in changed:
            core, led = replica.core, self.of(machine, replica.key)
            was_enough = self._writing_was_enough(machine, replica)
            written = self._mirrors.of_replica(machine, replica).end if was_enough else 0
            last = led[-1] if led else None
            if last is not None and not last.is_over and not (core.is_leader and core.leader_epoch == last.epoch):
                last.is_over, last.on_disk = True, max(last.on_disk, written, self.end_on_disk(machine, replica))
            if core.is_leader:
                if last is None or last.epoch != core.leader_epoch:
                    last = self._begin(machine, replica)
                last.high_watermark = max(last.high_watermark, core.high_watermark)
                last.on_disk = max(last.on_disk, written)

    def of(self, machine: Machine, key: PartitionKey) -> list[Leadership]:
        """The leaderships of the machine's current life, in order."""
        return self._of_lives.get((machine.host, machine.life), {}).get(key, [])

    def named(self, machine: Machine, name: str) -> list[Leadership]:
        """The same, of every partition that has had this name: a topic may have been made anew."""
        return self._named.get((machine.host, machine.life, name), [])

    def current(self, machine: Machine, key: PartitionKey) -> Leadership | None:
        led = self.of(machine, key)
        return led[-1] if led and not led[-1].is_over else None

    def end_on_disk(self, machine: Machine, replica: Replica) -> Offset:
        """Up to where a leader may acknowledge with acks=1 now: synced, or written if the topic asks for no more."""
        mirror = self._mirrors.of_replica(machine, replica)
        is_weak = (machine.host, machine.life, replica.key) in self._weak
        return mirror.end if is_weak or not replica.config.synced else mirror.durable_end()

    def _writing_was_enough(self, machine: Machine, replica: Replica) -> bool:
        """In the last step or now. The core learns of a raised `durability` once the log has: until then it goes by
        what held before."""
        place = (machine.host, machine.life, replica.key)
        if not replica.config.synced:
            self._weak[place] = None
        was_enough = place in self._weak
        if replica.config.synced and replica.core.durable:
            self._weak.pop(place, None)
        return was_enough

    def _begin(self, machine: Machine, replica: Replica) -> Leadership:
        leadership = Leadership(replica.core.leader_epoch)
        self._of_lives.setdefault((machine.host, machine.life), {}).setdefault(replica.key, []).append(leadership)
        self._named.setdefault((machine.host, machine.life, replica.name), []).append(leadership)
        return leadership

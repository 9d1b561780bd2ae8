"""A compacted topic beside the others: its producer, and what every replica of it must hold in the end.

The bytes of its logs change, so the invariants that compare bytes leave it out (`COMPACTED_TOPIC`). What they check at
every step for the other topics is checked here once all replicas have converged, because nothing that compaction may
lose comes back by itself:

- compacted-value-lost: the newest acknowledged record of each key is there, or one of that key behind it. So is every
  acknowledged record that no later one of its key follows.
- compacted-record-invented: a record at an offset is the one that was acknowledged there; none was made up.
- compacted-hole: offsets rise, every read finds something up to the end, segments meet.
- compacted-replicas-differ: all replicas have the same last value of each key.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import COMPACTED_TOPIC
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.producer import AsyncProducer
from quorumlog.ids import Offset
from quorumlog.records import decode_batch, headers
from quorumlog.rpc.transport import RpcError
from quorumlog_storage.log.log import Log

KEYS, PARTITIONS, REPLICAS = 5, 2, 3
TOMBSTONES = 0.1  # of the records
_GAP_S = 0.04
_READ_BYTES = 2_000
_SEGMENT_BYTES = ("400", "1000", "3000")

Value = bytes | None


@dataclass
class _Sent:
    """Of one partition. acked: by offset. values: all that were ever sent, by key."""

    acked: dict[Offset, tuple[bytes, Value]] = field(default_factory=dict)
    values: dict[bytes, set[Value]] = field(default_factory=dict)  # only looked up


class Compaction:
    """counts: for the report."""

    def __init__(self, cluster: SimCluster, rng: random.Random, admin: Callable[[], AsyncAdmin]) -> None:
        self._cluster, self._rng, self._admin = cluster, rng, admin
        self._sent = [_Sent() for _ in range(PARTITIONS)]
        self._is_made = False
        self.stopping = False
        self.counts: dict[str, int] = {}

    async def run(self, producer: Callable[[], AsyncProducer]) -> None:
        """Until `stopping`: makes the topic, and writes to it."""
        await self._create()
        client, number = producer(), 0
        while not self.stopping:
            number += 1
            await self._send(client, number)
            await asyncio.sleep(self._rng.expovariate(1 / _GAP_S))
        await client.close(raise_errors=False)

    async def _create(self) -> None:
        settings = {
            "cleanup.policy": self._rng.choice(("compact", "compact,delete")),
            "internal.segment.bytes": self._rng.choice(_SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": self._rng.choice(("0.01", "0.5")),
            "index.interval.bytes": "100",
        }
        while not self._is_made and not self.stopping:
            async with self._admin() as admin:
                try:
                    await admin.create_topic(COMPACTED_TOPIC, PARTITIONS, REPLICAS, settings, exist_ok=True)
                    self._is_made = True
                except (QuorumlogError, RpcError):
                    await asyncio.sleep(0.5)

    async def _send(self, client: AsyncProducer, number: int) -> None:
        """One at a time, so that the order of acknowledgements is the order of the offsets."""
        index, key = self._rng.randrange(PARTITIONS), b"k%d" % self._rng.randrange(KEYS)
        value = None if self._rng.random() < TOMBSTONES else b"value-%06d" % number
        sent = self._sent[index]
        sent.values.setdefault(key, set()).add(value)
        try:
            delivery = await client.send(COMPACTED_TOPIC, value, key=key, partition=index)
            record = await delivery
        except QuorumlogError:
            return
        sent.acked[record.offset] = (key, value)

    # --- the verdict ---

    def check(self) -> None:
        """All replicas have converged, and nothing strikes any more."""
        if not self._is_made:
            return
        acked = sum(len(sent.acked) for sent in self._sent)
        rounds = freed = 0
        for machine in self._cluster.brokers:
            plane = data_plane_of(machine)
            assert plane is not None
            rounds, freed = rounds + plane.cleaner.totals.rounds, freed + plane.cleaner.totals.bytes_freed
        self.counts = {"compacted records": acked, "compactions": rounds, "compacted bytes": freed}
        for index, sent in enumerate(self._sent):
            logs = [(machine, log) for machine in self._cluster.brokers if (log := _log_of(machine, index)) is not None]
            self._must(len(logs) == REPLICAS, "compacted-hole", f"partition {index} has {len(logs)} replicas")
            last = [self._check_log(machine, log, sent) for machine, log in logs]
            self._must(all(one == last[0] for one in last), "compacted-replicas-differ", f"{index}: {last}")

    def _check_log(self, machine: Machine, log: Log, sent: _Sent) -> dict[bytes, tuple[Offset, Value]]:
        """Returns offset and value of the last record of each key."""
        where = f"{log.path} on {machine.host}"
        for segment, successor in zip(log.view.segments, log.view.bases[1:], strict=False):
            end = segment.end_offset()
            self._must(end == successor, "compacted-hole", f"{where}: a segment ends at {end}, {successor} follows")
        last: dict[bytes, tuple[Offset, Value]] = {}
        found = self._read(where, log)
        for offset, key, value in found:
            last[key] = (offset, value)
            acked = sent.acked.get(offset, (key, value))
            is_sent = value in sent.values.get(key, ())
            self._must(
                acked == (key, value) and is_sent,
                "compacted-record-invented",
                f"{where}: offset {offset} has {key!r}: {value!r}, acknowledged was {acked}",
            )
        held = {offset for offset, _, _ in found}
        for offset, (key, value) in sent.acked.items():
            is_there = offset in held or last.get(key, (-1, None))[0] > offset
            self._must(is_there, "compacted-value-lost", f"{where}: offset {offset}, {key!r}: {value!r}")
        return last

    def _read(self, where: str, log: Log) -> list[tuple[Offset, bytes, Value]]:
        found: list[tuple[Offset, bytes, Value]] = []
        offset, end = log.start_offset, log.end_offset
        while offset < end:
            data = log.read(offset, _READ_BYTES, upper_bound=end)
            if not data:
                self._must(False, "compacted-hole", f"{where}: nothing at {offset}, and the log ends at {end}")
                break
            for header in headers(data):
                rises = header.next_offset > offset and (not found or header.base_offset > found[-1][0])
                self._must(rises, "compacted-hole", f"{where}: offset {header.base_offset} where {offset} is next")
                for record in decode_batch(data, header):
                    assert record.key is not None
                    found.append((record.offset, record.key, record.value))
                offset = header.next_offset
        return found

    def _must(self, holds: bool, name: str, what: str) -> None:
        if not holds:
            self._cluster.findings.broken(name, what)


def _log_of(machine: Machine, index: int) -> Log | None:
    plane = data_plane_of(machine)
    replicas = plane.registry.replicas.values() if plane is not None else ()
    return next((r.log for r in replicas if r.topic == COMPACTED_TOPIC and r.key[1] == index), None)

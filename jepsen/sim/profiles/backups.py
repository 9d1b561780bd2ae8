"""Backups of a cluster whose clients write transactions (workload/operator/backups.py); checkers/backup_cuts.py judges.

The logs are whole at the end, so only the cuts are taken: what a backup copies is what lies before them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial

from jepsen.checkers.backup_cuts import Evidence, GroupOffset, Record, Value, check_cuts
from jepsen.checkers.findings import Finding
from jepsen.checkers.history import Status
from jepsen.sim.invariants.coordinators.transaction_logs import batches_of, logs_of
from jepsen.sim.profiles.feature import Feature
from jepsen.sim.profiles.transactions import TransactionalClients
from jepsen.sim.settings import BROKERS
from jepsen.sim.workload.operator.backups import TAKEN, BackupChore
from jepsen.sim.workload.transactions.transactions import SETTINGS
from jepsen.sim.workload.workload import Workload
from jepsen.transactions.readers import LEDGER, PIPE
from quorumlog.ids import Offset
from quorumlog.nursery import Nursery
from quorumlog.records import iter_batch, iter_headers
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.coordinator import GROUP_TYPES, decode
from quorumlog.records.coordinator.offsets import OffsetKey
from quorumlog.topic_name import CONSUMER_OFFSETS

_MIN_PER_S = 0.05  # cuts
Pair = tuple[bytes | None, bytes | None]  # the key and the value of a record


class _BackedUp(TransactionalClients):
    def __init__(self, clients: Workload) -> None:
        super().__init__(clients)
        self._clients = clients
        admin = partial(clients.admin, "backups")
        self._chore = BackupChore(clients.rng("backups"), admin, clients.now_ns, clients.clock.wall_ms)
        self._looked_at: dict[str, int] = {}

    def start_beside(self, nursery: Nursery) -> None:
        super().start_beside(nursery)
        nursery.start(self._chore.run(), "backups")
        nursery.start(self._chore.read_to_the_end(lambda: self._clients.open_topics), "group at the end")

    def stop(self) -> None:
        super().stop()
        self._chore.stopping = True

    def check(self) -> list[Finding]:
        history = self.transactions.recorder.history
        taken = [((PIPE, LEDGER, unit), number, end) for unit, number, end in history.taken]
        machine = self.cluster.machines[next(iter(BROKERS))]
        logs = {
            name: logs_of(self.cluster.invariants.mirrors, name, self.cluster.image, machine)
            for name in (LEDGER, CONSUMER_OFFSETS)
        }
        seen = Evidence(
            values={partition: list(_values(data)) for partition, data in logs[LEDGER].items()},
            offsets={partition: list(_offsets(data)) for partition, data in logs[CONSUMER_OFFSETS].items()},
            batches={partition: batches_of(data) for of_topic in logs.values() for partition, data in of_topic.items()},
            records=[
                Record(send.key, send.offset, send.ended_ns)
                for send in self._clients.history.of_status(Status.OK)
                if send.acks == -1
            ],
            commits=self._chore.commits,
            committed=dict(history.committed),
            taken=taken,
        )
        found, self._looked_at = check_cuts(self._chore.cuts, seen)
        return [*super().check(), *found]

    def exercised_enough(self, seconds: int) -> bool:
        return super().exercised_enough(seconds) and self._chore.counts[TAKEN] >= seconds * _MIN_PER_S

    @property
    def counts(self) -> Mapping[str, int]:
        return {**super().counts, **self._chore.counts, **self._looked_at}


def _settled(data: bytes) -> Iterator[tuple[Pair, Offset]]:
    """Each record that counts, with the end behind which it does: its own, or that of its commit marker."""
    waiting: dict[int, list[Pair]] = defaultdict(list)
    for header in iter_headers(data):
        records = list(iter_batch(data, header))
        if header.is_control:
            (record,) = records
            marker = decode_control(record.key, record.value)
            ended = waiting.pop(header.producer_id, [])
            if isinstance(marker, EndTxnMarker) and marker.committed:
                yield from ((one, header.next_offset) for one in ended)
        elif header.is_transactional:
            waiting[header.producer_id] += [(record.key, record.value) for record in records]
        else:
            yield from (((record.key, record.value), record.offset + 1) for record in records)


def _values(data: bytes) -> Iterator[Value]:
    for (_, value), settled in _settled(data):
        assert value is not None
        yield Value(int(value), settled)


def _offsets(data: bytes) -> Iterator[GroupOffset]:
    for (key, value), settled in _settled(data):
        one = decode(GROUP_TYPES, key, value)
        if isinstance(one.key, OffsetKey) and one.value is not None:
            yield GroupOffset(one.key, one.value.offset, settled)


BACKS_UP = Feature(
    extra="backups", settings=SETTINGS, activity=_BackedUp, looks=lambda invariants: (invariants.coordinators,)
)

"""What an open log knows of its producers and transactions is what a replay of the batches on its disk says.

- producers-equal-log: the epoch, the remembered batches, the coordinator's epoch and the open transaction of every
  producer, and the first open offset that readers see. No simulation runs for so long that a producer is forgotten.
- aborted-equal-log: the transaction indexes hold the transactions that a marker has aborted, and nothing else.

The replay goes on from where it was; it begins anew where the log was opened again or cut. Where the oldest segments
are gone, it knows only what came later, and compares that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.log_mirror import LogMirror
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog.ids import Offset
from quorumlog.records import parse_header
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_state import ProducerEntry, ProducerStates
from quorumlog_storage.producers.replay import marker_in
from quorumlog_storage.segment.transaction_index import AbortedTransaction


@dataclass(slots=True)
class _Replay:
    """base: where it began. end: batches before it were noted. cuts: of the log, when it began."""

    log: Log
    base: Offset
    cuts: int
    end: Offset
    states: ProducerStates = field(default_factory=ProducerStates)
    aborted: list[AbortedTransaction] = field(default_factory=list)


class ProducerInvariants(Invariant):
    """compared: how many entries of producers were."""

    def __init__(self, mirrors: Mirrors, findings: Findings) -> None:
        self._mirrors, self._findings = mirrors, findings
        self._replays: dict[str, dict[PartitionKey, _Replay]] = {}  # by host
        self.compared = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"producers compared": self.compared}

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        of_host = self._replays.setdefault(machine.host, {})
        for replica in changed:
            log = replica.log
            if log is None or log.failure is not None or log.producers is None:
                continue
            mirror = self._mirrors.of_replica(machine, replica)
            replay = of_host.get(replica.key)
            if replay is None or replay.log is not log or replay.cuts != log.cuts:
                replay = of_host[replica.key] = _Replay(log, mirror.base, log.cuts, mirror.base)
            elif replay.end == log.end_offset:
                continue
            _go_on(replay, mirror, log.end_offset)
            where = f"{replica.name} on {machine.host}, life {machine.life}, up to offset {replay.end}"
            self._compare_producers(where, replay)
            self._compare_aborted(where, replay)

    def _compare_producers(self, where: str, replay: _Replay) -> None:
        log = replay.log
        assert log.producers is not None
        is_whole = replay.base == 0
        known = log.producers.states.entries
        for producer_id, entry in replay.states.entries.items():
            self.compared += 1
            found = known.get(producer_id)
            if found is None or _comparable(found, is_whole) != _comparable(entry, is_whole):
                what = f"producer {producer_id} is {entry} by the log's batches, and {found} in its state"
                self._findings.broken("producers-equal-log", f"{where}: {what}")
        if is_whole and len(known) > len(replay.states.entries):
            self._findings.broken("producers-equal-log", f"{where}: {list(known)} are known, not all of them wrote")
        first_open = replay.states.transactions.unstable.first_open
        if is_whole and log.view.unstable.first_open != first_open:
            told = log.view.unstable.first_open
            self._findings.broken("producers-equal-log", f"{where}: open from {first_open}, readers see {told}")

    def _compare_aborted(self, where: str, replay: _Replay) -> None:
        view = replay.log.view
        indexes = [segment.transactions for segment in view.segments]
        if replay.base or not (replay.aborted or view.aborted) or not all(index.is_loaded for index in indexes):
            return  # an observer reads no disk
        found = [entry for index in indexes for entry in index.entries()]
        wanted = [entry for entry in replay.aborted if entry.last_offset >= view.bases[0]]
        if found != wanted:
            self._findings.broken("aborted-equal-log", f"{where}: {wanted} were aborted, the indexes hold {found}")


def _go_on(replay: _Replay, mirror: LogMirror, end: Offset) -> None:
    for batch in mirror.batches_between(replay.end, end):
        data = mirror.content(batch.base, batch.end)
        assert data is not None
        header = parse_header(data)
        ended = replay.states.note(header, marker_in(data) if header.is_control else None)
        if ended is not None and not ended.committed:
            replay.aborted.append(AbortedTransaction(*ended[:4]))
    replay.end = end


def _comparable(entry: ProducerEntry, is_whole: bool) -> object:
    """Without the times of batches: a snapshot holds that of a marker in place of the batch before it."""
    if not is_whole:
        return entry.epoch, entry.last_sequence, entry.last_offset
    batches = [(known.last_sequence, known.last_offset, known.offset_delta) for known in entry.batches]
    return entry.epoch, batches, entry.coordinator_epoch, entry.first_offset

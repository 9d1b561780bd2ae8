"""What coordinators of transactions decide, looked at in their live cores (numbers: invariants of the design).

- abort-keeps-the-epoch (27): a transaction that the coordinator aborts by itself, because it has timed out or a new
  producer has come, is aborted in a later epoch: its producer can do nothing more with it.
- fenced-without-a-reason: the epoch or the producer id of a transactional id changes with a call of InitProducerId or
  EndTxn, with the end of a transaction that has timed out, or with the markers of one whose epochs have run out. That
  of a joint transaction's child changes with BeginJoint, AbortJoint, its time-out or its group's decision.
- producer-id-of-two-ids (30): a producer id serves one transactional id, from when it is written.
- markers-forgotten (32): as long as a decision is not completed, its coordinator waits for markers; and either one of
  them is under way, or the transaction waits for its turn or for a leader.
- complete-without-a-marker (23): it is completed when each of its partitions has its marker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.reasons import because
from quorumlog.errors import ErrorCode
from quorumlog.records.coordinator.transactions import TransactionValue
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.coordinator.transactions.state.table import ONGOING, PREPARED

KEEPS, NO_REASON, FORGOTTEN = "abort-keeps-the-epoch", "fenced-without-a-reason", "markers-forgotten"
TOO_EARLY, TWO_IDS = "complete-without-a-marker", "producer-id-of-two-ids"
ABORTS, CHANGES = "aborts of coordinators", "epochs changed"


class Decisions:
    """counts: what was looked at."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.counts = {ABORTS: 0, CHANGES: 0}
        self._owners: dict[int, str] = {}  # of producer ids

    def listen(self, shard: TransactionShard) -> None:
        """Call once for each core."""
        reasons: list[str] = []
        ending: Any = shard._ending
        states: Any = shard._states
        self._listen_to_aborts(shard, ending)
        ending.call = because(reasons, ending.call, "EndTxn")
        initial: Any = shard._init
        initial.call = because(reasons, initial.call, "InitProducerId")
        core: Any = shard
        core._timed_out = because(reasons, core._timed_out, "time-out")
        completion: Any = shard._completion
        completion._complete = because(reasons, completion._complete, "complete")
        put = states.put

        def changed(transactional_id: str, value: TransactionValue, **named: Any) -> None:
            before = shard._table.get(transactional_id)
            if before is not None and _epoch(before) != _epoch(value):
                self.counts[CHANGES] += 1
                if not reasons:
                    self._findings.broken(NO_REASON, f"{transactional_id}: {_epoch(before)} -> {_epoch(value)}")
            self._own(transactional_id, value)
            put(transactional_id, value, **named)

        begin, preparing, commit = (cast(Any, part) for part in (shard._begin, shard._preparing, shard._commit))
        begin.call = because(reasons, begin.call, "BeginJoint")
        preparing.abort = because(reasons, preparing.abort, "the end of a child")
        commit.call = because(reasons, commit.call, "CommitJoint")
        states.put = changed
        self._listen_to_markers(shard, completion)

    def _own(self, transactional_id: str, value: TransactionValue) -> None:
        for producer_id in (value.producer_id, value.next_producer_id):
            owner = self._owners.setdefault(producer_id, transactional_id) if producer_id >= 0 else transactional_id
            if owner != transactional_id:
                self._findings.broken(TWO_IDS, f"{transactional_id} gets {producer_id}, which {owner} has")

    def _listen_to_aborts(self, shard: TransactionShard, ending: Any) -> None:
        fence: Callable[[str], ErrorCode] = ending.fence

        def fenced(transactional_id: str) -> ErrorCode:
            before = shard._table.get(transactional_id)
            error = fence(transactional_id)
            after = shard._table.get(transactional_id)
            if before is not None and after is not None and error == ErrorCode.NONE:
                self.counts[ABORTS] += 1
                if before.transaction_status == ONGOING and _epoch(after) <= _epoch(before):
                    text = f"{transactional_id} is aborted in {_epoch(after)}, and its producer has {_epoch(before)}"
                    self._findings.broken(KEEPS, text)
            return error

        ending.fence = fenced

    def _listen_to_markers(self, shard: TransactionShard, completion: Any) -> None:
        """Count the markers of each decision by what the core was told of them."""
        told: dict[str, set[Any]] = {}
        written, complete = completion.written, completion._complete

        def heard(transactional_id: str, producer_epoch: int, partition: Any) -> None:
            value = shard._table.get(transactional_id)
            is_this = value is not None and value.producer_epoch == producer_epoch
            if is_this and transactional_id in completion._missing:
                told.setdefault(transactional_id, set()).add(partition)
            written(transactional_id, producer_epoch, partition)

        def completed(transactional_id: str) -> None:
            value = shard._table.get(transactional_id)
            assert value is not None
            missing = sorted(shard._table.partitions(transactional_id) - told.pop(transactional_id, set()))
            if missing:
                text = f"{transactional_id} in {_epoch(value)} is complete without the markers of {missing}"
                self._findings.broken(TOO_EARLY, text)
            complete(transactional_id)

        completion.written, completion._complete = heard, completed

    def look(self, shard: TransactionShard, where: str) -> None:
        """At a core that is active, after a step."""
        completion: Any = shard._completion
        waited_for = {*completion._missing, *completion.given_up}
        for transactional_id, value in shard._table.items():
            if value.transaction_status not in PREPARED or transactional_id in waited_for:
                continue
            if shard._table.is_preparing(transactional_id) and _will_be_prepared(shard, transactional_id):
                continue
            if not shard._turn.is_pending(transactional_id):
                text = f"{where}: {transactional_id} in {_epoch(value)} is decided, and no marker of it is awaited"
                self._findings.broken(FORGOTTEN, text)

    def look_at_markers(self, shard: TransactionShard, where: str, is_under_way: Callable[[str], bool]) -> None:
        """At a core that is active, after any step. is_under_way: see `MarkerQueues`."""
        completion: Any = shard._completion
        for transactional_id in completion._missing:
            if not is_under_way(transactional_id) and transactional_id not in completion._waiting:
                self._findings.broken(FORGOTTEN, f"{where}: {transactional_id} waits for markers that nobody sends")


def _will_be_prepared(shard: TransactionShard, transactional_id: str) -> bool:
    """The Prepare record of a child whose group has decided is still to be written."""
    if not shard._turn.is_loaded_for_good:
        return True
    preparing = shard._preparing
    left = [*preparing._left, *((group, group.preparing) for group in preparing._new)]
    return any(group.ids[slot] == transactional_id for group, slots in left for slot in slots)


def _epoch(value: TransactionValue) -> tuple[int, int]:
    return value.producer_id, value.producer_epoch

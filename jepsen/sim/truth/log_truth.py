"""The committed content of one log of the cluster, known by looking at every disk at once.

Log matching: the same (offset, epoch) always ends the same bytes. What is committed once stays committed for ever: a
node that commits up to an offset must hold the same bytes there as all other nodes that did.
"""

from __future__ import annotations

from collections.abc import Callable

from jepsen.checkers.findings import Findings
from jepsen.sim.truth.log_mirror import Batch, LogMirror
from quorumlog.ids import NO_EPOCH, Epoch, Offset

OnGrowth = Callable[[LogMirror, Offset, Offset], None]  # a log that holds it, the end before, the end now


class LogTruth:
    """on_growth: called when more is committed.

    has_snapshots: the log may begin at every committed offset, because a snapshot stands for what was before it.
    """

    def __init__(self, name: str, findings: Findings) -> None:
        self.name = name
        self.has_snapshots = False
        self.end: Offset = 0  # exclusive end of what some node has committed
        self.deleted_before: Offset = 0  # the highest offset before which anyone, or a policy, lets records go
        self.on_growth: OnGrowth = lambda _mirror, _before, _after: None
        self._findings = findings
        self._chains: dict[Offset, bytes] = {0: b""}  # chains of committed batches, by end offset
        self._newest: dict[Offset, int] = {}  # largest timestamps of committed batches, by end offset
        self.epoch: Epoch = NO_EPOCH  # of the newest committed record
        self._committed_in: dict[Epoch, Offset] = {}  # exclusive end of what leaderships of each epoch have committed
        self._seen: dict[tuple[Offset, Epoch], tuple[bytes, str]] = {}  # every batch ever written: chain, host

    @property
    def chain(self) -> bytes:
        return self._chains[self.end]

    def chain_at(self, offset: Offset) -> bytes | None:
        """Of the committed records before it; None if no batch ends there."""
        return self._chains.get(offset)

    def chain_before(self, base: Offset) -> bytes:
        """For a log that begins at `base`: the chain of the committed records before it.

        A log may begin only where records were deleted; an offset inside a batch has no chain.
        """
        if self.has_snapshots:
            if base not in self._chains:
                what = f"{self.name}: a log begins at {base}; committed up to {self.end}"
                self._findings.broken("log-start-is-committed", what)
        elif base > self.deleted_before:
            what = f"{self.name}: a log begins at {base}"
            self._findings.broken("start-follows-deletions", f"{what}; nobody deleted beyond {self.deleted_before}")
        return self._chains.get(base, b"inside a batch")

    def newest_between(self, after: Offset, end: Offset) -> int:
        """The largest timestamp, in ms, of the committed batches that end in (after, end]; -1: there is none."""
        return max((newest for at, newest in self._newest.items() if after < at <= end), default=-1)

    def on_batch(self, batch: Batch, where: str) -> None:
        known = self._seen.setdefault((batch.end, batch.epoch), (batch.chain, where))
        if known[0] != batch.chain:
            what = f"{self.name}: the log up to {batch.end} of epoch {batch.epoch}"
            self._findings.broken("log-matching", f"{what} differs between {known[1]} and {where}")

    def on_committed(
        self, mirror: LogMirror, high_watermark: Offset, where: str, leader_epoch: Epoch = NO_EPOCH
    ) -> None:
        """The node `where` claims that everything below is committed.

        leader_epoch: of the leadership that commits it, which may be later than the epoch of the records; NO_EPOCH:
        that of the records.
        """
        batch = mirror.batch_before(high_watermark)
        if batch is None:
            if high_watermark > max(mirror.base, self.deleted_before):  # else it may lie inside the log's first batch
                self._findings.broken("committed-is-held", f"{where} has none of {self.name} up to {high_watermark}")
            return
        if batch.end <= self.end:
            self._compare(batch, where)
            return
        first = mirror.chain_at(self.end)
        if first != self.chain:
            what = f"{where} commits {self.name} up to {batch.end} on a log"
            self._findings.broken("committed-differs", f"{what} that differs from what was committed up to {self.end}")
            return
        for new in mirror.batches_between(self.end, batch.end):
            self._chains[new.end] = new.chain
            self._newest[new.end] = new.max_timestamp
            self.epoch = new.epoch
            committed_in = new.epoch if leader_epoch == NO_EPOCH else leader_epoch
            self._committed_in[committed_in] = max(new.end, self._committed_in.get(committed_in, 0))
        before, self.end = self.end, batch.end
        self.on_growth(mirror, before, self.end)

    def cut_to_prefix_of(self, mirror: LogMirror) -> None:
        """Forget the committed records after the last one that this log has. Only what a promise does not cover."""
        while self._chains and not mirror.agrees_at(self.end, self.chain):
            del self._chains[self.end]
            self.end = max(self._chains)
        self._committed_in = {epoch: min(end, self.end) for epoch, end in self._committed_in.items()}

    def is_held_by(self, mirror: LogMirror, end: Offset) -> bool:
        """True if all committed records are in this log. end: exclusive, of what its replica may acknowledge."""
        return end >= self.end and mirror.agrees_at(self.end, self.chain)

    def is_seen_by(self, mirror: LogMirror, epoch: Epoch) -> bool:
        """True if the log has all that leaderships of this epoch and older ones have committed, perhaps not synced."""
        end = self.end_of(epoch)
        return mirror.agrees_at(end, self._chains[end])

    def end_of(self, epoch: Epoch) -> Offset:
        """Exclusive end of what leaderships of this epoch and older ones have committed.

        A leader of epoch 0 may leave a record that the leader of epoch 2 commits: that of epoch 1 need not have it.
        """
        return max((end for of, end in self._committed_in.items() if of <= epoch), default=0)

    def _compare(self, batch: Batch, where: str) -> None:
        known = self._chains.get(batch.end)
        if known is not None and known != batch.chain:
            what = f"{where} commits {self.name} up to {batch.end}"
            self._findings.broken("committed-differs", f"{what} with other bytes than other nodes")

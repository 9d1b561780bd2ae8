"""Operations in turns of the loop: the first slice of each at once, then one slice a turn, in rotation.

A slice is one batch of the metadata log. It is decided and appended without a suspension in between, so slices take
effect in the order in which they are run. A slice that is larger than a batch is a transaction (transaction.py): its
batches are appended one by one, each when all before it is committed, and all operations wait until it is whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from quorumlog.clock import Clock
from quorumlog.errors import ApiError
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog_quorum.controller.core import Controller
from quorumlog_quorum.controller.engine.operation import Operation, Slice
from quorumlog_quorum.controller.engine.transaction import Transaction, in_batches
from quorumlog_quorum.raft.events import NotLeader

MAX_RECORDS_AHEAD = 2_000  # appended and not committed, above which no long operation goes on

_log = logging.getLogger("quorumlog.controller")


class MetadataDriver(Protocol):
    """What the controller needs of the quorum. quorumlog_quorum.node.driver.Driver has it.

    A protocol, so that the controller imports neither the disk nor the driver, which import what opens and calls.
    """

    @property
    def end_offset(self) -> Offset:
        """End of the log, appended or not yet synced, exclusive."""

    @property
    def high_watermark(self) -> Offset: ...

    @property
    def voter_ids(self) -> Iterable[NodeId]:
        """Of the voters in force."""

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        """One atomic batch; its end offset, exclusive. Synchronous. Raises NotLeader or ApiError: nothing was done."""

    @property
    def kraft_version(self) -> int: ...

    async def upgrade_kraft_version(self, *, validate_only: bool) -> None:
        """Raises ApiError, which says why it cannot."""

    def confirm_leadership(self) -> asyncio.Future[None]:
        """Done when this node has been the leader after the call. Raises ApiError if it is not, or may not be."""


class OperationRunner:
    """`driver` is set once, before the first call.

    on_not_leader: leadership is gone; it calls `Controller.resign`. on_later_end: an operation has ended after the turn
    in which it was submitted, so its lane is free.
    """

    def __init__(
        self,
        core: Controller,
        clock: Clock,
        *,
        on_not_leader: Callable[[], None],
        on_later_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.driver: MetadataDriver | None = None
        self._core = core
        self._clock = clock
        self._on_not_leader = on_not_leader
        self._on_later_end = on_later_end
        self._scheduled = False

    @property
    def high_watermark(self) -> Offset:
        return self._driver().high_watermark

    def submit(self, operation: Operation) -> None:
        """Run its first slice now, or when the operations before it in its lane have ended."""
        operation.submitted_ms = self._clock.now_ms()
        if self._core.queue.enter(operation):
            if self._core.transaction is None:
                self._advance(operation)
            else:
                self._core.queue.back(operation)
        self.schedule()

    def schedule(self) -> None:
        """Run a slice in the next turn, if an operation waits and the log is not too far ahead of its commit."""
        if self._scheduled or not (self._core.queue.has_next or self._core.transaction is not None):
            return
        allowed = MAX_RECORDS_AHEAD if self._core.transaction is None else 0
        if self._driver().end_offset - self.high_watermark > allowed:
            return  # called again when the high watermark moves
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self._core.transaction is not None:
            self._go_on_with(self._core.transaction)
            self.schedule()
            return
        operation = self._core.queue.next()
        if operation is None:
            return
        if not operation.begun and operation.caller is not None and operation.caller.gone:
            operation.drop()
            self._core.ended(operation)
        else:
            self._advance(operation)
        if operation.done:
            self._on_later_end()
        self.schedule()

    def _advance(self, operation: Operation) -> None:
        try:
            self._core.skip_to(self._driver().end_offset)
            piece = operation.next_slice(self._core.tip, self._clock.now_ms())
            level = min(self._core.tip.metadata_version, piece.delta.metadata_version)
            batches = in_batches(operation.name, piece.values, level, self._core.config)
            if len(batches) > 1:
                self._begin(Transaction(operation, piece, batches))
                return
            self._append(operation, piece)
        except NotLeader:
            self._drop_all(operation)
            return
        except ApiError as error:
            self._refuse(operation, error)
            return
        except Exception:  # our own mistake; its lane must not be blocked by it
            operation.drop()
            self._core.ended(operation)
            raise
        self._end_of_slice(operation)

    def _end_of_slice(self, operation: Operation) -> None:
        self._go_on(operation)
        elections = self._core.elections()
        if elections is not None:
            self._core.queue.back(elections)

    def _begin(self, transaction: Transaction) -> None:
        """Append the first batch. Raises NotLeader, ApiError: nothing was done."""
        self._append_next(transaction)
        self._core.transaction = transaction

    def _go_on_with(self, transaction: Transaction) -> None:
        """Append the next batch; after the last one the operation goes on."""
        operation = transaction.operation
        try:
            self._append_next(transaction)
        except NotLeader:
            self._on_not_leader()
            return
        if transaction.is_whole:
            self._core.transaction = None
            self._core.appended(operation, transaction.piece, self._driver().end_offset, self._clock.now_ms())
            self._end_of_slice(operation)
            if operation.done:
                self._on_later_end()

    def _append_next(self, transaction: Transaction) -> None:
        driver, epoch = self._driver(), self._core.epoch
        assert epoch is not None
        driver.append(epoch, transaction.next_batch)
        transaction.appended()
        self._core.idle.on_append(self._clock.now_ms())

    def _append(self, operation: Operation, piece: Slice) -> None:
        """Raises NotLeader, ApiError."""
        if not piece.records:
            return
        driver, epoch = self._driver(), self._core.epoch
        assert epoch is not None
        first = driver.end_offset
        assert first == self._core.tip.offset, f"{first} != {self._core.tip.offset}"
        end_offset = driver.append(epoch, piece.values)
        assert end_offset == first + len(piece.records), f"{end_offset} != {first} + {len(piece.records)}"
        self._core.appended(operation, piece, end_offset, self._clock.now_ms())
        for line in self._core.unclean.take_lines():
            _log.warning("%s", line)

    def _go_on(self, operation: Operation) -> None:
        caller = operation.caller
        if caller is not None and not operation.accepted and (operation.wrote or operation.done):
            operation.accepted = True
            caller.accepted()
        if not operation.done:
            self._core.queue.back(operation)
            return
        self._core.ended(operation)
        if operation.submitted_ms >= 0:
            self._core.counts.events.observe((self._clock.now_ms() - operation.submitted_ms) / 1000)
        if caller is not None:
            caller.performed(operation.response, self._core.tip, operation.wrote)

    def _refuse(self, operation: Operation, error: ApiError) -> None:
        assert not operation.wrote, f"{operation.name} was refused after it had written: {error.message}"
        operation.drop()
        self._core.ended(operation)
        if operation.caller is not None:
            operation.caller.refused(error)

    def _drop_all(self, operation: Operation) -> None:
        """`operation` is not in the queue if it has no lane."""
        self._on_not_leader()
        operation.drop()
        if operation.lane is None and operation.caller is not None:
            operation.caller.dropped(operation.wrote)

    def _driver(self) -> MetadataDriver:
        assert self.driver is not None, "driver is set before the first call"
        return self.driver

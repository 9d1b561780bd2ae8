"""Delivery of what is committed to the listeners: in order, once, and bounded by work.

What is read at once is bounded by bytes. What is done with it in one turn of the loop is bounded by the listener, which
returns its work as steps: a batch of 10,000 records, or a megabyte of them, must not hold up heartbeats and votes.
A listener that raises stops the node: it must not act on half an image.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from quorum.listener import RaftListener, Steps
from quorum.metadata_log import MetadataLog, OnError
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog.records import headers
from storage.worker import WorkerFull

CHUNK_BYTES = 1 << 20  # of one read; one batch is read even if it is larger
RETRY_MS = 5  # while the worker's queue of reads is full


class Delivery:
    """One read is under way at a time. `stopped` ends everything: what arrives later is dropped."""

    def __init__(
        self, log: MetadataLog, start_offset: Offset, listeners: Sequence[RaftListener], on_error: OnError
    ) -> None:
        self._log, self._listeners, self._on_error = log, listeners, on_error
        self._delivered = start_offset  # exclusive end
        self._target = start_offset
        self._claim: tuple[Epoch, Offset] | None = None  # announced once all records before its end are delivered
        self._claimed: Epoch | None = None
        self._reading = False
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True

    @property
    def delivered(self) -> Offset:
        """Exclusive end of what the listeners have been given."""
        return self._delivered

    def on_high_watermark(self, offset: Offset) -> None:
        self._target = max(self._target, offset)
        for listener in self._listeners:
            listener.on_high_watermark(offset)
        self._read_next()

    def on_claimed(self, epoch: Epoch, end_offset: Offset) -> None:
        self._claim = (epoch, end_offset)
        self._tell_claim()

    def on_lost(self, epoch: Epoch) -> None:
        """A claim that was never announced needs no `on_resign`."""
        self._claim = None
        if self._claimed == epoch:
            self._claimed = None
            for listener in self._listeners:
                listener.on_resign(epoch)

    def on_leader_changed(self, leader_id: NodeId, epoch: Epoch, endpoint: Endpoint | None) -> None:
        for listener in self._listeners:
            listener.on_leader_change(leader_id, epoch, endpoint)

    def _read_next(self) -> None:
        if self._reading or self.stopped or self._delivered >= self._target:
            return
        self._reading = True
        try:
            self._log.read(self._delivered, CHUNK_BYTES, self._target, self._on_read)
        except WorkerFull:
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._in_own_turn, self._read_again)

    def _read_again(self) -> None:
        self._reading = False
        self._read_next()

    def _on_read(self, batches: bytes) -> None:
        if self.stopped:
            return
        end_offset = headers(batches)[-1].next_offset
        assert self._delivered < end_offset <= self._target, (self._delivered, end_offset, self._target)
        self._advance(self._tell_all(batches, end_offset), end_offset)

    def _tell_all(self, batches: bytes, end_offset: Offset) -> Steps:
        """Run all steps of each listener, one listener after the other."""
        for listener in self._listeners:
            yield from listener.on_committed(batches, end_offset) or ()

    def _advance(self, steps: Steps, end_offset: Offset) -> None:
        """Run one step. The first one runs in the turn that read the batches, every other one in a turn of its own."""
        loop = asyncio.get_running_loop()
        if not next(steps, True):
            loop.call_soon(self._in_own_turn, self._advance, steps, end_offset)
            return
        self._delivered = end_offset
        self._tell_claim()
        if self._delivered < self._target:
            loop.call_soon(self._in_own_turn, self._read_again)
        else:
            self._reading = False  # only now: a call by a listener must not start the next read

    def _in_own_turn(self, action: Callable[..., None], *arguments: Any) -> None:
        if self.stopped:
            return
        try:
            action(*arguments)
        except Exception as error:
            self._on_error(error)

    def _tell_claim(self) -> None:
        if self._claim is not None and self._delivered >= self._claim[1]:
            (epoch, end_offset), self._claim = self._claim, None
            self._claimed = epoch
            for listener in self._listeners:
                listener.on_claim(epoch, end_offset)

"""Delivery of what is committed to those who live on it: in order, once, in pieces of bounded size.

A listener that raises stops the node: half an image is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quorum.listener import RaftListener
from quorum.metadata_log import MetadataLog, OnError
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.common import Endpoint
from quorumlog.records import headers
from storage.worker import WorkerFull

CHUNK_BYTES = 1 << 20  # of one delivery; one batch is delivered even if it is larger
RETRY_MS = 5  # while the worker's queue of reads is full


class Delivery:
    """One read is under way at a time. `stopped` ends everything: what arrives later is dropped."""

    def __init__(
        self, log: MetadataLog, start_offset: Offset, listeners: Sequence[RaftListener], on_error: OnError
    ) -> None:
        self._log, self._listeners, self._on_error = log, listeners, on_error
        self._delivered = start_offset  # exclusive end
        self._target = start_offset
        self._claim: tuple[Epoch, Offset] | None = None  # to be told once all before its end is delivered
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
        """A claim that was never told needs no end."""
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
            asyncio.get_running_loop().call_later(RETRY_MS / 1000, self._try_again)

    def _try_again(self) -> None:
        self._reading = False
        try:
            self._read_next()
        except Exception as error:
            self._on_error(error)

    def _on_read(self, batches: bytes) -> None:
        if self.stopped:
            return
        end_offset = headers(batches)[-1].next_offset
        assert self._delivered < end_offset <= self._target, (self._delivered, end_offset, self._target)
        self._delivered = end_offset
        for listener in self._listeners:
            listener.on_committed(batches, end_offset)
        self._reading = False  # not before all were told: a listener's own call must not bring the next piece
        self._tell_claim()
        self._read_next()

    def _tell_claim(self) -> None:
        if self._claim is not None and self._delivered >= self._claim[1]:
            (epoch, end_offset), self._claim = self._claim, None
            self._claimed = epoch
            for listener in self._listeners:
                listener.on_claim(epoch, end_offset)

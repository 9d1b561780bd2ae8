"""The requests of one connection that are being handled, oldest first, and the order in which their answers are sent.

Kafka promises that answers come in the order of the requests. Requests of an ordered type (Produce) are handled
together, since their handlers take their places in the log before they wait. Any other request begins when no other is
being handled, so that a connection produces one large answer at a time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from quorumlog.messages.buffer import Buffer
from quorumlog.rpc.serving.request_parts import Timing
from quorumlog.wire.protocol.codec import Frame
from quorumlog.wire.protocol.limits import WireLimits


class Running(Protocol):
    """A running handler: a task, or `TasklessHandler`."""

    def cancel(self) -> object: ...


@dataclass(slots=True)
class Slot:
    """One request. answer: None until it is ready; empty: nothing is sent. last: the connection ends after this answer.

    granted_bytes: how much a fetch may answer with; 0 once it has answered. goes_on: the connection is gone, and the
    handler still holds the request. timing: None: nobody asks how long it takes.
    """

    size_bytes: int
    ordered: bool
    answer: Frame | None = None
    last: bool = False
    granted_bytes: int = 0
    running: Running | None = None
    goes_on: bool = False
    timing: Timing | None = None


class Answering:
    def __init__(self, limits: WireLimits) -> None:
        self._limits = limits
        self._slots: deque[Slot] = deque()
        self.handled_bytes = 0
        self.taken: list[Timing] = []  # of the answers that `take` has returned, until the owner takes these

    def __len__(self) -> int:
        return len(self._slots)

    def has_room(self, ordered: bool) -> bool:
        """A request (ordered: of an ordered type) may begin now."""
        if not self._slots:
            return True
        if not ordered or not self._slots[-1].ordered:
            return False
        return len(self._slots) < self._limits.max_handled_requests and (
            self.handled_bytes < self._limits.max_handled_bytes
        )

    def begin(self, size_bytes: int, ordered: bool) -> Slot:
        assert self.has_room(ordered)
        slot = Slot(size_bytes, ordered)
        self._slots.append(slot)
        self.handled_bytes += size_bytes
        return slot

    def take(self) -> tuple[list[Buffer], int, bool]:
        """Remove what may be sent now: the buffers of all answers before the first that is missing, the bytes of their
        requests, and whether the connection ends after them."""
        buffers: list[Buffer] = []
        done_bytes = 0
        while self._slots and self._slots[0].answer is not None:
            slot = self._slots.popleft()
            done_bytes += slot.size_bytes
            self.handled_bytes -= slot.size_bytes
            buffers += slot.answer or ()
            if slot.timing is not None:
                self.taken.append(slot.timing)
            if slot.last:
                return buffers, done_bytes, True
        return buffers, done_bytes, False

    @property
    def is_due(self) -> bool:
        """An answer may be sent."""
        return bool(self._slots) and self._slots[0].answer is not None

    def stop(self) -> None:
        """Cancel the handlers."""
        for slot in list(self._slots):
            _stop(slot)

    def leave(self) -> list[Slot]:
        """The connection is gone: forget all slots, which are returned.

        Handlers are cancelled, but not those of ordered requests: their records are on their way into the log, and hold
        the whole frame until they are there, whoever listens.
        """
        slots = list(self._slots)
        self._slots.clear()
        self.handled_bytes = 0
        for slot in slots:
            slot.goes_on = slot.ordered and slot.answer is None and slot.running is not None
            if not slot.goes_on:
                _stop(slot)
        return slots


def _stop(slot: Slot) -> None:
    running, slot.running = slot.running, None
    if running is not None:
        running.cancel()

"""One operation of the controller: a request, or something that time or a proof of death asks for.

It is carried out in slices. The log is sound after each record, so it is sound after each slice, too, and an operation
may be dropped between two of them. That happens when leadership is lost; what it leaves undone is done again:

- a broker half fenced is still unfenced: its session at the next controller ends, and fences the rest;
- a controlled shutdown, a failed directory and a registration are repeated by the broker, heartbeat by heartbeat;
- elections that are missing are held at each activation;
- any other caller learns that the outcome is unknown, or is told to ask the next controller.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from quorumlog.errors import ApiError
from quorumlog.ids import NodeId
from quorumlog.messages.metadata_records import ChangedByRecord, MetadataRecord
from quorumlog.security.quota.mutations import UNLIMITED, Permits
from quorumlog.slices import Sliced
from quorumlog_quorum.controller.engine.controller_state import ControllerState
from quorumlog_quorum.controller.engine.draft import Draft
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image

Lane = Hashable  # operations of one lane run one after the other, in the order of their calls
CONFIG_LANE: Lane = "settings"
ACL_LANE: Lane = "access rules"


def broker_lane(broker_id: NodeId) -> Lane:
    """The lane of operations that change this broker's registration, or that it requests for its partitions."""
    return ("broker", broker_id)


class Caller(Protocol):
    """The request behind an operation; the methods report the operation's progress to it.

    A protocol, so that the engine does not import the shell, whose `Call` it is.
    """

    @property
    def gone(self) -> bool:
        """Whether the caller has stopped waiting. An operation that has not begun is then dropped."""

    def accepted(self) -> None:
        """The first record is appended, or there is none: nothing is refused any more."""

    def refused(self, error: ApiError) -> None:
        """Nothing was written."""

    def performed(self, response: Any, tip: Image, wrote: bool) -> None:
        """The last record is appended; the response may be sent once all of `tip` is committed.

        wrote: one of these records is this operation's own.
        """

    def dropped(self, wrote: bool) -> None:
        """Leadership is lost. wrote: some of its records may survive."""


@dataclass(frozen=True, slots=True)
class Slice:
    """records: to be appended in this order, in one batch; none: nothing changes. values: the same, encoded.

    delta: the same, on the tip.
    """

    records: list[MetadataRecord]
    values: list[bytes]
    delta: Delta


class Operation:
    """Call `next_slice` until `done`. lane: None if it never waits for another. wrote: a record was appended.

    permits: what the client that asks for it may make and delete.
    changed_by: who asked for it, the last record of each slice; None: a node, for itself, or the controller.
    """

    def __init__(
        self,
        name: str,
        perform: Callable[[Draft], Sliced[Any]],
        state: ControllerState,
        lane: Lane | None = None,
        caller: Caller | None = None,
        permits: Permits = UNLIMITED,
        changed_by: ChangedByRecord | None = None,
    ) -> None:
        self.name = name
        self.lane = lane
        self.caller = caller
        self.begun = False
        self.wrote = False
        self.accepted = False  # and its caller knows
        self.done = False
        self.submitted_ms = -1  # by the runner; -1: it was not
        self.response: Any = None
        self._state, self._permits = state, permits
        self._perform = perform
        self._changed_by = changed_by
        self._draft: Draft | None = None  # until the first slice: most operations are heartbeats, and have one
        self._slices: Sliced[Any] | None = None  # likewise

    def next_slice(self, tip: Image, now_ms: int) -> Slice:
        """Raises ApiError if the operation is refused, which ends it; that can happen only before its first record."""
        assert not self.done
        if self._draft is None or self._slices is None:
            self._draft = Draft(self._state, tip, now_ms, self._permits)
            self._slices = self._perform(self._draft)
        else:
            self._draft.begin(tip, now_ms)
        self.begun = True
        try:
            next(self._slices)
        except StopIteration as end:
            self.done, self.response = True, end.value
        except ApiError:
            assert not self.wrote, f"{self.name} was refused after it had written"
            raise
        if self._changed_by is not None:
            self._draft.sign(self._changed_by)
        return Slice(self._draft.records, self._draft.values, self._draft.delta)

    def drop(self) -> None:
        """End the operation where it is; nothing of it stays pending."""
        self.done = True
        if self._slices is not None:
            self._slices.close()


def in_one_slice(perform: Callable[[Draft], Any]) -> Callable[[Draft], Sliced[Any]]:
    """An atomic operation: all its records are in one batch."""

    def slices(draft: Draft) -> Sliced[Any]:
        yield from ()
        return perform(draft)

    return slices

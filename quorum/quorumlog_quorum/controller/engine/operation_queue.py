"""Which operation's turn it is. Pure.

An operation runs its first slice at once, in the order of calls, unless another one is under way in its lane. All
further slices are run one a turn, in rotation, so that a long operation does not delay the others. Lanes:

- one for each broker: its registration, its heartbeats, its changes of ISRs and directories, its fencing. A new
  process of a broker that is being fenced is registered when that is done; a broker is never fenced twice at once.
- one for changes of settings.

Everything else has no lane, and takes one slice.
"""

from __future__ import annotations

from collections import deque

from quorumlog_quorum.controller.engine.operation import Lane, Operation


class OperationQueue:
    def __init__(self) -> None:
        self._rotation: deque[Operation] = deque()
        self._lanes: dict[Lane, deque[Operation]] = {}  # the first of each is under way

    def __len__(self) -> int:
        """Operations under way or waiting. The one that is being advanced counts only if it has a lane."""
        waiting = sum(len(lane) - 1 for lane in self._lanes.values())
        return len(self._rotation) + waiting

    @property
    def has_next(self) -> bool:
        return bool(self._rotation)

    def is_busy(self, lane: Lane) -> bool:
        return lane in self._lanes

    def enter(self, operation: Operation) -> bool:
        """True: the caller runs it now and then calls `back` or `leave`. False: it waits in its lane."""
        if operation.lane is None:
            return True
        lane = self._lanes.setdefault(operation.lane, deque())
        lane.append(operation)
        return len(lane) == 1

    def next(self) -> Operation | None:
        """The operation to advance; the caller then calls `back` or `leave`."""
        return self._rotation.popleft() if self._rotation else None

    def back(self, operation: Operation) -> None:
        """Queue an operation for a later turn: it has more to do or, without a lane, has not begun."""
        self._rotation.append(operation)

    def leave(self, operation: Operation) -> None:
        """Remove an operation that has ended; the next one of its lane gets its turn."""
        if operation.lane is None:
            return
        lane = self._lanes[operation.lane]
        assert lane[0] is operation, f"{operation.name} ends out of turn"
        lane.popleft()
        if lane:
            self._rotation.append(lane[0])
        else:
            del self._lanes[operation.lane]

    def clear(self) -> list[Operation]:
        """Remove all operations and return them: first those that have begun, then those that wait."""
        found = dict.fromkeys(self._rotation)
        for lane in self._lanes.values():
            found.update(dict.fromkeys(lane))
        self._rotation.clear()
        self._lanes.clear()
        return list(found)

"""Calls its listeners when this broker begins and ends to lead a partition. Coordinators of internal topics can use it.

For each partition, every listener gets `elected` and `resigned` in turn. A `resigned` has the epoch of the `elected`
before it; epochs rise. A leadership that ends before its log is ready causes no call.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from quorumlog.ids import Epoch
from quorumlog_broker.partition.events import LeaderElected, LeadershipLost
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica


class LeadershipListener(Protocol):
    """Called on the loop; long work, such as reading the log, has to be started as a task.

    It keeps an arrow from running up: `quorumlog_broker.coordinator`, whose `Coordinators` listen, stands on this room.
    """

    def elected(self, replica: Replica, leader_epoch: Epoch) -> None:
        """This broker leads the partition. Its log is open, the epoch is assigned in it, and it takes appends."""

    def resigned(self, replica: Replica, leader_epoch: Epoch) -> None:
        """That leadership is over: a new epoch, another leader, a deleted topic, a failed directory, or a stop."""


class LeadershipListeners:
    def __init__(self) -> None:
        self._listeners: tuple[LeadershipListener, ...] = ()
        self._led: dict[PartitionKey, tuple[Replica, Epoch]] = {}  # elected and not resigned, in order of election
        self._calls: deque[tuple[Replica, Epoch, bool]] = deque()  # True: elected, False: resigned
        self._telling = False

    def add(self, listener: LeadershipListener) -> None:
        """Must be called before the broker starts, so that no election is missed."""
        assert not self._led, "a listener was added after the first election"
        self._listeners = (*self._listeners, listener)

    def on_elected(self, replica: Replica, effect: LeaderElected) -> None:
        assert replica.key not in self._led, f"{replica.name} was elected twice without a resignation"
        self._led[replica.key] = (replica, effect.leader_epoch)
        self._tell(replica, effect.leader_epoch, True)

    def on_lost(self, replica: Replica, _effect: LeadershipLost) -> None:
        led = self._led.pop(replica.key, None)
        if led is not None:
            self._tell(*led, False)

    def close(self) -> None:
        """The broker stops: report a resignation for every leadership."""
        for replica, epoch in list(self._led.values()):
            self._tell(replica, epoch, False)
        self._led.clear()

    def _tell(self, replica: Replica, epoch: Epoch, elected: bool) -> None:
        """If a listener causes the next change at once, all listeners get this call before that one."""
        self._calls.append((replica, epoch, elected))
        if self._telling:
            return
        self._telling = True
        try:
            while self._calls:
                self._tell_all(*self._calls.popleft())
        finally:
            self._telling = False

    def _tell_all(self, replica: Replica, epoch: Epoch, elected: bool) -> None:
        for listener in self._listeners:
            if elected:
                listener.elected(replica, epoch)
            else:
                listener.resigned(replica, epoch)

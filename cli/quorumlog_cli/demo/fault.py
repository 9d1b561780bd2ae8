"""The fault during the load: the leader of the quorum is killed, and started again later."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.ids import NO_NODE, NodeId
from quorumlog.testing import LocalCluster
from quorumlog.testing.waiting import wait_until

KILL_AT = 1 / 3  # share of the rows acknowledged
RESTART_AT = 2 / 3
STEP_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Moment:
    """when: time.monotonic(), in s."""

    when: float
    what: str


class LeaderKill:
    """Runs in its own thread beside the load, which reports its progress."""

    def __init__(self, cluster: LocalCluster, rows: int, say: Callable[[str], None]) -> None:
        self.moments: list[Moment] = []
        self.killed: NodeId | None = None
        self._cluster = cluster
        self._rows = rows
        self._say = say
        self._given_up = False
        self._time_to_kill = threading.Event()
        self._time_to_restart = threading.Event()

    def on_acknowledged(self, rows: int) -> None:
        if rows >= self._rows * KILL_AT:
            self._time_to_kill.set()
        if rows >= self._rows * RESTART_AT:
            self._time_to_restart.set()

    def give_up(self) -> None:
        """The load has failed: do nothing more and stop waiting."""
        self._given_up = True
        self._time_to_kill.set()
        self._time_to_restart.set()

    def run(self) -> None:
        """Raises TimedOut, NodeEnded and the client's errors."""
        self._time_to_kill.wait()
        if self._given_up:
            return
        leader = wait_until(self._leader, STEP_TIMEOUT_S, "a leader of the quorum")
        self._cluster.kill(leader)
        self.killed = leader
        killed_at = self._note(f"kill -9 node {leader}, which leads the quorum")
        successor = wait_until(lambda: self._leader(but_not=leader), STEP_TIMEOUT_S, "a new leader of the quorum")
        self._note(f"node {successor} leads the quorum, {time.monotonic() - killed_at:.2f} s later")
        self._time_to_restart.wait()
        restarted_at = self._note(f"node {leader} is started again")
        self._cluster.restart(leader, STEP_TIMEOUT_S)
        self._note(f"node {leader} serves, {time.monotonic() - restarted_at:.2f} s later")

    def _leader(self, but_not: NodeId = NO_NODE) -> NodeId | None:
        leader = self._cluster.client.admin.describe_quorum().leader_id
        return None if leader in (NO_NODE, but_not) else leader

    def _note(self, what: str) -> float:
        moment = Moment(time.monotonic(), what)
        self.moments.append(moment)
        self._say(what)
        return moment.when

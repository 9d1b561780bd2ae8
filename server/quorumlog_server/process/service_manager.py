"""What this process tells the service manager that has started it (sd_notify(3), `Type=notify` of systemd).

    READY=1               once it listens and has opened its logs; also where only the others of the quorum are missing,
                          for a host's start must not wait for other hosts
    STATUS=               one line: what it is at
    EXTEND_TIMEOUT_USEC=  while it starts or stops and gets somewhere: so much longer than now
    STOPPING=1            from the first signal
    WATCHDOG=1            at each look: so the loop turns (`WatchdogSec=`)

`Telling` is pure: what is seen and the time go in, a datagram comes out. A node that is not started by such a manager
does not load this module.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from quorumlog_server.process.health import NO_LEADER, opening, why_not_ready, why_not_stopped
from quorumlog_server.process.node import Node

LOOK_S = 1.0
EXTEND_S = 60.0  # without progress for so long, it may be ended
ALONE_S = 10.0  # so long it waits for a leader of the quorum before it says that only the others are missing
MAX_STATUS = 300  # characters
NOTIFY_SOCKET, WATCHDOG_USEC = "NOTIFY_SOCKET", "WATCHDOG_USEC"  # environment variables

_log = logging.getLogger("quorumlog.node")


class Phase(Enum):
    STARTING = auto()
    SERVING = auto()
    STOPPING = auto()


@dataclass(frozen=True, slots=True)
class Seen:
    """status: what the node is at, in a line. progress: differs whenever it has got further."""

    phase: Phase
    status: str
    progress: str


class Telling:
    """What is told when. watchdog_s: the manager ends the process after so long without a word; None: never."""

    def __init__(self, watchdog_s: float | None = None) -> None:
        self.look_s = LOOK_S if watchdog_s is None else min(LOOK_S, watchdog_s / 3)
        self._has_watchdog = watchdog_s is not None
        self._last: Seen | None = None
        self._is_ready = False

    def look(self, seen: Seen) -> list[str]:
        """Lines of one datagram; none: there is nothing to tell."""
        lines, last = [], self._last
        if seen.phase is Phase.SERVING and not self._is_ready:
            self._is_ready = True
            lines.append("READY=1")
        if seen.phase is Phase.STOPPING and (last is None or last.phase is not Phase.STOPPING):
            lines.append("STOPPING=1")
        if last is None or seen.status != last.status:
            lines.append(f"STATUS={' '.join(seen.status.split())[:MAX_STATUS]}")
        has_moved = last is None or seen.phase is not last.phase or seen.progress != last.progress
        is_timed = seen.phase is Phase.STOPPING or (seen.phase is Phase.STARTING and not self._is_ready)
        if has_moved and is_timed:
            lines.append(f"EXTEND_TIMEOUT_USEC={int(EXTEND_S * 1_000_000)}")
        if self._has_watchdog:
            lines.append("WATCHDOG=1")
        self._last = seen
        return lines


class NodeView:
    """Sees a node as a manager asks about it. is_stopping: a signal has come. now_s: a clock."""

    def __init__(self, node: Node, is_stopping: Callable[[], bool], now_s: Callable[[], float]) -> None:
        self._node, self._is_stopping, self._now_s = node, is_stopping, now_s
        self._alone_since_s: float | None = None

    def look(self) -> Seen:
        node = self._node
        if self._is_stopping():
            waits_for = why_not_stopped(node)
            return Seen(Phase.STOPPING, f"stopping: {waits_for}" if waits_for else "stopping", waits_for)
        if node.ready:
            lost = node.loader.active_controller is None
            return Seen(Phase.SERVING, f"ready, but {NO_LEADER}" if lost else "ready", "")
        why, logs = why_not_ready(node), opening(node)
        status = f"{why}: {'; '.join(logs)}" if logs else why
        is_alone = why == NO_LEADER and not logs and bool(node.addresses)
        if not is_alone:
            self._alone_since_s = None
        elif self._alone_since_s is None:
            self._alone_since_s = self._now_s()
        has_waited = self._alone_since_s is not None and self._now_s() - self._alone_since_s >= ALONE_S
        silent = sorted(node.unanswered_directories)  # for how long is no progress of theirs
        progress = f"{silent} do not answer" if silent else status
        return Seen(Phase.SERVING if has_waited else Phase.STARTING, status, progress)


class ServiceManager:
    """The end of a socket to it. Nothing raises where it is gone: the node goes on."""

    def __init__(self, address: str) -> None:
        """address: of a datagram socket of Unix; one that begins with `@` is abstract."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._has_failed = False

    def send(self, lines: list[str]) -> None:
        if not lines:
            return
        try:
            self._socket.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            if not self._has_failed:
                _log.warning("the service manager at %s hears nothing: %s", self._address, error)
            self._has_failed = True

    def close(self) -> None:
        self._socket.close()


async def tell(node: Node, environ: Mapping[str, str], is_stopping: Callable[[], bool]) -> None:
    """Until it is cancelled. environ: with NOTIFY_SOCKET."""
    manager, telling = ServiceManager(environ[NOTIFY_SOCKET]), Telling(watchdog_s_of(environ))
    view = NodeView(node, is_stopping, asyncio.get_running_loop().time)
    try:
        while True:
            manager.send(telling.look(view.look()))
            await asyncio.sleep(telling.look_s)
    finally:
        manager.close()


def watchdog_s_of(environ: Mapping[str, str]) -> float | None:
    text = environ.get(WATCHDOG_USEC, "")
    return int(text) / 1_000_000 if text.isascii() and text.isdigit() and int(text) > 0 else None

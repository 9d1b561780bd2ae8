"""One node's event loop on virtual time: asyncio's own futures, tasks, queues and timeouts run on it unchanged.

Every handle goes through the cluster's scheduler, so that all nodes share one order of events. A node can be killed
(nothing of it ever runs again, no `finally` either) and paused (SIGSTOP: what becomes due waits; on resume comes first
what was ready, then what was received, then overdue timers: RELIABILITY 6.2, 20).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar

from jepsen.sim import killed_coroutines
from jepsen.sim.scheduler import NS_PER_S, Scheduler, Timer
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.transport import Address

if TYPE_CHECKING:
    from jepsen.sim.sim_socket import Factory, SimSockets

T = TypeVar("T")

_READY, _RECEIVED, _OVERDUE = 0, 1, 2  # the order in which a resumed node finds what waits for it
_TASKS_SWEPT = 256  # the first sweep of finished tasks


class Stuck(Exception):
    """Nothing is left to do, and what was waited for has not happened."""


class SimHandle(asyncio.TimerHandle):
    """A callback that the scheduler holds; cancelling it takes it out there."""

    __slots__ = ("number", "timer")

    number: int  # of its loop; asyncio's handles are equal when they look alike, so they cannot name themselves
    timer: Timer | None

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        super().cancel()


_Base: Any = asyncio.AbstractEventLoop  # whose pipes and threads stay "not implemented"


class SimLoop(_Base):  # type: ignore[misc]
    """on_error: told of what asyncio reports as unhandled; the default raises, which ends the simulation."""

    def __init__(
        self, scheduler: Scheduler, node: str, *, on_error: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self.scheduler, self.node = scheduler, node
        self.alive, self.paused = True, False
        self.complaints: list[str] = []  # of destructors, whose exceptions nobody can catch
        self._on_error = on_error or self._raise
        self._parked: list[tuple[int, int, SimHandle]] = []  # what became due during a pause: (order, number, handle)
        self._handles: dict[int, SimHandle] = {}  # all that may still run, by number
        self._next_number = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_sweep_at = _TASKS_SWEPT
        self._death = Closing()
        self.sockets: SimSockets | None = None  # set by who gives this node a network

    # ---- the life of a node

    def kill(self) -> None:
        """The process is gone: nothing that it had planned happens. Idempotent."""
        if not self.alive:
            return
        self.alive = False
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        killed_coroutines.bury(self._tasks, self._handles, self._parked)
        for handle in self._handles.values():
            if handle.timer is not None:
                handle.timer.cancel()
        self._handles, self._parked, self._tasks = {}, [], []
        self._death.close()

    def on_kill(self, callback: Callable[[], None]) -> None:
        self._death.on_closed(callback)

    def pause(self) -> None:
        assert self.alive
        self.paused = True

    def resume(self) -> None:
        if not self.paused or not self.alive:
            return
        self.paused = False
        parked, self._parked = sorted(self._parked, key=lambda entry: entry[:2]), []
        for _, _, handle in parked:
            self._schedule(handle, self.scheduler.now_ns, _READY)

    def deliver(self, callback: Callable[..., object], *args: Any) -> None:
        """What comes from outside: a message, the end of a disk operation. Dropped by a dead node."""
        self._add(self.scheduler.now_ns, callback, args, None, _RECEIVED)

    def deliver_later(self, delay_ns: int, callback: Callable[[], object]) -> None:
        """The seam of `SimWorker`: what a disk does takes virtual time, and its end is delivered."""
        self._add(self.scheduler.now_ns + delay_ns, callback, (), None, _RECEIVED)

    # ---- asyncio's side

    def time(self) -> float:
        return self.scheduler.now_ns / NS_PER_S

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        return self._add(self.scheduler.now_ns, callback, args, context, _READY)

    call_soon_threadsafe = call_soon  # there is one thread

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Never early by `time()`: a wait for what is left of a delay always moves time on."""
        when_ns = math.ceil(when * NS_PER_S)
        if when > self.time():
            when_ns = max(when_ns, self.scheduler.now_ns + 1)
        return self._add(when_ns, callback, args, context, _OVERDUE)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, T] | Generator[Any, None, T], **kwargs: Any) -> asyncio.Task[T]:
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, **kwargs)
        if self.alive:
            self._remember(task)
        else:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            killed_coroutines.bury(task)
        return task

    async def create_connection(self, factory: Factory, host: str, port: int) -> Any:
        assert self.sockets is not None, f"{self.node} has no sockets"
        return await self.sockets.connect(factory, Address(host, port))

    async def create_server(self, factory: Factory, host: str, port: int, **_options: Any) -> Any:
        assert self.sockets is not None, f"{self.node} has no sockets"
        return self.sockets.listen(factory, Address(host, port))

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        return not self.alive

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self.alive:
            self._on_error(context)

    def run_until_complete(self, future: Any, limit_ns: int | None = None) -> Any:
        """Run the whole cluster until `future` is done. Raises Stuck if that cannot come, or not by `limit_ns`."""
        task = asyncio.ensure_future(future, loop=self)
        while not task.done():
            late = limit_ns is not None and (self.scheduler.next_ns() or 0) > limit_ns
            if late or not self.scheduler.step():
                raise Stuck(f"{self.node}: {task!r} at {self.scheduler.now_ns} ns")
        return task.result()

    # ---- within

    def _add(
        self, when_ns: int, callback: Callable[..., object], args: Any, context: Context | None, order: int
    ) -> SimHandle:
        handle = SimHandle(when_ns / NS_PER_S, callback, args, self, context)
        handle.timer = None
        handle.number = self._next_number
        self._next_number += 1
        if self.alive:
            self._handles[handle.number] = handle
            self._schedule(handle, when_ns, order)
        else:
            killed_coroutines.bury(handle)
        return handle

    def _schedule(self, handle: SimHandle, when_ns: int, order: int) -> None:
        handle.timer = self.scheduler.call_at(when_ns, lambda: self._run(handle, order))

    def _run(self, handle: SimHandle, order: int) -> None:
        if not self.alive or handle.cancelled():
            return
        if self.paused:
            self._parked.append((order, self.scheduler.steps, handle))
            return
        del self._handles[handle.number]
        if order == _OVERDUE:
            self.scheduler.record(self.node, "timer")
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            handle._run()
        finally:
            asyncio._set_running_loop(before)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Asked for by asyncio's handles."""
        assert isinstance(handle, SimHandle)
        self._handles.pop(handle.number, None)

    def _remember(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if len(self._tasks) >= self._tasks_sweep_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks_sweep_at = max(_TASKS_SWEPT, 2 * len(self._tasks))

    def _raise(self, context: dict[str, Any]) -> None:
        if "handle" not in context:
            self.complaints.append(str(context.get("message")))
            return
        raise RuntimeError(f"{self.node}: {context.get('message')}") from context.get("exception")

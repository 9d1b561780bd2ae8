"""One node's event loop on virtual time. asyncio's own futures, tasks, queues and timeouts run on it unchanged.

Every handle goes through the cluster's scheduler, so that all nodes share one order of events. A node can be killed
(none of its code runs again, not even `finally`) and paused (SIGSTOP: due handles wait; on resume ready handles run
first, then received messages, then overdue timers).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler, Timer
from quorumlog.rpc.closing import Closing
from quorumlog.rpc.transport import Address

if TYPE_CHECKING:
    from jepsen.sim.network.sockets import Factory, SimSockets

T = TypeVar("T")

_READY, _RECEIVED, _OVERDUE = 0, 1, 2  # the order in which a resumed node runs its waiting handles
_TASKS_SWEPT = 256  # number of tasks at which finished ones are first removed


class Stuck(Exception):
    """No event is left, but the awaited future is not done."""


class SimHandle:
    """A callback in the scheduler, as asyncio's handles are for their callers. Cancelling it removes it from there.

    number: unique in its loop. timer: None until it is scheduled, and on a loop that was dead before.
    """

    __slots__ = ("_args", "_callback", "_context", "_loop", "_when_ns", "number", "timer")

    def __init__(
        self,
        loop: SimLoop,
        number: int,
        when_ns: int,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self._loop, self.number, self._when_ns = loop, number, when_ns
        self._callback: Callable[..., object] | None = callback  # None: cancelled
        self._args = args
        self._context = copy_context() if context is None else context
        self.timer: Timer | None = None

    def when(self) -> float:
        return self._when_ns / NS_PER_S

    def cancelled(self) -> bool:
        return self._callback is None

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self._callback is not None:
            self._callback, self._args = None, ()
            self._loop.on_cancelled(self)

    def run(self) -> None:
        callback = self._callback
        assert callback is not None
        try:
            self._context.run(callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            name = getattr(callback, "__qualname__", type(callback).__name__)
            told = {"message": f"Exception in callback {name}", "exception": error, "handle": self}
            self._loop.call_exception_handler(told)


_Base: Any = asyncio.AbstractEventLoop  # its pipes and threads stay unimplemented


class SimLoop(_Base):  # type: ignore[misc]
    """on_error: called with errors that asyncio reports as unhandled. The default raises and ends the simulation."""

    def __init__(
        self, scheduler: Scheduler, node: str, *, on_error: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self.scheduler, self.node = scheduler, node
        self.alive, self.paused = True, False
        self.complaints: list[str] = []  # messages from destructors, whose exceptions cannot be caught
        self._on_error = on_error or self._raise
        self._parked: list[tuple[int, int, SimHandle]] = []  # due during a pause: (order, number, handle)
        self._handles: dict[int, SimHandle] = {}  # all pending handles, by number
        self._next_number = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_sweep_at = _TASKS_SWEPT
        self._death = Closing()
        self.sockets: SimSockets | None = None  # set when the node gets a network
        killed_coroutines.is_born(self)

    # ---- the life of a node

    def kill(self) -> None:
        """The process ends: none of its pending handles runs. Idempotent."""
        if not self.alive:
            return
        self.alive = False
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        killed_coroutines.keep(self._tasks, self._handles, self._parked)
        for handle in self._handles.values():
            if handle.timer is not None:
                handle.timer.cancel()
        self._handles, self._parked, self._tasks = {}, [], []
        killed_coroutines.is_dead(self)
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
        """Run a callback for an outside event: a message, or the end of a disk operation. A dead node ignores it."""
        self._add(self.scheduler.now_ns, callback, args, None, _RECEIVED)

    def deliver_later(self, delay_ns: int, callback: Callable[[], object]) -> None:
        """For `SimWorker`: a disk operation takes virtual time, and its end is delivered as an event."""
        self._add(self.scheduler.now_ns + delay_ns, callback, (), None, _RECEIVED)

    # ---- asyncio's side

    def time(self) -> float:
        return self.scheduler.now_ns / NS_PER_S

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> SimHandle:
        return self._add(self.scheduler.now_ns, callback, args, context, _READY)

    call_soon_threadsafe = call_soon  # there is only one thread

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> SimHandle:
        """Never early by `time()`, so that waiting for the rest of a delay always advances time."""
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
            killed_coroutines.keep(task)
        return task

    async def create_connection(self, factory: Factory, host: str, port: int) -> Any:
        assert self.sockets is not None, f"{self.node} has no sockets"
        return await self.sockets.connect(factory, Address(host, port))

    async def create_server(
        self, factory: Factory, host: str, port: int, *, start_serving: bool = True, **_options: Any
    ) -> Any:
        assert self.sockets is not None, f"{self.node} has no sockets"
        return self.sockets.listen(factory, Address(host, port), start_serving)

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
        """Run the whole cluster until `future` is done. Raises Stuck if that cannot happen, or not by `limit_ns`."""
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
        handle = SimHandle(self, self._next_number, when_ns, callback, args, context)
        self._next_number += 1
        if self.alive:
            self._handles[handle.number] = handle
            self._schedule(handle, when_ns, order)
        else:
            killed_coroutines.keep(handle)
        return handle

    def _schedule(self, handle: SimHandle, when_ns: int, order: int) -> None:
        handle.timer = self.scheduler.call_at(when_ns, partial(self._run, handle, order))

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
            handle.run()
        finally:
            asyncio._set_running_loop(before)

    def on_cancelled(self, handle: SimHandle) -> None:
        self._handles.pop(handle.number, None)

    def forget_done_tasks(self) -> None:
        """Else some of them stay, with all that their exceptions refer to; asyncio's own loops hold tasks weakly."""
        self._tasks = [task for task in self._tasks if not task.done()]

    def _remember(self, task: asyncio.Task[Any]) -> None:
        self._tasks.append(task)
        if len(self._tasks) >= self._tasks_sweep_at:
            self.forget_done_tasks()
            self._tasks_sweep_at = max(_TASKS_SWEPT, 2 * len(self._tasks))

    def _raise(self, context: dict[str, Any]) -> None:
        if "handle" not in context:
            self.complaints.append(str(context.get("message")))
            return
        raise RuntimeError(f"{self.node}: {context.get('message')}") from context.get("exception")

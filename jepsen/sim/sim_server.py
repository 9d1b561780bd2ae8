"""The server side of the simulated transport. `Dispatch` and `OrderedAnswers` are the production classes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from jepsen.sim.loop import SimLoop
from jepsen.sim.message import CLIENT, SERVER, Message, Phase
from jepsen.sim.network import Network
from jepsen.sim.session import Session
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.caller import Metadata, read_metadata
from quorumlog.rpc.calls import BY_PATH, Call
from quorumlog.rpc.dispatch import Dispatch
from quorumlog.rpc.ordered_answers import OrderedAnswers


class SimServer:
    """`transport.Server`. The host accepts connections, also while its process is paused."""

    def __init__(self, network: Network, loop: SimLoop, dispatch: Dispatch, on_crash: OnCrash) -> None:
        self.listener = dispatch.listener
        self._network, self._loop, self._dispatch, self._on_crash = network, loop, dispatch, on_crash
        self._ends: dict[int, ServerEnd] = {}  # by session
        self._closers = Nursery(on_crash)

    def accept(self, session: Session, metadata: Metadata) -> None:
        end = ServerEnd(session, self._loop, self._dispatch, metadata, self._on_crash, self._on_over)
        self._ends[session.number] = end
        session.attach(SERVER, end)

    async def close(self) -> None:
        self.abandon()
        for end in list(self._ends.values()):
            await end.close()
        await self._closers.close()

    def abandon(self) -> None:
        """After the process ended: the host refuses connections and resets open ones."""
        self._network.stop_listening(self.listener.address, self)
        for end in self._ends.values():
            end.abandon()

    def _on_over(self, end: ServerEnd) -> None:
        if self._ends.pop(end.number, None) is not None:
            self._closers.start(end.close(), "the end of a session")


class ServerEnd:
    """One session, as its server sees it."""

    def __init__(
        self,
        session: Session,
        loop: SimLoop,
        dispatch: Dispatch,
        metadata: Metadata,
        on_crash: OnCrash,
        on_over: Callable[[ServerEnd], None],
    ) -> None:
        self.number = session.number
        self._session, self._loop, self._dispatch, self._on_over = session, loop, dispatch, on_over
        self._context = dispatch.context(read_metadata(metadata))
        self._nursery = Nursery(on_crash)
        self._streams: dict[str, _Stream] = {}  # by path
        self._unary: dict[int, asyncio.Task[None]] = {}  # by number; of a duplicated request the later task
        self._over = False

    def on_message(self, message: Message) -> None:
        self._loop.deliver(self._take, message)

    def on_broken(self) -> None:
        self._loop.deliver(self._on_over, self)

    def abandon(self) -> None:
        self._session.close(SERVER)

    async def close(self) -> None:
        """Cancel the running handlers. Idempotent."""
        if self._over:
            return
        self._over = True
        if self._streams:
            self._dispatch.close(self._context)
        await self._nursery.close()

    def _take(self, message: Message) -> None:
        if self._over:
            return
        call = BY_PATH.get(message.path)
        if call is None:  # the caller uses another protocol
            self.abandon()
            self._on_over(self)
        elif message.phase is Phase.CANCEL:
            self._cut_off(message.number)
        elif call.ordered:
            self._stream(call).take(message.data)
        else:
            self._unary[message.number] = self._nursery.start(self._handle(call, message), message.name)

    def _cut_off(self, number: int) -> None:
        if number in self._unary:
            self._unary[number].cancel()

    async def _handle(self, call: Call, message: Message) -> None:
        """The caller's deadline is also the handler's, as in gRPC."""
        try:
            async with asyncio.timeout(message.timeout_ms / 1000):
                answer = await self._dispatch.answer(self._context, call, message.data)
        except TimeoutError:
            return
        finally:
            self._unary.pop(message.number, None)
        assert answer.data is not None, "only ordered calls may have no answer"
        self._answer(message.path, answer.data, ordered=False, number=message.number)

    def _stream(self, call: Call) -> _Stream:
        if call.method.path not in self._streams:
            answers = OrderedAnswers(self._dispatch, self._context, call, self._nursery)
            self._streams[call.method.path] = _Stream(answers)
            self._nursery.start(self._streams[call.method.path].read(), f"{call.method.name} reader")
            self._nursery.start(self._write(call, answers), f"{call.method.name} writer")
        return self._streams[call.method.path]

    async def _write(self, call: Call, answers: OrderedAnswers) -> None:
        while (answer := await answers.next()) is not None:
            if answer.data is not None:
                self._answer(call.method.path, answer.data, ordered=True)
            if answer.last:
                self.abandon()
                self._on_over(self)
                return

    def _answer(self, path: str, data: bytes, *, ordered: bool, number: int = 0) -> None:
        message = Message(
            source=self._session.host(SERVER),
            destination=self._session.host(CLIENT),
            path=path,
            phase=Phase.RESPONSE,
            ordered=ordered,
            number=number,
            data=data,
        )
        self._session.send(SERVER, message)


class _Stream:
    """Requests that have arrived; they are read only while there is room for them."""

    def __init__(self, answers: OrderedAnswers) -> None:
        self._answers = answers
        self._unread: deque[bytes] = deque()
        self._came = asyncio.Event()

    def take(self, data: bytes) -> None:
        self._unread.append(data)
        self._came.set()

    async def read(self) -> None:
        while True:
            await self._answers.room()
            while not self._unread:
                self._came.clear()
                await self._came.wait()
            self._answers.accept(self._unread.popleft())

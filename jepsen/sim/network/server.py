"""The server side of the simulated transport. `Gate`, `Dispatch` and `OrderedAnswers` are the production classes.

A request that the network delivers twice is carried out twice at a client listener. At an internal one the second is
refused because its counter was used, and nothing is answered: HTTP/2 drops what comes again on a stream that it knows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from jepsen.sim.network.known_user import principal_of
from jepsen.sim.network.message import CLIENT, SERVER, Message, Phase
from jepsen.sim.network.network import Network
from jepsen.sim.network.session import Session
from jepsen.sim.time.loop import SimLoop
from quorumlog.nursery import Nursery, OnCrash
from quorumlog.proof.call_proof import StreamProof
from quorumlog.proof.server_sessions import Replayed, StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.caller import Caller, Metadata, Shown, read_metadata
from quorumlog.rpc.calls import BY_PATH, OLDER, Call
from quorumlog.rpc.serving.dispatch import Dispatch, PeerContext
from quorumlog.rpc.serving.gate import Gate
from quorumlog.rpc.serving.ordered_answers import OrderedAnswers
from quorumlog.security.principal import Principal


class SimServer:
    """`transport.Server`. The host accepts connections, also while its process is paused."""

    def __init__(self, network: Network, loop: SimLoop, dispatch: Dispatch, gate: Gate, on_crash: OnCrash) -> None:
        self.listener = dispatch.listener
        self._network, self._loop, self._on_crash = network, loop, on_crash
        self._dispatch, self._gate = dispatch, gate
        self._ends: dict[int, ServerEnd] = {}  # by session
        self._closers = Nursery(on_crash)

    def accept(self, session: Session, metadata: Metadata) -> None:
        client_id, principal = read_metadata(metadata).client_id, principal_of(metadata)
        end = ServerEnd(
            session,
            self._loop,
            self._dispatch,
            self._gate,
            self._network.on_admitted,
            client_id,
            principal,
            self._on_crash,
            self._on_over,
            is_older=self.listener.address.host in self._network.older_software,
        )
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
        gate: Gate,
        on_admitted: Callable[[Message], None],
        client_id: str,
        principal: Principal,
        on_crash: OnCrash,
        on_over: Callable[[ServerEnd], None],
        *,
        is_older: bool,
    ) -> None:
        """is_older: it does not know the calls that have an older one."""
        self._is_older = is_older
        self.number = session.number
        self._session, self._loop, self._dispatch, self._on_over = session, loop, dispatch, on_over
        self._gate, self._on_admitted, self._client_id = gate, on_admitted, client_id
        self._principal = principal
        self._contexts: dict[Caller, PeerContext] = {}  # of callers that were not refused
        self._last_proof = 0  # number of its last message
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
            for context in self._contexts.values():
                self._dispatch.close(context)
        await self._nursery.close()

    def _take(self, message: Message) -> None:
        if self._over:
            return
        call = BY_PATH.get(message.path)
        if message.phase is Phase.CANCEL:
            self._cut_off(message.number)
        elif message.path == prove_method.PATH and self._dispatch.listener.internal:
            self._take_proof(message)
        elif call is None:  # the caller uses another protocol
            self._end()
        elif self._is_older and call.method.request in OLDER and call.ordered:
            self._answer(message.path, b"", ordered=True, phase=Phase.UNKNOWN)
        elif call.ordered:
            self._take_ordered(call, message)
        else:
            self._take_unary(call, message)

    def _take_proof(self, message: Message) -> None:
        """A caller sends the messages of its proofs one after the other, so a lower number is a repetition."""
        if message.number > self._last_proof:
            self._last_proof = message.number
            answer = self._gate.prove(message.data, self._where, self._loop.time())
            self._answer(message.path, answer, ordered=False, number=message.number)

    @property
    def _where(self) -> str:
        return f"{self._session.host(CLIENT)}:{self.number}"

    def _end(self) -> None:
        self.abandon()
        self._on_over(self)

    def _cut_off(self, number: int) -> None:
        if number in self._unary:
            self._unary[number].cancel()

    def _enter(self, call: Call, proof: bytes | None, data: bytes) -> tuple[PeerContext, StreamProof | None]:
        """Raises StaleProof, Replayed."""
        shown = Shown(self._client_id, proof)
        entry = self._gate.enter(shown, call.method.path, data, self._where, self._loop.time())
        if entry.caller.refusal is not None:
            return self._dispatch.context(entry.caller, self._session.host(CLIENT)), entry.stream
        caller = entry.caller if entry.caller.peer is not None else replace(entry.caller, principal=self._principal)
        if caller not in self._contexts:
            self._contexts[caller] = self._dispatch.context(caller, self._session.host(CLIENT))
        return self._contexts[caller], entry.stream

    def _take_unary(self, call: Call, message: Message) -> None:
        try:
            context, _ = self._enter(call, message.proof, message.data)
        except StaleProof:
            self._answer(message.path, b"", ordered=False, number=message.number, phase=Phase.STALE)
            return
        except Replayed:
            return
        if context.refusal is None:
            self._on_admitted(message)
        self._unary[message.number] = self._nursery.start(self._handle(context, call, message), message.name)

    async def _handle(self, context: PeerContext, call: Call, message: Message) -> None:
        """The caller's deadline is also the handler's, as in gRPC."""
        try:
            async with asyncio.timeout(message.timeout_ms / 1000):
                answer = await self._dispatch.answer(context, call, message.data)
        except TimeoutError:
            return
        finally:
            self._unary.pop(message.number, None)
        assert answer.data is not None, "only ordered calls may have no answer"
        self._answer(message.path, answer.data, ordered=False, number=message.number)

    def _take_ordered(self, call: Call, message: Message) -> None:
        try:
            stream = self._stream(call, message.proof)
        except (StaleProof, Replayed):
            self._end()
            return
        data = message.data if stream.proof is None else stream.proof.open(message.data)
        if data is None:
            self._end()
            return
        if stream.is_served:
            self._on_admitted(message)
        stream.take(data)

    def _stream(self, call: Call, opening: bytes | None) -> _Stream:
        path = call.method.path
        if path not in self._streams:
            context, proof = self._enter(call, opening, b"")
            answers = OrderedAnswers(self._dispatch, context, call, self._nursery)
            self._streams[path] = _Stream(answers, proof, is_served=context.refusal is None)
            self._nursery.start(self._streams[path].read(), f"{call.method.name} reader")
            self._nursery.start(self._write(call, answers), f"{call.method.name} writer")
        return self._streams[path]

    async def _write(self, call: Call, answers: OrderedAnswers) -> None:
        while (answer := await answers.next()) is not None:
            if answer.data is not None:
                self._answer(call.method.path, answer.data, ordered=True)
            if answer.last:
                self._end()
                return

    def _answer(self, path: str, data: bytes, *, ordered: bool, number: int = 0, phase: Phase = Phase.RESPONSE) -> None:
        message = Message(
            source=self._session.host(SERVER),
            destination=self._session.host(CLIENT),
            path=path,
            phase=phase,
            ordered=ordered,
            number=number,
            data=data,
        )
        self._session.send(SERVER, message)


class _Stream:
    """Requests that have arrived; they are read only while there is room for them. proof: of its messages. is_served:
    they are carried out, not refused."""

    def __init__(self, answers: OrderedAnswers, proof: StreamProof | None, *, is_served: bool) -> None:
        self.proof, self.is_served = proof, is_served
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
            await self._answers.room()  # it may have been held back meanwhile
            self._answers.accept(self._unread.popleft())

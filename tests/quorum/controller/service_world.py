"""The controller's service on virtual time, with a fake log and a fake network."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from controller_world import CLUSTER, registration

from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, Scheduler
from quorumlog.errors import ApiError
from quorumlog.ids import Epoch, NodeId, Offset
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorumlog.nursery import Nursery
from quorumlog.proof.peer import Peer
from quorumlog.records import Record, encode_batch, headers
from quorumlog.rpc.transport import Address, Answered, ProbeResult, Refused
from quorumlog.security.principal import ANONYMOUS, Principal
from quorumlog.security.quota.mutations import MutationUse
from quorumlog.settings.controller import ControllerConfig
from quorumlog_quorum.controller.shell.service import ControllerService
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_quorum.raft.events import NotLeader

SESSION_MS = 3_000
CONTROLLER = Endpoint(name="INTERNAL", host="c", port=1)


class FakeDriver:
    """A log in memory. Appended batches are committed by `commit`, at once while `auto_commit` is on.

    Reads are confirmed by `confirm`, at once while `auto_confirm` is on.
    """

    def __init__(self, listeners: Sequence[Any]) -> None:
        self.listeners = listeners
        self.epoch: Epoch = -1
        self.leads = False
        self.auto_commit = True
        self.auto_confirm = True
        self.confirmations: list[asyncio.Future[None]] = []
        self.high_watermark: Offset = 0
        self.batches: list[tuple[bytes, Offset]] = []
        self.delivered = 0
        self.voter_ids: tuple[NodeId, ...] = ()

    @property
    def end_offset(self) -> Offset:
        return self.batches[-1][1] if self.batches else 0

    def append(self, epoch: Epoch, values: Sequence[bytes]) -> Offset:
        if not self.leads or epoch != self.epoch:
            raise NotLeader(epoch, 2, self.epoch)
        self._add([Record(self.end_offset + i, 0, None, value, ()) for i, value in enumerate(values)], False)
        if self.auto_commit:
            self.commit()
        return self.end_offset

    def confirm_leadership(self) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.confirmations.append(future)
        if self.auto_confirm:
            self.confirm()
        return future

    def confirm(self) -> None:
        waiting, self.confirmations = self.confirmations, []
        for future in waiting:
            future.set_result(None)

    def commit(self) -> None:
        self.high_watermark = self.end_offset
        for listener in self.listeners:
            listener.on_high_watermark(self.high_watermark)
        while self.delivered < len(self.batches):
            batch, end = self.batches[self.delivered]
            self.delivered += 1
            for listener in self.listeners:
                for _ in listener.on_committed(batch, end) or ():
                    pass

    def lead(self, epoch: Epoch) -> None:
        self.epoch, self.leads = epoch, True
        self._add([Record(self.end_offset, 0, b"", b"", ())], True)
        self.commit()
        for listener in self.listeners:
            listener.on_claim(epoch, self.end_offset)

    def lead_no_more(self, epoch: Epoch) -> None:
        """The claim comes when the leadership is gone, and the log says so before the loss is told."""
        self.epoch = epoch
        self._add([Record(self.end_offset, 0, b"", b"", ())], True)
        self.commit()
        self.leads = False
        for listener in self.listeners:
            listener.on_claim(epoch, self.end_offset)

    def append_control(self, count: int) -> None:
        """Control records of the quorum itself, which the controller did not ask for."""
        self._add([Record(self.end_offset + i, 0, b"", b"", ()) for i in range(count)], True)
        if self.auto_commit:
            self.commit()

    def lose(self) -> None:
        self.leads = False
        for listener in self.listeners:
            listener.on_leader_change(2, self.epoch + 1, CONTROLLER)
        for listener in self.listeners:
            listener.on_resign(self.epoch)

    def _add(self, records: list[Record], control: bool) -> None:
        base = records[0].offset
        batch = bytes(encode_batch(records, base_offset=base, leader_epoch=self.epoch, control=control))
        self.batches.append((batch, headers(batch)[-1].next_offset))


class FakeTransport:
    """answer: what the next probe finds."""

    def __init__(self) -> None:
        self.answer: Callable[[Address], ProbeResult] = lambda address: Refused()
        self.probed: list[Address] = []

    async def probe(self, address: Address, timeout_ms: int) -> ProbeResult:
        self.probed.append(address)
        return self.answer(address)

    def connect(self, address: Address, *, internal: bool, client_id: str = "") -> Any:
        raise AssertionError("a controller calls no other node")

    async def listen(self, listener: Any, handler: Any) -> Any:
        raise AssertionError("the node listens")


class FakeContext:
    client_host = ""
    private = False

    def __init__(self, principal: Principal = ANONYMOUS, client_id: str = "", peer: Peer | None = None) -> None:
        self.principal, self.client_id, self.peer = principal, client_id, peer
        self.closed: list[Callable[[], None]] = []

    def on_closed(self, callback: Callable[[], None]) -> None:
        self.closed.append(callback)

    def close(self) -> None:
        for callback in self.closed:
            callback()


class Bench:
    """One node's controller, on a loop of virtual time."""

    def __init__(
        self,
        driver: Callable[[Sequence[Any]], FakeDriver] | None = None,
        mutations: MutationUse | None = None,
        **config: Any,
    ) -> None:
        self.scheduler = Scheduler(seed=1)
        self.loop = SimLoop(self.scheduler, "a")
        self.clock = SimClock(self.scheduler)
        self.transport = FakeTransport()
        self.loader = MetadataLoader()
        self.service = ControllerService(
            node_id=1,
            cluster_id=CLUSTER,
            config=ControllerConfig(broker_session_timeout_ms=SESSION_MS, **config),
            clock=self.clock,
            rng=random.Random(1),
            transport=self.transport,  # type: ignore[arg-type]
            nursery=Nursery(self._crash),
            loader=self.loader,
            mutations=mutations,
        )
        self.driver = (driver or FakeDriver)([self.loader, self.service])
        self.service.driver = self.driver

    def _crash(self, name: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    def do(self, action: Callable[[], Any]) -> Any:
        """Run `action` on the loop."""

        async def call() -> Any:
            return action()

        return self.loop.run_until_complete(call())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Let a call run to its first wait."""
        task = self.loop.create_task(coroutine)
        self.wait(1)
        return task

    def wait(self, length_ms: int) -> None:
        self.scheduler.run_for(length_ms * NS_PER_MS)

    def ask(self, request: Any, context: FakeContext | None = None) -> Coroutine[Any, Any, Any]:
        return self.service.handle(context or FakeContext(), request)  # type: ignore[arg-type]

    def heartbeat(self, broker_id: NodeId) -> BrokerHeartbeatRequest:
        broker = self.service.tip.brokers[broker_id]
        return BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=broker.broker_epoch,
            current_metadata_offset=self.driver.end_offset,
            want_fence=False,
            want_shutdown=False,
            incarnation_id=broker.incarnation_id,
        )

    def start_broker(self, broker_id: NodeId) -> FakeContext:
        """Register and unfence a broker. Returns the stream of its heartbeats."""
        context = FakeContext()
        self.run(self.ask(registration(broker_id)))
        response = self.run(self.ask(self.heartbeat(broker_id), context))
        assert isinstance(response, BrokerHeartbeatResponse) and not response.is_fenced
        return context

    def alive(self, address: Address) -> ProbeResult:
        """Every registered broker answers."""
        return Answered(address.port - 9000, registration(address.port - 9000).incarnation_id)

    def is_fenced(self, broker_id: NodeId) -> bool:
        return self.loader.committed_image.brokers[broker_id].fenced


def topics(*names: str, timeout_ms: int = 1_000) -> CreateTopicsRequest:
    wanted = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=wanted, timeout_ms=timeout_ms)


def refusal(bench: Bench, awaited: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        bench.loop.run_until_complete(awaited)
    return raised.value

"""A process of many brokers without logs.

    python -m bench.quorum.broker_crew TURNS_FILE IMAGES_FILE VICTIM FIRST COUNT FOLLOWING -c FILE

The node of the configuration is a light broker (measured_node.py): it follows the quorum with a metadata log of its own
and publishes images. COUNT more brokers, FIRST and the following ids, live beside it. Each has its own identity, its
own listener that proves who it is, its own registration and its own heartbeats, all by the production classes; their
images are those of the one loader, because 300 images of 200,000 partitions do not fit into one machine. The first
FOLLOWING of them also fetch from the quorum's leader as observers do, on connections of their own, and drop what they
get: so the leader has as many observers.

IMAGES_FILE gets a line for each image that all listeners of the process have applied:
[time.monotonic, offset, partitions, those that broker VICTIM leads, those without a leader].
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from selectors import BaseSelector
from typing import Any, TextIO

from bench.measuring.turns import MeasuredLoop, write_turns
from bench.nodes.measured_node import LightNode  # first: it limits what a node's process loads
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_EPOCH, NO_NODE, NodeId
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import RegisterBrokerRequest
from quorumlog.messages.quorum import QuorumFetchRequest
from quorumlog.nursery import Nursery
from quorumlog.records import headers
from quorumlog.rpc.transport import Address, Connection, Context, Identity, Listener, RpcError, Server, Transport
from quorumlog.slices import Sliced
from quorumlog.testing.ports import HOST
from quorumlog_broker.lifecycle.controller_channel import ControllerChannel
from quorumlog_broker.lifecycle.lifecycle import Lifecycle, LifecycleState
from quorumlog_broker.lifecycle.shell import LifecycleShell
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.loader import ActiveController
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.parts import broker_config
from quorumlog_server.edge.edges import Edges
from quorumlog_server.process import process
from quorumlog_server.process.internal_requests import internal_handler

WAIT_MS, CALL_TIMEOUT_MS, MAX_BYTES = 500, 5_000, 1 << 20
AGAIN_S = 0.1
MEMBERS_PER_STEP = 20  # that are told of an image in one turn


class Member:
    """One more broker of this process."""

    def __init__(self, node_id: NodeId, node: CrewNode, identity: Identity, nursery: Nursery) -> None:
        """identity: of the node beside which it lives."""
        self.node_id = node_id
        self._node, self._nursery = node, nursery
        self._identity = Identity(
            cluster_id=identity.cluster_id,
            node_id=node_id,
            incarnation_id=node.edges.new_uuid(),
            secret=identity.secret,
            cluster_incarnation=identity.cluster_incarnation,
        )
        self._directory: bytes = node_id.to_bytes(16, "big")
        self._transport: Transport = node.edges.transport(self._identity)
        self._server: Server | None = None
        self._following: Connection | None = None
        self._channel = ControllerChannel(
            subscription=node.loader,
            transport=self._transport,
            clock=node.edges.clock,
            rng=node.edges.rng("controller channel"),
            nursery=nursery,
            client_id=f"broker-{node_id}",
        )
        self.lifecycle = LifecycleShell(
            core=Lifecycle(
                node_id=node_id,
                incarnation_id=self._identity.incarnation_id,
                config=broker_config(node.config, -1).lifecycle,
                offline_directories=tuple,
                at_rest=lambda: True,  # nothing is ever written here
            ),
            channel=self._channel,
            clock=node.edges.clock,
            nursery=nursery,
            registration=self._registration,
            on_registered=lambda _request: None,
            on_state=lambda _state: None,
            on_fatal=self._fail,
        )

    @property
    def serving(self) -> bool:
        return self.lifecycle.state is LifecycleState.RUNNING and not self.lifecycle.fenced

    async def start(self) -> None:
        """Controllers reach it at a listener of its own before they can prove its death."""
        listener = Listener(name=self._node.config.internal_listener.name, address=Address(HOST, 0), internal=True)
        handler = internal_handler(
            node_id=self.node_id,
            incarnation_id=self._identity.incarnation_id,
            quorum=_refuse,
            controller=None,
            broker=_refuse,
        )
        self._server = await self._transport.listen(listener, handler)
        self.lifecycle.start()

    def follow(self) -> None:
        """Fetch from the quorum's leader for ever, and drop what comes."""
        self._nursery.start(self._follow(), f"observer {self.node_id}")

    async def stop(self) -> None:
        """At once: the leader hears of it by the broken stream."""
        await self.lifecycle.stop(controlled=False)
        await self._channel.close()
        if self._following is not None:
            await self._following.close()
        if self._server is not None:
            await self._server.close()

    def _registration(self) -> RegisterBrokerRequest:
        assert self._server is not None
        address = self._server.listener.address
        names = (self._server.listener.name, self._node.config.client_listeners[0].name)  # clients never call it
        return RegisterBrokerRequest(
            broker_id=self.node_id,
            cluster_id=self._identity.cluster_id,
            incarnation_id=self._identity.incarnation_id,
            endpoints=tuple(Endpoint(name=name, host=address.host, port=address.port) for name in names),
            log_directories=(self._directory,),
            previous_broker_epoch=-1,
            features=self._node.supported,
        )

    async def _follow(self) -> None:
        while True:
            active = self._node.loader.active_controller
            try:
                if active is not None:
                    await self._follow_leader(active)
            except RpcError:
                pass
            await asyncio.sleep(AGAIN_S)

    async def _follow_leader(self, active: ActiveController) -> None:
        """Until it answers with an error, or does not answer. It begins where the process's own image ends."""
        address = Address(active.endpoint.host, active.endpoint.port)
        if self._following is not None:
            await self._following.close()
        connection = self._following = self._transport.connect(
            address, internal=True, client_id=f"quorum-{self.node_id}"
        )
        image = self._node.loader.image
        offset, epoch, high_watermark = image.offset, image.epoch if image.offset else NO_EPOCH, -1
        while self._node.loader.active_controller == active:
            request = QuorumFetchRequest(
                replica_id=self.node_id,
                replica_directory_id=self._directory,
                current_leader_epoch=active.epoch,
                fetch_offset=offset,
                last_fetched_epoch=epoch,
                max_wait_ms=WAIT_MS,
                max_bytes=MAX_BYTES,
                high_watermark=high_watermark,
            )
            response = await connection.call(request, CALL_TIMEOUT_MS)
            if response.error_code or response.snapshot_id is not None or response.diverging_epoch is not None:
                return
            high_watermark = response.high_watermark
            if response.records:
                last = headers(response.records)[-1]
                offset, epoch = last.next_offset, last.leader_epoch

    def _fail(self, reason: str) -> None:
        raise AssertionError(f"broker {self.node_id}: {reason}")


class CrewNode(LightNode):
    """Set `members`, `following`, `victim` and `images` before it is made."""

    members: Sequence[NodeId] = ()
    following = 0
    victim: NodeId = NO_NODE
    images: TextIO

    def __init__(self, config: NodeConfig, edges: Edges) -> None:
        super().__init__(config, edges)
        self._crew: list[Member] = []

    @property
    def ready(self) -> bool:
        return super().ready and all(member.serving for member in self._crew)

    async def stop(self, controlled: bool = True) -> None:
        for member in self._crew:
            await member.stop()
        await super().stop(controlled)

    async def _start(self) -> None:
        await super()._start()
        assert self._directories is not None
        identity = self._identity(self._directories)
        self._crew = [Member(node_id, self, identity, self._nursery) for node_id in self.members]
        for number, member in enumerate(self._crew):
            await member.start()
            if number < self.following:
                member.follow()
        self.loader.subscribe(self._on_image)

    def _on_image(self, _delta: Delta, image: Image) -> Sliced[None]:
        for number, member in enumerate(self._crew, 1):
            member.lifecycle.on_metadata(image.offset, ready=True)
            if number % MEMBERS_PER_STEP == 0:
                yield
        line = [asyncio.get_running_loop().time(), image.offset, *_counts(image, self.victim)]
        self.images.write(json.dumps(line) + "\n")
        self.images.flush()
        yield from ()


def _counts(image: Image, victim: NodeId) -> Iterator[int]:
    """Partitions, those that `victim` leads, those without a leader."""
    yield sum(image.index.led.values())
    yield image.index.led.get(victim, 0)
    yield sum(bits.bit_count() for bits in image.index.leaderless.values())


def _refuse(_context: Context, request: Any) -> Awaitable[Any]:
    raise ApiError(ErrorCode.INVALID_REQUEST, f"a broker without logs does not serve {type(request).__name__}")


def main(arguments: Sequence[str]) -> int:
    turns_file, images_file, victim, first, count, following, *rest = arguments
    made: list[MeasuredLoop] = []

    def new_loop(selector: BaseSelector) -> MeasuredLoop:
        made.append(MeasuredLoop(selector))
        return made[-1]

    CrewNode.members = range(int(first), int(first) + int(count))
    CrewNode.following, CrewNode.victim = int(following), int(victim)
    try:
        with Path(images_file).open("w") as CrewNode.images:
            return process.main(rest, CrewNode, new_loop)
    finally:
        for loop in made:
            write_turns(loop.turns, Path(turns_file))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

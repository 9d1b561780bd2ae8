"""The composition root: builds a node of either role or both from production parts and the given edges.

`build_node(config, edges)` is used by the real process and by the simulation. Order of start: directories, quorum,
listeners, broker. Order of stop: broker (hands over its leaderships and closes its logs), quorum (likewise), listeners,
tasks, workers. Last, clean-shutdown markers are written, but only if all logs were recovered and are now closed.

When the directory that holds the metadata log fails, the node cannot go on (as in Kafka): it resigns its leadership of
the quorum at once, then it stops. Nothing of this waits for the disk, which may hang.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from broker.lifecycle.lifecycle import LifecycleState
from broker.node import Broker
from cli.server.config import NodeConfig
from cli.server.directories import NodeDirectories, open_directories
from cli.server.disk_watch import DiskWatch
from cli.server.edges import Edges
from cli.server.internal_requests import internal_handler
from cli.server.parts import broker_config, controller_config, metadata_log_config, raft_config, voter_set
from cli.server.replica_directories import DirectoryWorkers
from quorum.controller.service import ControllerService
from quorum.driver import Driver
from quorum.listener import RaftListener
from quorum.metadata.loader import MetadataLoader
from quorumlog.ids import Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Context, Identity, Server, Transport
from storage.directory_life import DirectoryLife, DirectoryOffline

_log = logging.getLogger("quorumlog.node")


class Node:
    """Call `start` once and `stop` once. Everything runs on the loop that called `start`."""

    broker_class: type[Broker] = Broker  # a benchmark's brokers open no logs

    def __init__(self, config: NodeConfig, edges: Edges) -> None:
        self.config = config
        self.edges = edges
        self.incarnation_id: Uuid = edges.new_uuid()
        self.addresses: dict[str, Address] = {}  # actual addresses, by listener name
        self.fatal: str | None = None
        self.loader = MetadataLoader()
        self.driver: Driver | None = None
        self.controller: ControllerService | None = None
        self.broker: Broker | None = None
        self._directories: NodeDirectories | None = None
        self._workers: DirectoryWorkers | None = None
        self._nursery = Nursery(edges.on_crash)
        self._servers: list[Server] = []
        self._on_fatal: list[Callable[[str], None]] = []

    @property
    def ready(self) -> bool:
        """True if it serves: a broker is registered, caught up and unfenced; a controller knows the quorum's leader."""
        if self.broker is not None:
            return self.broker.serving
        return self.loader.active_controller is not None

    @property
    def lives(self) -> tuple[DirectoryLife, ...]:
        """Of its log directories, in the order of the configuration; none until they are opened, and after the stop."""
        return () if self._directories is None else tuple(self._directories.lives.values())

    @property
    def hangs(self) -> bool:
        """A call to a disk has not returned in time, so a thread may still be in it, also after the stop."""
        return self._workers is not None and self._workers.any_stalled

    def on_fatal(self, callback: Callable[[str], None]) -> None:
        """Call back when the node cannot go on (at once if that has happened). The callback should stop the node."""
        self._on_fatal.append(callback)
        if self.fatal is not None:
            callback(self.fatal)

    async def start(self) -> None:
        """Raises DirectoryProblem, AddressInUse; then nothing stays running or locked."""
        try:
            await self._start()
        except BaseException:
            await self.stop(controlled=False)
            raise

    async def stop(self, controlled: bool = True) -> None:
        """controlled: hand over leaderships first. Idempotent."""
        clean = self._recovered()
        if self.broker is not None:
            clean = await self.broker.stop(controlled) and clean
        if self.controller is not None:
            await self.controller.stop()
        if self.driver is not None:
            clean = await self.driver.stop(graceful=controlled) and clean
        for server in self._servers:
            await server.close()
        await self._nursery.close()
        if self._workers is not None:
            clean = self._workers.close() and clean
        self._release(clean)

    async def _start(self) -> None:
        self._directories = open_directories(self.edges.disk, self.config)
        for failure in self._directories.failures:
            _log.error("%s", failure)
        self._workers = DirectoryWorkers(self.config, self.edges, self._directories)
        self._watch_disks(self._workers)
        transport = self.edges.transport(self._identity(self._directories))
        self._make_quorum(transport, self._directories, self._workers)
        if self.config.is_broker:
            self.broker = self._make_broker(transport, self._directories, self._workers)
        assert self.driver is not None
        for life in self.lives:
            life.on_failed(partial(self._on_directory_failed, life))
        await self.driver.start()
        await self._listen(transport)
        if self.broker is not None:
            await self.broker.start(self._endpoints())

    def _watch_disks(self, workers: DirectoryWorkers) -> None:
        watch = DiskWatch(self.lives, workers, self.config.log_dir_stall_ms, self.edges.clock)
        self._nursery.start(watch.run(), "disk watch")

    def _identity(self, directories: NodeDirectories) -> Identity:
        return Identity(
            cluster_id=directories.cluster_id,
            node_id=self.config.node_id,
            incarnation_id=self.incarnation_id,
            secret=directories.secret,
        )

    def _make_quorum(self, transport: Transport, directories: NodeDirectories, workers: DirectoryWorkers) -> None:
        """A voter with the controller on top of it, or an observer."""
        listeners: list[RaftListener] = [self.loader]
        if self.config.is_controller:
            self.controller = self._make_controller(transport, directories)
            listeners.append(self.controller)
        self.driver = Driver(
            node_id=self.config.node_id,
            directory_id=directories.metadata.meta.directory_id,
            cluster_id=directories.cluster_id,
            voters=voter_set(self.config),
            config=raft_config(self.config),
            transport=transport,
            worker=workers.quorum,
            disk=self.edges.disk,
            clock=self.edges.clock,
            rng=self.edges.rng("quorum"),
            nursery=self._nursery,
            on_fatal=self._fail,
            listeners=listeners,
            log_config=metadata_log_config(self.config),
            note_interval_ms=self.config.log_flush_offset_checkpoint_interval_ms,
            older_points=workers.older_points,
            clean=directories.metadata.clean_shutdown is not None,
        )
        if self.controller is not None:
            self.controller.driver = self.driver

    def _make_controller(self, transport: Transport, directories: NodeDirectories) -> ControllerService:
        return ControllerService(
            node_id=self.config.node_id,
            cluster_id=directories.cluster_id,
            config=controller_config(self.config),
            clock=self.edges.clock,
            rng=self.edges.rng("controller"),
            transport=transport,
            nursery=self._nursery,
            loader=self.loader,
        )

    def _make_broker(self, transport: Transport, directories: NodeDirectories, workers: DirectoryWorkers) -> Broker:
        return self.broker_class(
            node_id=self.config.node_id,
            cluster_id=directories.cluster_id,
            incarnation_id=self.incarnation_id,
            config=broker_config(self.config, directories.previous_broker_epoch),
            directories=workers.for_replicas(),
            subscription=self.loader,
            transport=transport,
            clock=self.edges.clock,
            rng=self.edges.rng,
            nursery=self._nursery,
            on_fatal=self._fail,
            on_state=self._on_broker_state,
            turn=self.edges.turn,
        )

    async def _listen(self, transport: Transport) -> None:
        """Internal listeners first: a node that learns of this one must be able to reach it."""
        assert self.driver is not None
        internal = internal_handler(
            node_id=self.config.node_id,
            incarnation_id=self.incarnation_id,
            quorum=self.driver.handle,
            controller=self.controller.handle if self.controller is not None else None,
            broker=self.broker.handle if self.broker is not None else None,
        )
        for listener in reversed(self.config.listeners):
            server = await transport.listen(listener, internal if listener.internal else self._handle_client)
            self._servers.append(server)
            self.addresses[listener.name] = server.listener.address

    def _handle_client(self, context: Context, request: Any) -> Awaitable[Any]:
        assert self.broker is not None
        return self.broker.handle(context, request)

    def _endpoints(self) -> list[Endpoint]:
        """Every listener's advertised address, with the actual port."""
        endpoints = []
        for listener in self.config.listeners:
            advertised = self.config.advertised[listener.name]
            port = advertised.port or self.addresses[listener.name].port
            endpoints.append(Endpoint(name=listener.name, host=advertised.host, port=port))
        return endpoints

    def _on_broker_state(self, state: LifecycleState) -> None:
        _log.info("broker %d is %s", self.config.node_id, state.value)

    def _on_directory_failed(self, life: DirectoryLife, failure: DirectoryOffline) -> None:
        _log.error("%s", failure)
        if life.path == self.config.metadata_log_dir:
            assert self.driver is not None
            self.driver.on_directory_failed()
            self._fail(f"the metadata log cannot be written: {failure}")

    def _fail(self, reason: str) -> None:
        if self.fatal is not None:
            return
        self.fatal = reason
        _log.error("node %d cannot go on: %s", self.config.node_id, reason)
        for callback in self._on_fatal:
            callback(reason)

    def _recovered(self) -> bool:
        """True unless a log that this start found unclean is still unrecovered. A marker would hide it from the next
        start."""
        if self._directories is None:
            return False
        if all(entry.clean_shutdown is not None for entry in self._directories.opened):
            return True
        return self.driver is not None and (self.broker is None or self.broker.data_plane.opening.done)

    def _release(self, clean: bool) -> None:
        """If the broker was not registered in this run, the markers keep the epoch of its last run."""
        directories, self._directories = self._directories, None
        if directories is None:
            return
        epoch = self.broker.lifecycle.broker_epoch if self.broker is not None else -1
        directories.close(max(epoch, directories.previous_broker_epoch) if clean else None)


def build_node(config: NodeConfig, edges: Edges) -> Node:
    """A node that is not started yet; nothing is opened."""
    return Node(config, edges)

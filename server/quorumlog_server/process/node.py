"""The composition root: builds a node of either role or both from production parts and the given edges.

`build_node(config, edges)` is used by the real process and by the simulation. Order of start: directories, quorum,
listeners, broker. Order of stop: broker (hands over its leaderships and closes its logs), quorum (likewise), listeners,
tasks, workers. Last, clean-shutdown markers are written, but only if all logs were recovered and are now closed.

When the directory that holds the metadata log fails, the node cannot go on (as in Kafka): it resigns its leadership of
the quorum at once, then it stops. Nothing of this waits for the disk, which may hang.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from quorumlog.ids import Uuid
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.controller import RegisterControllerRequest
from quorumlog.nursery import Nursery
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.local_connection import LocalConnection
from quorumlog.rpc.transport import Address, Context, Handler, Identity, Server, Transport
from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.reasons import why_of
from quorumlog.security.acl.report_only import ReportOnly
from quorumlog.security.audit import AuditLog
from quorumlog.security.authorizer import CLUSTER_NAME, AllowAll, Operation, ResourceType
from quorumlog.security.principal import Principal
from quorumlog.security.required.asker import Rules
from quorumlog.security.required.guard import Guard, Rights
from quorumlog.security.sasl.credential import ScramCredential
from quorumlog.security.sasl.scram_mechanism import BY_TITLE
from quorumlog.wire.protocol.features import Features
from quorumlog_broker.lifecycle.controller_channel import ControllerChannel, OwnController
from quorumlog_broker.lifecycle.lifecycle import LifecycleState
from quorumlog_broker.node import Broker
from quorumlog_broker.replicas.own_settings import own_setting, own_text
from quorumlog_quorum.controller.shell.announcer import Announcer
from quorumlog_quorum.controller.shell.service import ControllerService
from quorumlog_quorum.metadata.credentials import find_credential
from quorumlog_quorum.metadata.features import KRAFT_VERSION, KRAFT_VERSIONS, SUPPORTED, as_shown
from quorumlog_quorum.metadata.image import finalized_levels
from quorumlog_quorum.metadata.known_topics import KnownTopics
from quorumlog_quorum.metadata.listener import RaftListener
from quorumlog_quorum.metadata.loader import MetadataLoader
from quorumlog_quorum.metadata.quotas_in_force import QuotasInForce
from quorumlog_quorum.metadata.rules_in_force import RulesInForce
from quorumlog_quorum.metadata.snapshot_records import slices_of
from quorumlog_quorum.node.driver import Driver
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.parts import (
    broker_config,
    controller_config,
    membership,
    metadata_log_config,
    voter_set,
)
from quorumlog_server.directories.clean_shutdown import left_clean
from quorumlog_server.directories.directories import DirectoryProblem, NodeDirectories
from quorumlog_server.directories.directory_probes import probe_for_ever
from quorumlog_server.directories.directory_start import DirectoryStart
from quorumlog_server.directories.disk_watch import DiskWatch
from quorumlog_server.directories.replica_directories import DirectoryWorkers
from quorumlog_server.edge.edges import Edges
from quorumlog_server.process.internal_requests import internal_handler
from quorumlog_storage.writer.directory_life import DirectoryLife, DirectoryOffline

_log = logging.getLogger("quorumlog.node")


class Node:
    """Call `start` once and `stop` once. Everything runs on the loop that called `start`."""

    broker_class: type[Broker] = Broker  # a benchmark's brokers open no logs

    def __init__(
        self,
        config: NodeConfig,
        edges: Edges,
        supported: tuple[FeatureRange, ...] = SUPPORTED,
        rules: Rules | None = None,
    ) -> None:
        """supported: the levels of features that this node's software supports; a simulation has older software.
        rules: what clients may do; None: what the configuration and the metadata say."""
        self.config = config
        self.supported = supported
        self.edges = edges
        self.incarnation_id: Uuid = edges.new_uuid()
        self.addresses: dict[str, Address] = {}  # actual addresses, by listener name
        self.fatal: str | None = None
        self.stage = ""  # of the stop: what is under way; empty: it has not begun
        self.loader = MetadataLoader(supported, lambda call: asyncio.get_running_loop().call_soon(call))
        self.rules_in_force: RuleAuthorizer | None = None  # where access rules are on
        self.authorizer = rules or self._make_authorizer()
        self.audit_log = AuditLog(edges.clock, config.node_id, why_of(self.authorizer))
        self._rights = None if isinstance(self.authorizer, AllowAll) else Rights(self.authorizer, self.audit_log)
        edges.features.read = self._features
        edges.own.number = lambda name, in_file: own_setting(self.loader.image, config.node_id, name, in_file)
        edges.own.text = lambda name, in_file: own_text(self.loader.image, config.node_id, name, in_file)
        edges.logins.told = self.audit_log.login
        edges.logins.may_describe = self._may_describe
        edges.users.find = self._find_user
        self.loader.subscribe(QuotasInForce(edges.quotas).on_image)
        self.driver: Driver | None = None
        self.controller: ControllerService | None = None
        self._announcer: Announcer | None = None
        self._announcer_channel: ControllerChannel | None = None
        self.broker: Broker | None = None
        self._directory_start: DirectoryStart | None = None
        self._directories: NodeDirectories | None = None
        self._workers: DirectoryWorkers | None = None
        self._nursery = Nursery(edges.on_crash)
        self._servers: list[Server] = []
        self._internal: Handler | None = None  # until its parts are made
        self._on_fatal: list[Callable[[str], None]] = []

    @property
    def ready(self) -> bool:
        """True if it serves: a broker is registered, caught up and unfenced; a controller knows the quorum's leader."""
        if self.broker is not None:
            return self.broker.serving
        return self.loader.active_controller is not None

    @property
    def made_by_the_start(self) -> int:
        """Replicas and open logs, as far as the start has come; it does not change afterwards."""
        return 0 if self.broker is None else self.broker.data_plane.logs_to_open.made

    @property
    def lives(self) -> tuple[DirectoryLife, ...]:
        """Of its log directories, in the order of the configuration; none until they are opened, and after the stop."""
        return () if self._directories is None else tuple(self._directories.lives.values())

    @property
    def hangs(self) -> bool:
        """A call to a disk has not returned in time, so a thread may still be in it, also after the stop."""
        if self._workers is None:
            return self._directory_start is not None and self._directory_start.any_stalled
        return self._workers.any_stalled

    @property
    def unanswered_directories(self) -> dict[str, int]:
        """Directories that the start waits for, and for how many ms they have not answered."""
        return {} if self._directory_start is None else self._directory_start.waiting

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
        self.stage = "the broker"
        closed = None if self.broker is None else await self.broker.stop(controlled)
        self.stage = "the leadership of the quorum"
        if self.driver is not None and controlled:
            await self.driver.hand_over()  # while the controller still answers what it has appended
        if self.controller is not None:
            await self.controller.stop()
        if self._announcer_channel is not None:
            await self._announcer_channel.close()
        self.stage = "the metadata log"
        quorum_closed = None if self.driver is None else await self.driver.stop(graceful=controlled)
        self.stage = "listeners"
        for server in self._servers:
            await server.close()
        self.audit_log.close()
        self.stage = "tasks"
        await self._nursery.close()
        self.stage = "threads of log directories"
        if self._workers is not None:
            self._workers.close()
        self._release(closed, quorum_closed)

    async def _start(self) -> None:
        self._directory_start = DirectoryStart(self.config, self.edges)
        self._directories = await self._directory_start.open()
        for failure in self._directories.failures:
            _log.error("%s", failure)
        self._workers = DirectoryWorkers(self.config, self.edges, self._directories)
        self._watch_disks(self._workers)
        transport = self.edges.transport(self._identity(self._directories))
        if self.config.process.secret_in_clear:
            _log.warning("cluster.secret.in.clear is on: whoever reads the network learns the cluster's secret")
        self._make_quorum(transport, self._directories, self._workers)
        if self.config.is_broker:
            self.broker = self._make_broker(transport, self._directories, self._workers)
        self._internal = self._make_internal()
        assert self.driver is not None
        for life in self.lives:
            life.on_failed(partial(self._on_directory_failed, life))
        await self._unless_fatal(self.driver.start())
        await self._listen(transport)
        if self._announcer is not None:
            self._announcer.start()
        if self.broker is not None:
            await self.broker.start(self._endpoints())

    async def _unless_fatal(self, step: Coroutine[Any, Any, None]) -> None:
        """A step of the start that waits for the metadata directory, which may fail meanwhile: then the call that the
        step waits for may never return. Raises what the step raises, and DirectoryProblem."""
        task = asyncio.ensure_future(step)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task.add_done_callback(lambda _: None if ended.done() else ended.set_result(None))
        self.on_fatal(lambda reason: None if ended.done() else ended.set_exception(DirectoryProblem(reason)))
        try:
            await ended
            task.result()
        finally:
            task.cancel()

    def _watch_disks(self, workers: DirectoryWorkers) -> None:
        watch = DiskWatch(self.lives, workers, self.config.disks.stall_ms, self.edges.clock)
        self._nursery.start(watch.run(), "disk watch")
        self._nursery.start(probe_for_ever(workers.probed), "directory probes")

    def _identity(self, directories: NodeDirectories) -> Identity:
        return Identity(
            cluster_id=directories.cluster_id,
            node_id=self.config.node_id,
            incarnation_id=self.incarnation_id,
            secret=directories.secret,
            cluster_incarnation=directories.incarnation,
            # Software that shows the secret knows no incarnation, so it is of the earlier life of a recovered cluster.
            secret_in_clear=self.config.process.secret_in_clear and directories.incarnation.is_first,
        )

    def _make_quorum(self, transport: Transport, directories: NodeDirectories, workers: DirectoryWorkers) -> None:
        """A voter with the controller on top of it, or an observer."""
        listeners: list[RaftListener] = [self.loader]
        if self.config.is_controller:
            self.controller = self._make_controller(transport, directories)
            self._make_announcer(transport, directories)
            listeners.append(self.controller)
        self.driver = Driver(
            node_id=self.config.node_id,
            directory_id=directories.metadata.meta.directory_id,
            cluster_id=directories.cluster_id,
            voters=voter_set(self.config),
            membership=membership(self.config),
            config=self.config.quorum,
            transport=transport,
            worker=workers.quorum,
            disk=self.edges.disk,
            clock=self.edges.clock,
            rng=self.edges.rng("quorum"),
            nursery=self._nursery,
            on_fatal=self._fail,
            listeners=listeners,
            log_config=metadata_log_config(self.config),
            snapshots=self.config.metadata_log,
            slices=lambda: None if self.loader.in_transaction else slices_of(self.loader.committed_image),
            note_interval_ms=self.config.replication.recovery_checkpoint_interval_ms,
            older_points=workers.older_points,
            clean=directories.metadata.clean_shutdown is not None,
        )
        if self.controller is not None:
            self.controller.driver = self.driver

    def _make_controller(self, transport: Transport, directories: NodeDirectories) -> ControllerService:
        return ControllerService(
            node_id=self.config.node_id,
            cluster_id=directories.cluster_id,
            cluster_incarnation=directories.incarnation,
            config=replace(
                controller_config(self.config),
                first_level=directories.first.level,
                first_records=directories.first.records,
            ),
            supported=self.supported,
            clock=self.edges.clock,
            rng=self.edges.rng("controller"),
            transport=transport,
            nursery=self._nursery,
            loader=self.loader,
            mutations=self.edges.quotas.mutations,
        )

    def _may_describe(self, principal: Principal, host: str) -> bool:
        return self.authorizer.authorize(principal, host, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)

    def _make_authorizer(self) -> Rules | AllowAll:
        """Its rules are those of the newest image."""
        rights = self.config.rights
        if not rights.on:
            return AllowAll()
        authorizer = RuleAuthorizer(super_users=rights.super_users, allow_everyone=rights.allow_everyone)
        self.rules_in_force = authorizer
        self.loader.subscribe(RulesInForce(authorizer).on_image)
        return ReportOnly(authorizer) if rights.report_only else authorizer

    def _make_announcer(self, transport: Transport, directories: NodeDirectories) -> None:
        channel = ControllerChannel(
            subscription=self.loader,
            transport=transport,
            clock=self.edges.clock,
            rng=self.edges.rng("announcer"),
            nursery=self._nursery,
            client_id=f"controller-{self.config.node_id}",
        )

        def registration() -> RegisterControllerRequest:
            return RegisterControllerRequest(
                controller_id=self.config.node_id,
                cluster_id=directories.cluster_id,
                incarnation_id=self.incarnation_id,
                endpoints=tuple(
                    endpoint for endpoint in self._endpoints() if endpoint.name == self.config.internal_listener.name
                ),
                features=self.supported,
            )

        self._announcer_channel = channel
        self._announcer = Announcer(
            subscription=self.loader,
            call=channel.call_once,
            registration=registration,
            nursery=self._nursery,
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
            supported=self.supported,
            kraft_version=self._kraft_version,
            turn=self.edges.turn,
            own_controller=self._own_controller(directories),
            make_cleaner=self.edges.cleaner,
            reopen=workers.open_again,
            rights=self._rights,
            quotas=self.edges.quotas,
            listener_files=self.edges.listener_keys,
        )

    def _own_controller(self, directories: NodeDirectories) -> OwnController | None:
        """For the calls of this node's broker while this node is the active controller."""
        if self.controller is None:
            return None
        dispatch = Dispatch(
            listener=self.config.internal_listener,
            identity=self._identity(directories),
            handler=self._handle_internal,
            on_crash=self.edges.on_crash,
        )
        return OwnController(
            self.config.node_id, lambda client_id: LocalConnection(dispatch, client_id, self.edges.on_crash)
        )

    async def _listen(self, transport: Transport) -> None:
        """Internal listeners first: a node that learns of this one must be able to reach it."""
        for listener in reversed(self.config.listeners):
            handler = self._handle_internal if listener.internal else self._handle_client
            server = await transport.listen(listener, handler)
            self._servers.append(server)
            self.addresses[listener.name] = server.listener.address

    def _make_internal(self) -> Handler:
        assert self.driver is not None and self._directories is not None
        return internal_handler(
            node_id=self.config.node_id,
            incarnation_id=self.incarnation_id,
            directory_id=self._directories.metadata.meta.directory_id,
            quorum=self.driver.handle,
            controller=self.controller.handle if self.controller is not None else None,
            broker=self.broker.handle if self.broker is not None else None,
            guard=self._guarded,
        )

    def _guarded(self, handler: Handler) -> Handler:
        """For what brokers pass on for clients: the controller's own metadata decide, too."""
        if self._rights is None:
            return handler
        return Guard(handler, self._rights, KnownTopics(self.loader), tells_changes=False)

    def _handle_internal(self, context: Context, request: Any) -> Awaitable[Any]:
        assert self._internal is not None, "no listener and no broker runs before it is made"
        return self._internal(context, request)

    def _handle_client(self, context: Context, request: Any) -> Awaitable[Any]:
        assert self.broker is not None
        return self.broker.handle_client(context, request)

    def _endpoints(self) -> list[Endpoint]:
        """Every listener's advertised address, with the actual port."""
        endpoints = []
        for listener in self.config.listeners:
            advertised = self.config.advertised[listener.name]
            port = advertised.port or self.addresses[listener.name].port
            endpoints.append(Endpoint(name=listener.name, host=advertised.host, port=port))
        return endpoints

    def _kraft_version(self) -> int:
        return 0 if self.driver is None else self.driver.kraft_version

    def _features(self) -> Features:
        """For ApiVersions. Kafka's epoch of the finalized levels is the offset of the last record behind them."""
        image, supported = self.loader.image, (*(as_shown(one) for one in self.supported), KRAFT_VERSIONS)
        if image.offset == 0:
            return Features(supported=supported)
        finalized = {**finalized_levels(image), KRAFT_VERSION: self._kraft_version()}
        return Features(supported=supported, finalized=finalized, epoch=image.offset - 1)

    def _find_user(self, mechanism: str, name: str) -> ScramCredential | None:
        return find_credential(self.loader.image.access, BY_TITLE[mechanism], name)

    def _on_broker_state(self, state: LifecycleState) -> None:
        if state is LifecycleState.RUNNING:
            self.edges.users.caught_up.set()
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

    def _release(self, closed: frozenset[str] | None, quorum_closed: bool | None) -> None:
        """If the broker was not registered in this run, the markers keep the epoch of its last run."""
        directories, self._directories = self._directories, None
        if directories is None:
            return
        epoch = self.broker.lifecycle.broker_epoch if self.broker is not None else -1
        in_order = left_clean(self.config, directories, closed, quorum_closed)
        directories.close(in_order, max(epoch, directories.previous_broker_epoch))


def build_node(
    config: NodeConfig, edges: Edges, supported: tuple[FeatureRange, ...] = SUPPORTED, rules: Rules | None = None
) -> Node:
    """A node that is not started yet; nothing is opened."""
    return Node(config, edges, supported, rules)

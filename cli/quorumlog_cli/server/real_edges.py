"""A node's edges on a real machine. Created inside the running loop, whose time is the node's time."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable

from quorumlog.live_settings import (
    ADDRESSES,
    CONNECTIONS,
    CONNECTIONS_OF_ADDRESS,
    RECOVERY_THREADS,
    connections_by_address,
)
from quorumlog.rpc.grpc_options import GrpcOptions
from quorumlog.rpc.grpc_standard import HealthSource, always_serving
from quorumlog.rpc.grpc_transport import GrpcTransport
from quorumlog.rpc.transport import Identity, Transport
from quorumlog.turn import Turn
from quorumlog.wire.features import FeatureNotice
from quorumlog.wire.limits import ConnectionLimits, WireLimits
from quorumlog.wire.routing import RoutingTransport
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_cli.server.cleaner_process import CleanerProcess
from quorumlog_cli.server.config import NodeConfig
from quorumlog_cli.server.edges import Edges
from quorumlog_cli.server.fail_stop import fail_stop
from quorumlog_cli.server.own_notice import OwnNotice
from quorumlog_cli.server.random_uuid import random_uuid
from quorumlog_storage.bounded import LogResources
from quorumlog_storage.edge.descriptors import connections_of, descriptor_limit, open_files_of
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.watched_disk import WatchedDisk
from quorumlog_storage.edge.worker import ThreadWorker
from quorumlog_storage.roll_sources import RollSources
from quorumlog_storage.worker import Worker, WorkerLimits
from quorumlog_storage.writer import DirectoryWriter

_OWNER_ONLY = 0o600
_IPV4_IN_IPV6 = "::ffff:"  # how a listener of both tells an IPv4 address
_log = logging.getLogger("quorumlog.node")


class SystemClock:
    """The monotonic time of asyncio's loops, so that timers and cores agree, and the machine's wall clock."""

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def real_edges(config: NodeConfig, health: HealthSource = always_serving) -> Edges:
    """Call it on the node's event loop. health: the source of grpc.health.v1."""
    loop, turn = asyncio.get_running_loop(), Turn()
    limit = descriptor_limit()
    open_files = config.log_open_files_max or open_files_of(limit)
    of_descriptors = connections_of(limit, open_files)
    connections = min(config.max_connections, of_descriptors)
    if connections < config.max_connections:
        _log.info(
            "%d descriptors (ulimit -n): at most %d connections to each listener, and %d open segment files",
            limit, connections, open_files,
        )  # fmt: skip
    clock = SystemClock()
    rolls = RollSources(clock.wall_ms, random.random)
    disk = WatchedDisk(RealDisk(LogResources(open_files, config.log_index_bytes_max, rolls)))
    options = GrpcOptions(max_message_bytes=config.socket_request_max_bytes, reflection=config.rpc_reflection)
    limits = WireLimits(
        max_frame_bytes=config.socket_request_max_bytes,
        max_connections=connections,
        max_idle_ms=config.connections_max_idle_ms,
        max_node_bytes=config.queued_max_request_bytes,
        max_internal_bytes=config.queued_max_internal_request_bytes,
    )

    own, features = OwnNotice(), FeatureNotice()
    worker_limits = WorkerLimits(
        beside_threads=lambda: own.number(RECOVERY_THREADS, config.num_recovery_threads_per_data_dir)
    )

    def transport(identity: Identity) -> Transport:
        return RoutingTransport(
            identity,
            on_crash=fail_stop,
            grpc=GrpcTransport(identity, on_crash=fail_stop, options=options, health=health),
            limits=limits,
            serves=tuple(HANDLERS),
            advertised=config.advertised,
            turn=turn,
            features=features,
            connection_limits=connection_limits(config, of_descriptors, own),
        )

    def post(call: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(turn.run, call)

    def worker(writer: DirectoryWriter) -> Worker:
        return ThreadWorker(writer, post, worker_limits, soon=turn.later)

    return Edges(
        clock=clock,
        disk=disk,
        transport=transport,
        worker=worker,
        rng=lambda _concern: random.Random(os.urandom(16)),
        new_uuid=random_uuid,
        protect=lambda path: os.chmod(path, _OWNER_ONLY),
        turn=turn,
        on_crash=fail_stop,
        cleaner=CleanerProcess,
        features=features,
        own=own,
    )


def connection_limits(config: NodeConfig, of_descriptors: int, own: OwnNotice) -> ConnectionLimits:
    """of_descriptors: how many the process can have. A listener for nodes keeps what the file says: a maximum that was
    lowered for clients does not stop the cluster."""

    def of_listener(internal: bool) -> int:
        if internal:
            return min(config.max_connections, of_descriptors)
        return min(own.number(CONNECTIONS, config.max_connections), of_descriptors)

    def of_address(host: str) -> int:
        others = connections_by_address(own.text(ADDRESSES, config.max_connections_per_ip_overrides))
        most = own.number(CONNECTIONS_OF_ADDRESS, config.max_connections_per_ip)
        return others.get(host.removeprefix(_IPV4_IN_IPV6), most)

    return ConnectionLimits(of_listener, of_address)

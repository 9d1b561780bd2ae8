"""A node's edges on a real machine. Created inside the running loop, whose time is the node's time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from quorumlog.configs.live import connections_of_listener, creation_rate_of_listener
from quorumlog.rpc.grpc.healthy import HealthSource, always_serving
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.request_time import RequestTime
from quorumlog.rpc.serving.slow_log import SlowLog
from quorumlog.rpc.transport import Identity, Listener, Transport
from quorumlog.security.host import host_text
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.settings.connections import ADDRESSES, CONNECTIONS, CONNECTIONS_OF_ADDRESS, CREATION_RATE
from quorumlog.settings.disks import RECOVERY_THREADS
from quorumlog.settings.requests import SLOW_REQUEST
from quorumlog.turn import Turn
from quorumlog.wire.protocol.features import FeatureNotice
from quorumlog.wire.protocol.limits import UNLIMITED, ConnectionLimits
from quorumlog.wire.routing import RoutingTransport
from quorumlog.wire.serving.counts import ConnectionCounts
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_server.config.config import NodeConfig
from quorumlog_server.config.named_addresses import Found, NamedAddresses
from quorumlog_server.edge.cleaner_process import CleanerProcess
from quorumlog_server.edge.edges import Edges
from quorumlog_server.edge.fail_stop import fail_stop
from quorumlog_server.edge.grpc_security import grpc_listeners, node_security
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys, read_keys
from quorumlog_server.edge.login_notice import LoginNotice
from quorumlog_server.edge.own_notice import OwnNotice
from quorumlog_server.edge.protections import protections
from quorumlog_server.edge.random_uuid import random_uuid
from quorumlog_server.edge.token_keys import TokenKeys, read_token_keys
from quorumlog_storage.edge.descriptors import connections_of, descriptor_limit, open_files_of
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.watched_disk import WatchedDisk
from quorumlog_storage.edge.worker import ThreadWorker
from quorumlog_storage.files.clock_and_jitter import RollSources
from quorumlog_storage.files.eviction import LogResources
from quorumlog_storage.writer.worker import Worker, WorkerLimits
from quorumlog_storage.writer.writer import DirectoryWriter

if TYPE_CHECKING:
    from quorumlog_server.edge.cut_links import CutLinks

_OWNER_ONLY = 0o600
_log = logging.getLogger("quorumlog.node")


class SystemClock:
    """The monotonic time of asyncio's loops, so that timers and cores agree, and the machine's wall clock."""

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def real_edges(config: NodeConfig, health: HealthSource = always_serving) -> Edges:
    """Call it on the node's event loop. health: the source of grpc.health.v1. Raises ConfigError for certificates that
    cannot be used."""
    loop, turn, cut_links = asyncio.get_running_loop(), Turn(), _cut_links_of(config)
    open_files, of_descriptors = room_of_descriptors(config)
    clock = SystemClock()
    disk = _disk_of(config, clock, open_files)

    own, features, users, quotas, logins = OwnNotice(), FeatureNotice(), KnownUsers(), NodeQuotas(), LoginNotice()
    connections, requests = ConnectionCounts(), requests_of(config, own)
    request_time = RequestTime(quotas, time.perf_counter, loop.time)
    keys, token_keys = _keys_of(config, clock)
    limits_of_clients = connection_limits(config, of_descriptors, own, NamedAddresses(look_up, clock.now_ms))

    def transport(identity: Identity) -> Transport:
        nodes = node_security(config, identity, keys)
        routing = RoutingTransport(
            identity,
            on_crash=fail_stop,
            grpc=GrpcTransport(
                identity,
                on_crash=fail_stop,
                options=_grpc_options(config, of_descriptors),
                health=health,
                server_security=grpc_listeners(config, identity, keys, token_keys, users, clock.wall_ms, logins.tell),
                nodes=nodes,
                time=request_time,
                book=requests,
                may_describe=logins.may_describe,  # the node has set it before it makes its transport
            ),
            nodes=nodes,
            limits=replace(config.wire, max_connections=min(config.wire.max_connections, of_descriptors)),
            serves=tuple(HANDLERS),
            advertised=config.advertised,
            turn=turn,
            features=features,
            connection_limits=limits_of_clients,
            protections=protections(config, identity, keys, token_keys, users, clock.wall_ms, logins.tell),
            stranger_limits=config.strangers,
            time=request_time,
            book=requests,
            arrivals=arrivals_of(config, own, quotas),
            counts=connections,
        )
        logins.strangers = lambda: routing.strangers
        requests.held_bytes = lambda: routing.held_bytes
        return routing

    return Edges(
        clock=clock,
        disk=disk,
        transport=transport if cut_links is None else cut_links.over(transport),
        worker=_workers(config, own, turn),
        rng=lambda _concern: random.Random(os.urandom(16)),
        new_uuid=random_uuid,
        protect=lambda path: os.chmod(path, _OWNER_ONLY),
        turn=turn,
        on_crash=fail_stop,
        cleaner=CleanerProcess,
        features=features,
        own=own,
        users=users,
        quotas=quotas,
        logins=logins,
        requests=requests,
        connections=connections,
        listener_keys=keys,
        token_keys=token_keys,
        cut_links=cut_links,
    )


def _workers(config: NodeConfig, own: OwnNotice, turn: Turn) -> Callable[[DirectoryWriter], Worker]:
    loop = asyncio.get_running_loop()
    limits = WorkerLimits(beside_threads=lambda: own.number(RECOVERY_THREADS, config.disks.recovery_threads))

    def post(call: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(turn.run, call)

    return lambda writer: ThreadWorker(writer, post, limits, soon=turn.later)


def requests_of(config: NodeConfig, own: OwnNotice) -> RequestBook:
    slow = SlowLog(config.node_id, lambda: own.number(SLOW_REQUEST, config.requests.slow_request_ms))
    return RequestBook(time.monotonic, slow)  # the same clock as that of asyncio's loops


def _cut_links_of(config: NodeConfig) -> CutLinks | None:
    if config.process.cut_links is None:
        return None
    from quorumlog_server.edge.cut_links import CutLinks

    return CutLinks(config.process.cut_links, fail_stop)


def _disk_of(config: NodeConfig, clock: SystemClock, open_files: int) -> WatchedDisk:
    rolls = RollSources(clock.wall_ms, random.random)
    return WatchedDisk(RealDisk(LogResources(open_files, config.disks.index_bytes_max, rolls)))


def _keys_of(config: NodeConfig, clock: SystemClock) -> tuple[ListenerKeys, TokenKeys]:
    """Those of listeners, and those that sign tokens. Raises ConfigError."""
    tls = {name: one.tls for name, one in config.listener_security.items() if one.tls is not None}
    tokens = {name: one.tokens for name, one in config.listener_security.items() if one.tokens is not None}
    keys = read_keys(tls, clock.wall_ms, config.denied.path, config.nodes.denied)
    return keys, read_token_keys(tokens, clock.wall_ms)


def _grpc_options(config: NodeConfig, of_descriptors: int) -> GrpcOptions:
    return GrpcOptions(
        max_message_bytes=config.wire.max_frame_bytes,
        max_connections=min(config.wire.max_connections, of_descriptors),
        reflection=config.process.rpc_reflection,
    )


def room_of_descriptors(config: NodeConfig) -> tuple[int, int]:
    """How many segment files may be open, and how many connections."""
    limit = descriptor_limit()
    open_files = config.disks.open_files_max or open_files_of(limit)
    of_descriptors = connections_of(limit, open_files)
    if of_descriptors < config.wire.max_connections:
        _log.info(
            "%d descriptors (ulimit -n): at most %d connections to each listener, and %d open segment files",
            limit, of_descriptors, open_files,
        )  # fmt: skip
    return open_files, of_descriptors


def connection_limits(
    config: NodeConfig, of_descriptors: int, own: OwnNotice, named: NamedAddresses
) -> ConnectionLimits:
    """of_descriptors: how many the process can have. A listener for nodes keeps what the file says: a maximum that was
    lowered for clients does not stop the cluster. named: of this node."""

    def others() -> Mapping[str, int]:
        return named.of(own.text(ADDRESSES, config.connections.overrides))

    def of_listener(listener: Listener) -> int:
        key = connections_of_listener(listener.name)
        of_all, of_this = config.wire.max_connections, config.listener_max_connections.get(key, UNLIMITED)
        if not listener.internal:
            of_all, of_this = own.number(CONNECTIONS, of_all), own.number(key, of_this)
            others()  # asked from time to time, so that names are known before their hosts come
        return min(of_all, of_this, of_descriptors)

    def of_address(host: str) -> int:
        most = own.number(CONNECTIONS_OF_ADDRESS, config.connections.of_address)
        return others().get(host_text(host), most)

    return ConnectionLimits(of_listener, of_address)


def arrivals_of(config: NodeConfig, own: OwnNotice, quotas: NodeQuotas) -> Arrivals:
    """How fast clients may come. quotas: of the node."""

    def of_node() -> int | None:
        return _limit(own.number(CREATION_RATE, config.connections.creation_rate))

    def of_listener(name: str) -> int | None:
        key = creation_rate_of_listener(name)
        return _limit(own.number(key, config.listener_max_connections.get(key, UNLIMITED)))

    return Arrivals(lambda: quotas.index, of_node, of_listener)


def _limit(number: int) -> int | None:
    return None if number == UNLIMITED else number


def look_up(names: Collection[str], told: Found) -> None:
    """`named_addresses.LookUp`. Call it on an event loop, which hears the answer unless it has ended before.

    In a thread that nobody waits for: a name server that does not answer must not hold up the end of a node.
    """
    loop = asyncio.get_running_loop()

    def run() -> None:
        found = {name: _addresses_of(name) for name in names}
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(told, found)

    threading.Thread(target=run, name="names of clients", daemon=True).start()


def _addresses_of(name: str) -> list[str]:
    """Of IPv4 and IPv6, in the order of the resolver; none: nobody knows the name."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]

"""Everything that a node gets from the machine. The simulation passes other edges to the same node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from quorumlog.clock import Clock
from quorumlog.ids import Uuid
from quorumlog.nursery import OnCrash
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.transport import Identity, Transport
from quorumlog.security.quota.node_quotas import NodeQuotas
from quorumlog.turn import Turn
from quorumlog.wire.protocol.features import FeatureNotice
from quorumlog.wire.serving.counts import ConnectionCounts
from quorumlog_broker.cleaning.runner import Runner
from quorumlog_server.edge.known_users import KnownUsers
from quorumlog_server.edge.listener_keys import ListenerKeys
from quorumlog_server.edge.login_notice import LoginNotice
from quorumlog_server.edge.own_notice import OwnNotice
from quorumlog_server.edge.token_keys import TokenKeys
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.writer.worker import Worker
from quorumlog_storage.writer.writer import DirectoryWriter

if TYPE_CHECKING:
    from quorumlog_server.edge.cut_links import CutLinks


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """transport: called once per node, with the identity from the directories.
    worker: called once per writer; runs the writer's turns outside the event loop.
    rng: a source of randomness for each named purpose.
    new_uuid: 16 random bytes.
    protect: makes a file readable by its owner only.
    turn: the end of a callback of the node's loop; workers and the transport run their callbacks by it.
    features: what the transport announces in ApiVersions; the node sets what it reads.
    own: settings that edges obey and that can be changed while the node runs; the node sets what it reads.
    users: whom the transport asks for who logs in; the node sets what it finds.
    quotas: of clients, and what they have used; the node keeps them up to date.
    logins: told of each login at a listener; the node sets who hears of it.
    requests: how long requests take and what they hold; None: nobody asks.
    connections: what the transport counts of its connections.
    listener_keys: the certificates of listeners with TLS. token_keys: those that sign the tokens of clients.
    cut_links: those to other nodes that a test has cut; None: they cannot be cut.
    cleaner: called once for each of `log.cleaner.threads`; does the work of compaction.
    on_crash (name, error): ends the process at once, because an unhandled error must not leave a half-working node.
    """

    clock: Clock
    disk: Disk
    transport: Callable[[Identity], Transport]
    worker: Callable[[DirectoryWriter], Worker]
    rng: Callable[[str], Random]
    new_uuid: Callable[[], Uuid]
    protect: Callable[[str], None]
    turn: Turn
    on_crash: OnCrash
    cleaner: Callable[[], Runner]
    features: FeatureNotice = field(default_factory=FeatureNotice)
    own: OwnNotice = field(default_factory=OwnNotice)
    users: KnownUsers = field(default_factory=KnownUsers)
    quotas: NodeQuotas = field(default_factory=NodeQuotas)
    logins: LoginNotice = field(default_factory=LoginNotice)
    requests: RequestBook | None = None
    connections: ConnectionCounts = field(default_factory=ConnectionCounts)
    listener_keys: ListenerKeys = field(default_factory=ListenerKeys)
    token_keys: TokenKeys = field(default_factory=TokenKeys)
    cut_links: CutLinks | None = None

"""The simulated cluster's size and configuration: three controllers and three brokers or more, each on its own host."""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.ids import NodeId
from quorumlog_server.config.config import NodeConfig, from_values

CONTROLLERS: dict[str, NodeId] = {"c1": 1, "c2": 2, "c3": 3}  # by host
BROKERS: dict[str, NodeId] = {"b1": 11, "b2": 12, "b3": 13}
NODES: dict[str, NodeId] = {**CONTROLLERS, **BROKERS}
MORE_BROKERS: dict[str, NodeId] = {"b4": 14, "b5": 15, "b6": 16}  # of some seeds (layout.py)
_EVERY_BROKER: dict[str, NodeId] = {**BROKERS, **MORE_BROKERS}
CLUSTER_ID = "simulated-cluster-id-1"
SECRET = "a-secret-that-every-simulated-node-knows"
CLIENT_PORT, INTERNAL_PORT, GRPC_PORT, REPLICATION_PORT = 9092, 9093, 9094, 9095
DATA = "/data/d0"  # the metadata log lies here
SECOND_DATA = "/data/d1"  # of brokers with two log directories
DIRECTORIES = (DATA, SECOND_DATA)
METADATA_LOG = f"{DATA}/__cluster_metadata-0"
BOOTSTRAP = ",".join(f"{host}:{CLIENT_PORT}" for host in BROKERS)
COMPACTED_TOPIC = "compacted"  # of compaction.py: bytes of its logs change, so the other invariants leave it out
MIN_ISR = 2  # min.insync.replicas of topics that do not set it
LOGIN_MECHANISM = "SCRAM-SHA-256"  # of profiles whose clients log in
SESSION_MS = 6_000  # of their logins

_COMMON = {
    "controller.quorum.voters": ",".join(f"{node_id}@{host}:{INTERNAL_PORT}" for host, node_id in CONTROLLERS.items()),
    "log.dirs": DATA,
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "controlled.shutdown.timeout.ms": "3000",
    "min.insync.replicas": str(MIN_ISR),
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
    "controller.max.slice.work": "30",  # one or two partitions: small clusters too see operations in slices
    "controller.max.batch.records": "3",  # most topics are created in a metadata transaction
    "broker.max.slice.work": "2",  # likewise
    "log.cleaner.backoff.ms": "500",
    "transaction.coordinator.max.pending.markers": "2",  # so that transactions wait for room (transactions/markers.py)
}


# Where clients log in: the lane's listener asks for SCRAM, and there is no listener of gRPC beside it that asks nobody.
_LOGINS = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": LOGIN_MECHANISM,
    "connections.max.reauth.ms": str(SESSION_MS),
}


def config_of(host: str, lane: bool, extra: Mapping[str, str], *, logins: bool = False) -> NodeConfig:
    """lane: client and replication listeners speak the lane; all other listeners speak gRPC. extra: more settings.
    logins: clients of the lane log in."""
    logins = logins and lane and host in _EVERY_BROKER
    listeners = [f"INTERNAL://{host}:{INTERNAL_PORT}"]
    if host in _EVERY_BROKER:
        listeners.insert(0, f"CLIENT://{host}:{CLIENT_PORT}")
    if host in _EVERY_BROKER and lane:
        listeners += [] if logins else [f"GRPC://{host}:{GRPC_PORT}"]
        listeners += [f"REPLICATION://{host}:{REPLICATION_PORT}"]
    return from_values(
        {
            **_COMMON,
            **(_LOGINS if logins else {}),
            **extra,
            "node.id": str({**CONTROLLERS, **_EVERY_BROKER}[host]),
            "process.roles": "broker" if host in _EVERY_BROKER else "controller",
            "listeners": ",".join(listeners),
            "lane.listeners": "CLIENT,REPLICATION" if lane else "",
        }
    )

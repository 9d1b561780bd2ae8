"""Where the nodes of a cluster show their metrics: local ones by their files, others by what each broker tells."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from quorumlog_cli.connecting.connect import connected, find_target

if TYPE_CHECKING:
    from pathlib import Path

    from quorumlog.client.blocking_admin import Admin
    from quorumlog_server.monitoring.scraping import Target

KEYS = ("metrics.port", "metrics.host", "metrics.security.protocol")
BROKER = 4  # Kafka's number of this kind of resource


class Ports(NamedTuple):
    """missing: a sentence for each node that cannot be scraped."""

    targets: tuple[Target, ...]
    missing: tuple[str, ...]


def find_ports(servers: str | None, profile: str | None, options: list[str] | None) -> Ports:
    """Raises CliError where no broker answers and no cluster is here."""
    from quorumlog.testing.layout import has_cluster

    target = find_target(servers, profile, options)
    if target.data_dir is not None and has_cluster(target.data_dir):
        return _sorted(_local(target.data_dir))
    with connected(target) as cluster:
        return _sorted(_told(cluster.admin))


def _sorted(found: Iterator[Target | str]) -> Ports:
    all_of = list(found)
    return Ports(
        tuple(one for one in all_of if not isinstance(one, str)), tuple(one for one in all_of if isinstance(one, str))
    )


def _local(data: Path) -> Iterator[Target | str]:
    from quorumlog.testing.nodes import LocalNodes
    from quorumlog_server.config.config import read_config
    from quorumlog_server.config.properties import ConfigError

    nodes = LocalNodes.open(data)
    for node_id in nodes.ids:
        try:
            given = read_config(str(nodes.layout.node(node_id).config), [], os.environ).process
        except ConfigError as error:
            yield f"Node {node_id} is not scraped: {error}."
            continue
        port = None if given.metrics_port is None else str(given.metrics_port)
        yield target_of(node_id, "127.0.0.1", port, given.metrics_host, given.metrics_protocol)


def _told(admin: Admin) -> Iterator[Target | str]:
    from quorumlog.client.errors import QuorumlogError
    from quorumlog.rpc.transport import RpcError

    brokers = sorted(admin.describe_cluster().brokers, key=lambda one: one.node_id)
    for broker in brokers:
        try:
            found = admin.describe_configs(str(broker.node_id), resource_type=BROKER, names=KEYS).configs
        except (QuorumlogError, RpcError, TimeoutError) as error:
            yield f"Node {broker.node_id} is not scraped: it does not tell its metrics.port ({type(error).__name__})."
            continue
        told: dict[str, Any] = {one.name: one.value for one in found}
        port, host = told.get("metrics.port"), told.get("metrics.host") or ""
        yield target_of(broker.node_id, broker.host, port, host, told.get("metrics.security.protocol") or "")
    known = {broker.node_id for broker in brokers}
    for voter in admin.describe_quorum().voters:
        if voter.replica_id not in known:
            yield f"Node {voter.replica_id} is not scraped: it is a controller only; add its metrics.host:metrics.port."


def target_of(node_id: int, broker_host: str, port: str | None, host: str, protocol: str) -> Target | str:
    """broker_host: where clients reach the node. port, host, protocol: its settings; port None: not set. A text: why it
    cannot be scraped."""
    from quorumlog_server.monitoring.scraping import Target

    if not port:
        return f"Node {node_id} is not scraped: it has no metrics.port."
    if port == "0":
        return f"Node {node_id} is not scraped: its metrics.port is 0, another with each start."
    if _is_loopback(host) and not _is_loopback(broker_host):
        return f"Node {node_id} is not scraped: metrics.host={host} is reached from its own machine only."
    reached = broker_host if _is_any(host) else host
    return Target(node_id=node_id, host=reached, port=int(port), tls=protocol == "SSL")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_any(host: str) -> bool:
    """All addresses of a machine, or none is named."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host

"""The hosts of one quorum, and the configuration of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen.sim.settings import CLIENT_PORT, DATA, INTERNAL_PORT
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import Address
from quorumlog_server.config.config import NodeConfig, from_values

_FIRST_BROKER_ID = 11
_COMMON = {
    "log.dirs": DATA,
    "lane.listeners": "",
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "4000",
    "controlled.shutdown.timeout.ms": "2000",
    "min.insync.replicas": "1",
    "auto.create.topics.enable": "false",
    "controller.max.slice.work": "30",
    "controller.max.batch.records": "1",  # each topic is created in a metadata transaction
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """combined: so many of the voters are brokers, too. brokers: so many hosts are brokers alone.

    begins_older: every node begins with software of the feature levels before the newest.
    changes_voters: an operator removes voters and adds them.
    settings: of every node, beside those of all quorums.
    """

    voters: int
    combined: int
    brokers: int
    begins_older: bool = False
    changes_voters: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def controllers(self) -> dict[str, NodeId]:
        """By host."""
        return {f"c{number}": number for number in range(1, self.voters + 1)}

    @property
    def nodes(self) -> dict[str, NodeId]:
        """By host, controllers first."""
        return {**self.controllers, **{f"b{number + 1}": _FIRST_BROKER_ID + number for number in range(self.brokers)}}

    @property
    def serving(self) -> list[str]:
        """Hosts that serve clients."""
        hosts = list(self.nodes)
        return hosts[: self.combined] + hosts[self.voters :]

    def config(self, host: str) -> NodeConfig:
        is_broker, is_controller = host in self.serving, host in self.controllers
        listeners = [f"CLIENT://{host}:{CLIENT_PORT}"] if is_broker else []
        roles = ["broker"] if is_broker else []
        voters = [f"{node_id}@{name}:{INTERNAL_PORT}" for name, node_id in self.controllers.items()]
        return from_values(
            {
                **_COMMON,
                **self.settings,
                "controller.quorum.voters": ",".join(voters),
                "node.id": str(self.nodes[host]),
                "process.roles": ",".join([*roles, *(["controller"] if is_controller else [])]),
                "listeners": ",".join([*listeners, f"INTERNAL://{host}:{INTERNAL_PORT}"]),
            }
        )


def client_address(host: str) -> Address:
    return Address(host, CLIENT_PORT)


def internal_address(host: str) -> Address:
    return Address(host, INTERNAL_PORT)

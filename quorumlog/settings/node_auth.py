"""How nodes of a cluster show each other who they are."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.security.node_auth import NodeAuth
from quorumlog.settings.key import maybe, setting, text, word

NODE_AUTH, DENIED = "quorumlog.inter.node.auth", "quorumlog.inter.node.denied.certificates"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAuthSettings:
    said: str = setting(
        word(
            NODE_AUTH,
            NodeAuth.SECRET.value,
            "How nodes prove to each other that they are of this cluster: secret, by cluster.secret; mtls, by "
            "certificates with the URI quorumlog://CLUSTER/node/ID (`quorumlog tls init` writes them); both, on the "
            "way from one to the other by two rolling restarts. Not in Kafka.",
            tuple(one.value for one in NodeAuth),
        )
    )
    denied: str | None = setting(
        maybe(
            DENIED,
            text,
            "As quorumlog.denied.certificates, of nodes' certificates alone. Not in Kafka.",
        )
    )

    @property
    def auth(self) -> NodeAuth:
        return NodeAuth(self.said)

"""quorumlog: a replicated commit log. `from quorumlog import Cluster, Producer, Consumer, Admin`.

Nothing heavy is imported before a name is used, so that `import quorumlog` is cheap and a Spark executor can fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorumlog.client.admin import AsyncAdmin, NewTopic
    from quorumlog.client.blocking import Admin, Cluster, Consumer, Producer
    from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord
    from quorumlog.client.errors import QuorumlogError, RequestFailed
    from quorumlog.client.producer import AsyncProducer

__version__ = "0.1.0"

_HOMES = {
    "Admin": "quorumlog.client.blocking",
    "AsyncAdmin": "quorumlog.client.admin",
    "AsyncConsumer": "quorumlog.client.consumer",
    "AsyncProducer": "quorumlog.client.producer",
    "Cluster": "quorumlog.client.blocking",
    "ConsumedRecord": "quorumlog.client.consumer",
    "Consumer": "quorumlog.client.blocking",
    "NewTopic": "quorumlog.client.admin",
    "Producer": "quorumlog.client.blocking",
    "QuorumlogError": "quorumlog.client.errors",
    "RequestFailed": "quorumlog.client.errors",
}

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Cluster",
    "ConsumedRecord",
    "Consumer",
    "NewTopic",
    "Producer",
    "QuorumlogError",
    "RequestFailed",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'quorumlog' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)

"""quorumlog: a replicated commit log. `from quorumlog import Cluster, Producer, Consumer, Admin`.

Nothing heavy is imported before a name is used, so that `import quorumlog` is cheap and a Spark executor can fork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorumlog.client.admin import NewTopic
    from quorumlog.client.asynchronous import AsyncAdmin, AsyncConsumer, AsyncProducer
    from quorumlog.client.blocking import Cluster
    from quorumlog.client.blocking_admin import Admin
    from quorumlog.client.blocking_consumer import Consumer
    from quorumlog.client.blocking_producer import Producer
    from quorumlog.client.consumer import ConsumedRecord
    from quorumlog.client.errors import (
        DeserializationFailed,
        QuorumlogError,
        RequestFailed,
        SerializationFailed,
        TopicReplaced,
    )
    from quorumlog.client.group_metadata import GroupMetadata
    from quorumlog.client.transactions.errors import (
        FatalTransactionError,
        ProducerFenced,
        TransactionAborted,
        TransactionFailed,
        TransactionStateError,
        TransactionTimeout,
    )

__version__ = "0.1.0"

_HOMES = {
    "Admin": "quorumlog.client.blocking_admin",
    "AsyncAdmin": "quorumlog.client.asynchronous",
    "AsyncConsumer": "quorumlog.client.asynchronous",
    "AsyncProducer": "quorumlog.client.asynchronous",
    "Cluster": "quorumlog.client.blocking",
    "ConsumedRecord": "quorumlog.client.consumer",
    "Consumer": "quorumlog.client.blocking_consumer",
    "DeserializationFailed": "quorumlog.client.errors",
    "FatalTransactionError": "quorumlog.client.transactions.errors",
    "GroupMetadata": "quorumlog.client.group_metadata",
    "NewTopic": "quorumlog.client.admin",
    "Producer": "quorumlog.client.blocking_producer",
    "ProducerFenced": "quorumlog.client.transactions.errors",
    "QuorumlogError": "quorumlog.client.errors",
    "RequestFailed": "quorumlog.client.errors",
    "SerializationFailed": "quorumlog.client.errors",
    "TopicReplaced": "quorumlog.client.errors",
    "TransactionAborted": "quorumlog.client.transactions.errors",
    "TransactionFailed": "quorumlog.client.transactions.errors",
    "TransactionStateError": "quorumlog.client.transactions.errors",
    "TransactionTimeout": "quorumlog.client.transactions.errors",
}

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "Cluster",
    "ConsumedRecord",
    "Consumer",
    "DeserializationFailed",
    "FatalTransactionError",
    "GroupMetadata",
    "NewTopic",
    "Producer",
    "ProducerFenced",
    "QuorumlogError",
    "RequestFailed",
    "SerializationFailed",
    "TopicReplaced",
    "TransactionAborted",
    "TransactionFailed",
    "TransactionStateError",
    "TransactionTimeout",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'quorumlog' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)

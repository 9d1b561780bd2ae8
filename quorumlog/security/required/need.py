"""A right: an operation on a kind of resource, and the error of who lacks it (KIP-11, KIP-679)."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.errors import ErrorCode
from quorumlog.security.authorizer import Operation, ResourceType

DENIED: dict[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class Need(NamedTuple):
    resource_type: ResourceType
    operation: Operation

    @property
    def denied(self) -> ErrorCode:
        return DENIED[self.resource_type]

    def __str__(self) -> str:
        return f"{_words(self.resource_type.name)} {self.operation.name.title().replace('_', '')}"


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


TOPIC_READ = Need(ResourceType.TOPIC, Operation.READ)
TOPIC_WRITE = Need(ResourceType.TOPIC, Operation.WRITE)
TOPIC_CREATE = Need(ResourceType.TOPIC, Operation.CREATE)
TOPIC_DELETE = Need(ResourceType.TOPIC, Operation.DELETE)
TOPIC_ALTER = Need(ResourceType.TOPIC, Operation.ALTER)
TOPIC_DESCRIBE = Need(ResourceType.TOPIC, Operation.DESCRIBE)
TOPIC_DESCRIBE_CONFIGS = Need(ResourceType.TOPIC, Operation.DESCRIBE_CONFIGS)
TOPIC_ALTER_CONFIGS = Need(ResourceType.TOPIC, Operation.ALTER_CONFIGS)

GROUP_READ = Need(ResourceType.GROUP, Operation.READ)
GROUP_DELETE = Need(ResourceType.GROUP, Operation.DELETE)
GROUP_DESCRIBE = Need(ResourceType.GROUP, Operation.DESCRIBE)
GROUP_DESCRIBE_CONFIGS = Need(ResourceType.GROUP, Operation.DESCRIBE_CONFIGS)
GROUP_ALTER_CONFIGS = Need(ResourceType.GROUP, Operation.ALTER_CONFIGS)

CLUSTER_CREATE = Need(ResourceType.CLUSTER, Operation.CREATE)
CLUSTER_DELETE = Need(ResourceType.CLUSTER, Operation.DELETE)
CLUSTER_ALTER = Need(ResourceType.CLUSTER, Operation.ALTER)
CLUSTER_DESCRIBE = Need(ResourceType.CLUSTER, Operation.DESCRIBE)
CLUSTER_ACTION = Need(ResourceType.CLUSTER, Operation.CLUSTER_ACTION)
CLUSTER_DESCRIBE_CONFIGS = Need(ResourceType.CLUSTER, Operation.DESCRIBE_CONFIGS)
CLUSTER_ALTER_CONFIGS = Need(ResourceType.CLUSTER, Operation.ALTER_CONFIGS)
CLUSTER_IDEMPOTENT_WRITE = Need(ResourceType.CLUSTER, Operation.IDEMPOTENT_WRITE)

ID_WRITE = Need(ResourceType.TRANSACTIONAL_ID, Operation.WRITE)
ID_DESCRIBE = Need(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE)

_TOPIC_BITS = (
    Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
)  # fmt: skip
_CLUSTER_BITS = (
    Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
)  # fmt: skip
_GROUP_BITS = (
    Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
)  # fmt: skip
TOLD_BITS: dict[ResourceType, int] = {
    ResourceType.TOPIC: sum(1 << bit for bit in _TOPIC_BITS),
    ResourceType.CLUSTER: sum(1 << bit for bit in _CLUSTER_BITS),
    ResourceType.GROUP: sum(1 << bit for bit in _GROUP_BITS),
}
"""The operations that Kafka tells of each kind of resource (KIP-430)."""

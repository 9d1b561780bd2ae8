"""What decides whether a principal may do something with a resource.

Numbers are Kafka's (KIP-11, `AclOperation`, `ResourceType`), as in the records of access rules.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from quorumlog.security.principal import Principal

CLUSTER_NAME = "kafka-cluster"  # the one resource of type CLUSTER


class ResourceType(IntEnum):
    """What an access rule is about."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """What an access rule allows or denies."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


EVERYTHING = sum(1 << operation for operation in Operation if operation > Operation.ALL)


class Authorizer(Protocol):
    """Two real ones: `AllowAll`, and the rules of an image of the metadata (acl/authorizer.py)."""

    @property
    def generation(self) -> int:
        """Of what it decides by. Another one: an earlier decision may be different now."""

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """True: it may. host: the client's address as text, without a port; "" if unknown. name: of the resource;
        CLUSTER_NAME for the cluster."""

    def grants(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        """The same of a right in whose place a narrower one does, which is asked for then. What only reports tells
        nothing here, and says no."""

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        """All that it may do with the resource: one bit for each `Operation`, also for those that its type lacks."""

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """True: there may be a resource of this type, of whatever name, with which it may
        (KIP-679, `authorizeByResourceType`)."""


class AllowAll:
    """Where nobody has to log in, everybody may do everything (as Kafka without an authorizer)."""

    generation = 0

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return True

    def grants(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return True

    def operations(self, principal: Principal, host: str, resource_type: ResourceType, name: str) -> int:
        return EVERYTHING

    def authorize_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        return True

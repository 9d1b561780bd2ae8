"""The operations that a client is authorized for, as a bit set: one bit for each of Kafka's AclOperation numbers.

There are no access rules yet, so every operation is allowed. Kafka without an authorizer answers the same.
"""

from __future__ import annotations

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12
NOT_ASKED = -(2**31)

ON_TOPIC = sum(
    1 << operation for operation in (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
)
ON_CLUSTER = sum(
    1 << operation
    for operation in (CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)
)
ON_GROUP = sum(1 << operation for operation in (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))


def on_topic(asked: bool) -> int:
    return ON_TOPIC if asked else NOT_ASKED


def on_cluster(asked: bool) -> int:
    return ON_CLUSTER if asked else NOT_ASKED


def on_group(asked: bool) -> int:
    return ON_GROUP if asked else NOT_ASKED

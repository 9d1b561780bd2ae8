"""Arrays of requests that may be null in Kafka's schemas: what our clients write where they name nothing.

An empty array says something else: CreatePartitions with no assignments places no replica, and Kafka refuses it.
"""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from quorumlog.messages.admin import CreatePartitionsRequest, DescribeLogDirsRequest, PartitionsOfTopic
from quorumlog.messages.cluster import ConfigResource, DescribeConfigsRequest, MetadataRequest
from quorumlog.messages.credentials import DescribeUserScramCredentialsRequest
from quorumlog.messages.groups import ConsumerGroupHeartbeatRequest, OffsetFetchGroup, OffsetFetchRequest
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorumlog.wire.protocol.apis import BY_REQUEST

CANCELLED = ReassignableTopic(name="a", partitions=(ReassignablePartition(index=0, cancel=True),))
NOTHING_NAMED: dict[tuple[str, str], Any] = {
    ("metadata", "topics"): MetadataRequest(all_topics=True),
    ("offset_fetch", "groups.topics"): OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="a"),)),
    ("consumer_group_heartbeat", "subscribed_topic_names"): ConsumerGroupHeartbeatRequest(group_id="a", member_epoch=0),
    ("consumer_group_heartbeat", "topic_partitions"): ConsumerGroupHeartbeatRequest(group_id="a", member_epoch=0),
    ("describe_configs", "resources.configuration_keys"): DescribeConfigsRequest(
        resources=(ConfigResource(resource_type=2, resource_name="a"),)
    ),
    ("describe_log_dirs", "topics"): DescribeLogDirsRequest(all_topics=True),
    ("create_partitions", "topics.assignments"): CreatePartitionsRequest(
        topics=(PartitionsOfTopic(name="a", count=3),), timeout_ms=1_000
    ),
    ("elect_leaders", "topic_partitions"): ElectLeadersRequest(election_type=0, all_partitions=True),
    ("alter_partition_reassignments", "topics.partitions.replicas"): AlterPartitionReassignmentsRequest(
        topics=(CANCELLED,)
    ),
    ("describe_user_scram_credentials", "users"): DescribeUserScramCredentialsRequest(),
    ("list_partition_reassignments", "topics"): ListPartitionReassignmentsRequest(all_topics=True),
}


def nullable_arrays(entity: type, path: str = "") -> Iterator[str]:
    hints = typing.get_type_hints(entity)
    for field in fields(entity):  # type: ignore[arg-type]  # kio's entities are dataclasses
        hint = hints[field.name]
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        for option in options:
            element = typing.get_args(option)[0] if typing.get_origin(option) is tuple else option
            if element is not option and types.NoneType in options:
                yield path + field.name
            if is_dataclass(element):
                yield from nullable_arrays(typing.cast(type, element), f"{path}{field.name}.")


def test_every_such_array_of_kafka_is_in_the_table() -> None:
    found = set()
    for api in BY_REQUEST.values():
        module = importlib.import_module(f"kio.schema.{api.schema}.v{api.newest}.request")
        (entity,) = (
            one
            for name, one in vars(module).items()
            if name.endswith("Request") and name != "TopicRequest" and is_dataclass(one)
        )
        found.update((api.schema, path) for path in nullable_arrays(entity))
    assert found == set(NOTHING_NAMED)


@pytest.mark.parametrize(("schema", "path"), NOTHING_NAMED)
def test_null_is_written_where_nothing_is_named(schema: str, path: str) -> None:
    message = NOTHING_NAMED[schema, path]
    api = BY_REQUEST[type(message)]
    value: Any = api.write_request(message, api.newest)
    for name in path.split("."):
        if not isinstance(value, dict):
            (value,) = value
        value = value[name]
    assert value is None

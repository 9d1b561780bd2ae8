"""The asynchronous admin client: topics, cluster, quorum, offsets. It turns error codes into exceptions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorumlog.client.administration.cluster import ClusterAdmin
from quorumlog.client.administration.config_batches import ConfigBatches
from quorumlog.client.administration.config_change import ConfigChange, alterable
from quorumlog.client.administration.groups import GroupAdmin
from quorumlog.client.administration.joint import JointAdmin
from quorumlog.client.administration.logs import LogAdmin
from quorumlog.client.administration.partitions import PartitionAdmin
from quorumlog.client.administration.transactions import TransactionAdmin
from quorumlog.client.cluster.link import check
from quorumlog.client.cluster.linked import Linked
from quorumlog.client.cluster.metadata_cache import LeaderPlace, TopicLife
from quorumlog.client.cluster.retried_change import RetriedChange
from quorumlog.client.errors import RequestFailed
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset, Uuid
from quorumlog.messages.admin import (
    AlterConfigsResource,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    ExplainCompactionRequest,
    ExplainCompactionResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    NewPartition,
    PartitionsOfTopic,
)
from quorumlog.messages.cluster import (
    ConfigDescription,
    ConfigResource,
    CreatableTopic,
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    MetadataResponse,
    ReplicaAssignment,
    TopicMetadata,
    TopicQuery,
)
from quorumlog.messages.common import ConfigEntry
from quorumlog.rpc.transport import Transport

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
RECENT_IMAGES = 1_000  # asked of each broker
TOPICS_AT_ONCE = 1_000  # whose settings one request asks for; an answer with all of them stays below 16 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """-1: the cluster's default. assignment: broker ids of each partition, the preferred leader first."""

    name: str
    partitions: int = -1
    replication: int = -1
    configs: Mapping[str, str] | None = None
    assignment: Sequence[Sequence[int]] | None = None


class AsyncAdmin(
    ClusterAdmin,
    LogAdmin,
    PartitionAdmin,
    GroupAdmin,
    TransactionAdmin,
    JointAdmin,
    Linked,
):
    def __init__(
        self,
        transport: Transport,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        **options: Any,
    ) -> None:
        super().__init__(transport, config, clock=clock, rng=rng, **options)
        self._settings = ConfigBatches(self._send_settings)

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        exist_ok: bool = False,
        validate_only: bool = False,
    ) -> CreateTopicResult:
        """See `NewTopic`. Raises RequestFailed: TOPIC_ALREADY_EXISTS unless exist_ok, INVALID_CONFIG,
        INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT...
        """
        topic = NewTopic(
            name=name, partitions=partitions, replication=replication, configs=configs, assignment=assignment
        )
        (result,) = await self.create_topics([topic], validate_only=validate_only)
        if not (exist_ok and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS):
            _check_result(result, f"topic {name!r}")
        return result

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> list[CreateTopicResult]:
        """One result per topic; each carries its error. `retried_change.py` says how a retry treats topics that
        exist.
        """
        request = CreateTopicsRequest(
            topics=tuple(_creatable(topic) for topic in topics),
            timeout_ms=self.options.request_timeout_ms,
            validate_only=validate_only,
        )
        already = ErrorCode.NONE if validate_only else ErrorCode.TOPIC_ALREADY_EXISTS
        response: CreateTopicsResponse = await RetriedChange(self._link, request, already).carry_out()
        return list(response.topics)

    async def delete_topic(self, name: str) -> None:
        (result,) = await self.delete_topics([name])
        _check_result(result, f"topic {name!r}")

    async def delete_topics(self, names: Iterable[str]) -> list[DeleteTopicResult]:
        """One result per topic; each carries its error."""
        request = DeleteTopicsRequest(
            topics=tuple(TopicQuery(name=name) for name in names), timeout_ms=self.options.request_timeout_ms
        )
        response: DeleteTopicsResponse = await RetriedChange(
            self._link, request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ).carry_out()
        return list(response.topics)

    async def delete_topics_by_id(self, ids: Iterable[Uuid]) -> list[DeleteTopicResult]:
        """As `delete_topics`. A request that comes late cannot delete a later topic of the same name."""
        request = DeleteTopicsRequest(
            topics=tuple(TopicQuery(topic_id=topic_id) for topic_id in ids), timeout_ms=self.options.request_timeout_ms
        )
        response: DeleteTopicsResponse = await RetriedChange(
            self._link, request, ErrorCode.UNKNOWN_TOPIC_ID
        ).carry_out()
        return list(response.topics)

    async def list_topics(self) -> list[TopicMetadata]:
        """All topics, sorted by name."""
        response = await self._link.metadata([], all_topics=True, create=False)
        return sorted(response.topics, key=lambda topic: topic.name)

    async def describe_topic(self, name: str) -> TopicMetadata:
        (topic,) = await self.describe_topics([name])
        _check_result(topic, f"topic {name!r}")
        return topic

    async def describe_topics(self, names: Sequence[str]) -> list[TopicMetadata]:
        """One result per name, in their order, by one request; each carries its error."""
        if not names:
            return []
        response = await self._link.metadata(names, create=False)
        self._link.take(response)  # their leaders are asked next, as a rule
        found = {topic.name: topic for topic in response.topics}
        return [found[name] for name in names]

    def leader_of(self, name: str, partition: int) -> LeaderPlace | None:
        """Who leads it, in the newest metadata that this client has seen; None: nobody, or unknown. Asks nobody."""
        return self._link.cache.leader_place(name, partition)

    def topic_life(self, name: str) -> TopicLife:
        """Which topic has the name, in the newest metadata that this client has seen. Asks nobody."""
        return self._link.cache.life_of(name)

    def learn(self, name: str, life: TopicLife) -> None:
        """Somebody else has heard of this topic: what brokers say that know only a former one does not count."""
        self._link.cache.learn(name, life)

    async def prove_cluster(self) -> None:
        """Raises WrongCluster if the nodes that answer are not of the cluster that `cluster_id` names."""
        await self._link.metadata([])

    async def metadata(self) -> MetadataResponse:
        return await self._link.metadata([], all_topics=True, create=False)

    async def recent_images(self, count: int = RECENT_IMAGES) -> dict[NodeId, dict[Offset, bytes]]:
        """Of each broker in the metadata, the hashes of its newest metadata images by offset, at most `count`.

        Brokers that agree have the same hash at the same offset.
        """
        await self._link.refresh([])
        found: dict[NodeId, dict[Offset, bytes]] = {}
        for node_id in sorted(self._link.cache.brokers):
            request = DescribeClusterRequest(max_recent_images=count)
            response: DescribeClusterResponse = await self._link.call_node(node_id, request)
            check(response)
            found[node_id] = {image.offset: image.state_hash for image in response.recent_images}
        return found

    async def explain_compaction(self, topic: str, partition: int) -> dict[NodeId, ExplainCompactionResponse]:
        """Of each replica, by broker: what its cleaner does, or why it does nothing. An answer may hold an error.

        Raises RequestFailed: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found = next((one for one in (await self.describe_topic(topic)).partitions if one.index == partition), None)
        if found is None:
            raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} has no partition {partition}")
        await self._link.refresh([])
        request = ExplainCompactionRequest(topic=topic, partition=partition)
        return {node: await self._link.call_node(node, request) for node in sorted(found.replicas)}

    async def describe_configs(
        self, name: str, *, resource_type: int = TOPIC_RESOURCE, names: Sequence[str] = ()
    ) -> ConfigDescription:
        """name: a topic; or a broker id (that broker is asked); or "" for the defaults of all brokers."""
        resource = ConfigResource(resource_type=resource_type, resource_name=name, names=tuple(names))
        request = DescribeConfigsRequest(resources=(resource,))
        response: DescribeConfigsResponse
        if resource_type == BROKER_RESOURCE and name:
            await self._link.refresh([])
            response = await self._link.call_node(_broker_id(name), request)
        else:
            response = await self._link.call_any(request)
        check(response)
        (result,) = response.results
        _check_result(result, f"configs of {name!r}")
        return result

    async def describe_topics_configs(
        self, topics: Iterable[str], *, names: Sequence[str] = ()
    ) -> dict[str, ConfigDescription]:
        """The settings of many topics, TOPICS_AT_ONCE of them a request. names: only these settings; empty: all.

        A topic that does not exist is left out. Raises RequestFailed for any other error of a topic.
        """
        found: dict[str, ConfigDescription] = {}
        wanted = [ConfigResource(resource_type=TOPIC_RESOURCE, resource_name=one, names=tuple(names)) for one in topics]
        for first in range(0, len(wanted), TOPICS_AT_ONCE):
            resources = tuple(wanted[first : first + TOPICS_AT_ONCE])
            response: DescribeConfigsResponse = await self._link.call_any(DescribeConfigsRequest(resources=resources))
            check(response)
            for result in response.results:
                if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    _check_result(result, f"configs of {result.resource_name!r}")
                    found[result.resource_name] = result
        return found

    async def alter_configs(
        self,
        name: str,
        changes: Mapping[str, ConfigChange],
        *,
        resource_type: int = TOPIC_RESOURCE,
        validate_only: bool = False,
    ) -> None:
        """Change these settings and keep the others. None sets the default again. name: as in `describe_configs`.

        Calls made while others are under way share requests; those for one topic or group are carried out in
        their order. Settings of one broker are sent alone, to that broker: it knows its file and checks them. If it is
        silent, another one is asked.
        Raises RequestFailed: INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION, BROKER_ID_NOT_REGISTERED.
        """
        configs = tuple(alterable(key, change) for key, change in changes.items())
        resource = AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
        of_broker = _broker_id(name) if resource_type == BROKER_RESOURCE and name else None
        if validate_only or of_broker is not None:
            if of_broker is not None:
                await self._link.refresh([])
            request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
            (result,) = (await RetriedChange(self._link, request, first=of_broker).carry_out()).results
        else:
            result = await self._settings.alter(resource)
        _check_result(result, f"configs of {name!r}")

    async def _send_settings(self, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        response: IncrementalAlterConfigsResponse = await RetriedChange(self._link, request).carry_out()
        return response

    @property
    def settings_requests(self) -> int:
        """How many requests have carried changes of settings so far."""
        return self._settings.requests

    async def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Raise a topic's partition count to `count`. assignment: broker ids of each new partition, the leader first.

        Raises RequestFailed; INVALID_PARTITIONS also if a lost first try had added the partitions already.
        """
        topic = PartitionsOfTopic(
            name=name,
            count=count,
            assignments=tuple(NewPartition(broker_ids=tuple(brokers)) for brokers in assignment or ()),
        )
        request = CreatePartitionsRequest(
            topics=(topic,), timeout_ms=self.options.request_timeout_ms, validate_only=validate_only
        )
        response: CreatePartitionsResponse = await RetriedChange(self._link, request).carry_out()
        (result,) = response.results
        _check_result(result, f"topic {name!r}")


def _creatable(topic: NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication,
        assignments=tuple(
            ReplicaAssignment(partition=index, broker_ids=tuple(brokers))
            for index, brokers in enumerate(topic.assignment or ())
        ),
        configs=tuple(ConfigEntry(name=key, value=value) for key, value in (topic.configs or {}).items()),
    )


def _broker_id(name: str) -> NodeId:
    if not (name.isascii() and name.isdigit()):
        raise RequestFailed(ErrorCode.INVALID_REQUEST, f"{name!r} is not a broker id")
    return int(name)


def _check_result(result: Any, what: str) -> None:
    if result.error_code != ErrorCode.NONE:
        raise RequestFailed(ErrorCode(result.error_code), result.error_message or what)

"""The blocking admin client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from quorumlog.client import real_edges as edge
from quorumlog.client.admin import TOPIC_RESOURCE, AsyncAdmin, NewTopic
from quorumlog.client.admin_groups import GroupDescription
from quorumlog.client.admin_partitions import ElectionType, PartitionOutcome, Reassignment
from quorumlog.client.admin_transaction_ends import OpenProducer, Outcome, TransactionPlace
from quorumlog.client.admin_transactions import TransactionDescription, TransactionListing
from quorumlog.client.blocking_base import Blocking
from quorumlog.client.config_change import ConfigChange
from quorumlog.client.export_partition import ExportedPart
from quorumlog.client.fetch_position import TopicPartition
from quorumlog.client.group_offsets import CommittedOffset
from quorumlog.client.hanging import HangingTransaction
from quorumlog.client.import_topic import Source
from quorumlog.client.metadata_cache import LeaderPlace, TopicLife
from quorumlog.client.offsets import FoundOffset
from quorumlog.client.ranges import RangeQuery
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE, NodeId, Offset, Uuid
from quorumlog.messages.admin import (
    DescribeFeaturesResponse,
    ExplainCompactionResponse,
    FeatureUpdate,
    ListedGroup,
    LogDirDescription,
)
from quorumlog.messages.cluster import ConfigDescription, CreateTopicResult, DescribeClusterResponse, TopicMetadata
from quorumlog.messages.common import Endpoint
from quorumlog.messages.fetch import OffsetRange
from quorumlog.messages.imports import BeginImportResponse
from quorumlog.messages.joint import AbortJointResponse, ListedJointGroup
from quorumlog.messages.quorum import DescribeQuorumResponse, TransferLeadershipResponse
from quorumlog.messages.transactions import ActiveProducer, DescribedTransaction


class Admin(Blocking):
    """See AsyncAdmin."""

    _client: AsyncAdmin

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(lambda: edge.admin(dict(config or {}), **options))

    def create_topic(
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
        return self._thread.run(
            self._client.create_topic(
                name,
                partitions,
                replication,
                configs,
                assignment=assignment,
                exist_ok=exist_ok,
                validate_only=validate_only,
            )
        )

    def create_topics(self, topics: Iterable[NewTopic], *, validate_only: bool = False) -> list[CreateTopicResult]:
        return self._thread.run(self._client.create_topics(list(topics), validate_only=validate_only))

    def delete_topic(self, name: str) -> None:
        self._thread.run(self._client.delete_topic(name))

    def list_topics(self) -> list[TopicMetadata]:
        return self._thread.run(self._client.list_topics())

    def describe_topic(self, name: str) -> TopicMetadata:
        return self._thread.run(self._client.describe_topic(name))

    def describe_topics(self, names: Sequence[str]) -> list[TopicMetadata]:
        """See `AsyncAdmin.describe_topics`."""
        return self._thread.run(self._client.describe_topics(names))

    def leader_of(self, name: str, partition: int) -> LeaderPlace | None:
        """See `AsyncAdmin.leader_of`."""
        return self._client.leader_of(name, partition)

    def topic_life(self, name: str) -> TopicLife:
        """See `AsyncAdmin.topic_life`."""
        return self._client.topic_life(name)

    def learn(self, name: str, life: TopicLife) -> None:
        """See `AsyncAdmin.learn`. Before the first call of this client."""
        self._client.learn(name, life)

    def prove_cluster(self) -> None:
        """See `AsyncAdmin.prove_cluster`."""
        self._thread.run(self._client.prove_cluster())

    def describe_cluster(self, *, include_partition_counts: bool = False) -> DescribeClusterResponse:
        return self._thread.run(self._client.describe_cluster(include_partition_counts=include_partition_counts))

    def describe_broker_log_dirs(self, node_id: NodeId, timeout_ms: int | None = None) -> tuple[LogDirDescription, ...]:
        """See `AsyncAdmin.describe_broker_log_dirs`."""
        return self._thread.run(self._client.describe_broker_log_dirs(node_id, timeout_ms))

    def unregister_broker(self, broker_id: NodeId, broker_epoch: int = -1) -> None:
        """See `AsyncAdmin.unregister_broker`."""
        self._thread.run(self._client.unregister_broker(broker_id, broker_epoch))

    def recent_images(self) -> dict[NodeId, dict[Offset, bytes]]:
        return self._thread.run(self._client.recent_images())

    def explain_compaction(self, topic: str, partition: int) -> dict[NodeId, ExplainCompactionResponse]:
        return self._thread.run(self._client.explain_compaction(topic, partition))

    def describe_quorum(self, timeout_ms: int | None = None) -> DescribeQuorumResponse:
        return self._thread.run(self._client.describe_quorum(timeout_ms))

    def add_voter(self, node_id: NodeId, directory_id: Uuid, endpoints: Sequence[Endpoint], timeout_ms: int) -> None:
        """See `AsyncAdmin.add_voter`."""
        self._thread.run(self._client.add_voter(node_id, directory_id, endpoints, timeout_ms))

    def remove_voter(self, node_id: NodeId, directory_id: Uuid) -> None:
        """See `AsyncAdmin.remove_voter`."""
        self._thread.run(self._client.remove_voter(node_id, directory_id))

    def transfer_leadership(self, to_node_id: NodeId = NO_NODE) -> TransferLeadershipResponse:
        return self._thread.run(self._client.transfer_leadership(to_node_id))

    def import_topic(
        self,
        name: str,
        sources: Sequence[Source],
        replication: int = -1,
        configs: Mapping[str, str] | None = None,
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> BeginImportResponse:
        return self._thread.run(self._client.import_topic(name, sources, replication, configs, on_progress))

    def export_partition(self, topic: str, index: int, take: Callable[[ExportedPart], None]) -> Uuid:
        return self._thread.run(self._client.export_partition(topic, index, take))

    def describe_features(self) -> DescribeFeaturesResponse:
        return self._thread.run(self._client.describe_features())

    def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        self._thread.run(self._client.update_features(updates, validate_only=validate_only))

    def describe_configs(
        self, name: str, *, resource_type: int = TOPIC_RESOURCE, names: Sequence[str] = ()
    ) -> ConfigDescription:
        return self._thread.run(self._client.describe_configs(name, resource_type=resource_type, names=names))

    def describe_topics_configs(
        self, topics: Iterable[str], *, names: Sequence[str] = ()
    ) -> dict[str, ConfigDescription]:
        return self._thread.run(self._client.describe_topics_configs(topics, names=names))

    def alter_configs(
        self,
        name: str,
        changes: Mapping[str, ConfigChange],
        *,
        resource_type: int = TOPIC_RESOURCE,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.alter_configs(name, changes, resource_type=resource_type, validate_only=validate_only)
        )

    def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.create_partitions(name, count, assignment=assignment, validate_only=validate_only)
        )

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.delete_records(before))

    def describe_log_dirs(
        self, *, timeout_ms: int | None = None, silent: dict[NodeId, str] | None = None
    ) -> dict[NodeId, tuple[LogDirDescription, ...]]:
        """See `AsyncAdmin.describe_log_dirs`."""
        return self._thread.run(self._client.describe_log_dirs(timeout_ms=timeout_ms, silent=silent))

    def alter_replica_log_dirs(self, wanted: Mapping[tuple[str, int, int], str]) -> None:
        self._thread.run(self._client.alter_replica_log_dirs(wanted))

    def bring_log_dir_online(self, node_id: int, path: str) -> None:
        self._thread.run(self._client.bring_log_dir_online(node_id, path))

    def alter_partition_reassignments(
        self, wanted: Mapping[TopicPartition, Sequence[NodeId] | None]
    ) -> dict[TopicPartition, PartitionOutcome]:
        return self._thread.run(self._client.alter_partition_reassignments(wanted))

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        return self._thread.run(self._client.list_partition_reassignments(partitions))

    def elect_leaders(
        self, election: ElectionType = ElectionType.PREFERRED, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, PartitionOutcome]:
        return self._thread.run(self._client.elect_leaders(election, partitions))

    def list_groups(self, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
        return self._thread.run(self._client.list_groups(states=states, types=types))

    def describe_group(self, group_id: str) -> GroupDescription:
        return self._thread.run(self._client.describe_group(group_id))

    def delete_group(self, group_id: str) -> None:
        self._thread.run(self._client.delete_group(group_id))

    def group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        return self._thread.run(self._client.group_offsets(group_id, partitions, require_stable=require_stable))

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ErrorCode]:
        return self._thread.run(self._client.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        return self._thread.run(self._client.delete_group_offsets(group_id, partitions))

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, FoundOffset]:
        return self._thread.run(self._client.list_offsets(wanted, isolation_level=isolation_level))

    def list_offset_ranges(
        self,
        wanted: Iterable[TopicPartition],
        timeout_ms: int | None = None,
        *,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, tuple[FoundOffset, FoundOffset]]:
        return self._thread.run(self._client.list_offset_ranges(wanted, timeout_ms, isolation_level=isolation_level))

    def describe_ranges(
        self,
        wanted: Mapping[TopicPartition, RangeQuery],
        *,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        """See `AsyncAdmin.describe_ranges`."""
        return self._thread.run(self._client.describe_ranges(wanted, isolation_level=isolation_level))

    def list_transactions(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        return self._thread.run(
            self._client.list_transactions(
                states=states, producer_ids=producer_ids, duration_ms=duration_ms, pattern=pattern
            )
        )

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        return self._thread.run(self._client.describe_transaction(transactional_id))

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction]:
        return self._thread.run(self._client.describe_transactions(transactional_ids))

    def end_transactions(self, producers: Sequence[OpenProducer], *, commit: bool) -> dict[str, ErrorCode]:
        return self._thread.run(self._client.end_transactions(producers, commit=commit))

    def transaction_outcome(self, producer_id: int, place: TransactionPlace) -> Outcome:
        return self._thread.run(self._client.transaction_outcome(producer_id, place))

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: NodeId | None = None
    ) -> dict[TopicPartition, tuple[ActiveProducer, ...]]:
        return self._thread.run(self._client.describe_producers(partitions, broker_id=broker_id))

    def abort_transaction(
        self, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int = -1
    ) -> None:
        self._thread.run(self._client.abort_transaction(partition, producer_id, producer_epoch, coordinator_epoch))

    def fence_producer(self, transactional_id: str) -> tuple[int, int]:
        return self._thread.run(self._client.fence_producer(transactional_id))

    def find_hanging_transactions(
        self, partitions: Iterable[TopicPartition], max_timeout_ms: int, *, now_ms: int, broker_id: NodeId | None = None
    ) -> list[HangingTransaction]:
        return self._thread.run(
            self._client.find_hanging_transactions(partitions, max_timeout_ms, now_ms=now_ms, broker_id=broker_id)
        )

    def list_joint_groups(self) -> list[ListedJointGroup]:
        """See `AsyncAdmin.list_joint_groups`."""
        return self._thread.run(self._client.list_joint_groups())

    def abort_joint_batch(self, group_id: str, location: str, sequence: int) -> AbortJointResponse:
        return self._thread.run(self._client.abort_joint_batch(group_id, location, sequence))

    def forget_joint_group(self, group_id: str) -> None:
        self._thread.run(self._client.forget_joint_group(group_id))

"""The table of rights: a row for each request that a client may make. The same for both wires.

`needs` are all rights that a row may ask for; `how` says which of them counts when. docs/security.md shows both, and
a test compares `needs` with what is really asked (CVE-2026-41115). What has no row here and is not in NODES_ONLY is not
served: `check_rows` stops the start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from quorumlog.messages import (
    admin,
    backup,
    brokers,
    cluster,
    credentials,
    events,
    fetch,
    groups,
    imports,
    joint,
    produce,
    quorum,
    quotas,
    transactions,
)
from quorumlog.messages import reassignments as moves
from quorumlog.security.required import cluster as of_all
from quorumlog.security.required import configs as of_configs
from quorumlog.security.required import fetch as of_fetch
from quorumlog.security.required import groups as of_groups
from quorumlog.security.required import partitions as of_partitions
from quorumlog.security.required import topics as of_topics
from quorumlog.security.required import transactions as of_transactions
from quorumlog.security.required.asker import Asker
from quorumlog.security.required.fetch import FetchSessionRights
from quorumlog.security.required.judged import Judged
from quorumlog.security.required.need import (
    CLUSTER_ACTION,
    CLUSTER_ALTER,
    CLUSTER_ALTER_CONFIGS,
    CLUSTER_CREATE,
    CLUSTER_DELETE,
    CLUSTER_DESCRIBE,
    CLUSTER_DESCRIBE_CONFIGS,
    CLUSTER_IDEMPOTENT_WRITE,
    GROUP_ALTER_CONFIGS,
    GROUP_DELETE,
    GROUP_DESCRIBE,
    GROUP_DESCRIBE_CONFIGS,
    GROUP_READ,
    ID_DESCRIBE,
    ID_WRITE,
    TOPIC_ALTER,
    TOPIC_ALTER_CONFIGS,
    TOPIC_CREATE,
    TOPIC_DELETE,
    TOPIC_DESCRIBE,
    TOPIC_DESCRIBE_CONFIGS,
    TOPIC_READ,
    TOPIC_WRITE,
    Need,
)
from quorumlog.security.required.nodes_only import NODES_ONLY
from quorumlog.security.required.produce import produce as of_produce

Judge = Callable[[Asker, Any], Judged]


@dataclass(frozen=True, slots=True)
class Row:
    """judge: raises ApiError if the whole request is denied."""

    request: type
    needs: tuple[Need, ...]
    judge: Judge
    how: str


def _whole(request: type, need: Need) -> Row:
    return Row(request, (need,), of_all.of_cluster(need), "whole")


_EACH = "each topic"
_GROUP = "whole"

_PARTITIONS = (
    Row(
        produce.ProduceRequest,
        (TOPIC_WRITE, ID_WRITE),
        of_produce,
        "each topic; transactional records the id, whole; acks=0: the connection ends",
    ),
    Row(fetch.FetchChunkRequest, (TOPIC_READ,), of_fetch.fetch_chunk, "each message of the stream"),
    Row(fetch.ListOffsetsRequest, (TOPIC_DESCRIBE,), of_partitions.list_offsets, _EACH),
    Row(
        fetch.OffsetForLeaderEpochRequest,
        (CLUSTER_ACTION, TOPIC_DESCRIBE),
        of_partitions.offset_for_leader_epoch,
        "the cluster, else each topic",
    ),
    Row(fetch.DescribeRangesRequest, (TOPIC_DESCRIBE,), of_partitions.describe_ranges, _EACH),
    Row(fetch.CountRecordsRequest, (TOPIC_DESCRIBE,), of_partitions.count_records, _EACH),
    Row(admin.DeleteRecordsRequest, (TOPIC_DELETE,), of_partitions.delete_records, _EACH),
    Row(transactions.DescribeProducersRequest, (TOPIC_READ,), of_partitions.describe_producers, _EACH),
)
_TOPICS = (
    Row(
        cluster.MetadataRequest,
        (TOPIC_DESCRIBE, CLUSTER_CREATE, TOPIC_CREATE, CLUSTER_DESCRIBE),
        of_topics.metadata,
        "each topic; of all topics the others are left out; to make one the cluster or the topic Create; "
        "the cluster's operations 0 without Cluster Describe",
    ),
    Row(
        admin.DescribeTopicPartitionsRequest,
        (TOPIC_DESCRIBE,),
        of_topics.describe_topic_partitions,
        "each topic; of all topics the others are left out",
    ),
    Row(
        cluster.DescribeClusterRequest,
        (CLUSTER_DESCRIBE,),
        of_topics.describe_cluster,
        "nobody is denied; without it the cluster's operations are 0",
    ),
    Row(
        cluster.CreateTopicsRequest,
        (CLUSTER_CREATE, TOPIC_CREATE, TOPIC_DESCRIBE_CONFIGS),
        of_topics.create_topics,
        "the cluster, else each topic; settings are shown with DescribeConfigs",
    ),
    Row(
        cluster.DeleteTopicsRequest,
        (CLUSTER_DELETE, TOPIC_DELETE, TOPIC_DESCRIBE),
        of_topics.delete_topics,
        "the cluster, else each topic; by id the name is told with Describe",
    ),
    Row(admin.CreatePartitionsRequest, (TOPIC_ALTER,), of_topics.create_partitions, _EACH),
    Row(admin.ExplainCompactionRequest, (TOPIC_DESCRIBE,), of_topics.explain_compaction, "whole"),
    Row(
        cluster.DescribeConfigsRequest,
        (TOPIC_DESCRIBE_CONFIGS, GROUP_DESCRIBE_CONFIGS, CLUSTER_DESCRIBE_CONFIGS),
        of_configs.describe_configs,
        "each resource, a broker's are the cluster's",
    ),
    Row(
        admin.IncrementalAlterConfigsRequest,
        (TOPIC_ALTER_CONFIGS, GROUP_ALTER_CONFIGS, CLUSTER_ALTER_CONFIGS),
        of_configs.alter_configs,
        "each resource, a broker's are the cluster's",
    ),
)
_GROUPS = (
    Row(
        admin.FindCoordinatorRequest,
        (GROUP_DESCRIBE, ID_DESCRIBE, CLUSTER_ACTION),
        of_groups.find_coordinator,
        "each key by its kind; share groups the cluster",
    ),
    Row(groups.JoinGroupRequest, (GROUP_READ,), of_groups.member, _GROUP),
    Row(groups.SyncGroupRequest, (GROUP_READ,), of_groups.member, _GROUP),
    Row(groups.GroupHeartbeatRequest, (GROUP_READ,), of_groups.member, _GROUP),
    Row(groups.LeaveGroupRequest, (GROUP_READ,), of_groups.member, _GROUP),
    Row(groups.OffsetCommitRequest, (GROUP_READ, TOPIC_READ), of_groups.offset_commit, "the group whole, each topic"),
    Row(
        groups.OffsetFetchRequest,
        (GROUP_DESCRIBE, TOPIC_DESCRIBE),
        of_groups.offset_fetch,
        "each group and topic; of all topics the others are left out",
    ),
    Row(groups.OffsetDeleteRequest, (GROUP_DELETE, TOPIC_READ), of_groups.offset_delete, "the group whole, each topic"),
    Row(groups.DescribeGroupsRequest, (GROUP_DESCRIBE,), of_groups.describe_groups, "each group"),
    Row(
        groups.ConsumerGroupDescribeRequest,
        (GROUP_DESCRIBE, TOPIC_DESCRIBE),
        of_groups.consumer_group_describe,
        "each group; all topics that are assigned in it",
    ),
    Row(
        admin.ListGroupsRequest,
        (CLUSTER_DESCRIBE, GROUP_DESCRIBE),
        of_groups.list_groups,
        "the cluster, else the others are left out",
    ),
    Row(groups.DeleteGroupsRequest, (GROUP_DELETE,), of_groups.delete_groups, "each group"),
    Row(
        groups.ConsumerGroupHeartbeatRequest,
        (GROUP_READ, TOPIC_DESCRIBE),
        of_groups.consumer_group_heartbeat,
        "whole: the group, and each topic that is named; by an expression the others are left out",
    ),
)
_TRANSACTIONS = (
    Row(
        produce.InitProducerIdRequest,
        (ID_WRITE, CLUSTER_IDEMPOTENT_WRITE, TOPIC_WRITE),
        of_transactions.init_producer_id,
        "whole: the id; without one the cluster, or Write on any topic",
    ),
    Row(
        transactions.AddPartitionsToTxnRequest,
        (ID_WRITE, TOPIC_WRITE, CLUSTER_ACTION),
        of_transactions.add_partitions,
        "each id and topic, the rest is not attempted (55); several ids, or to verify: the cluster",
    ),
    Row(transactions.AddOffsetsToTxnRequest, (ID_WRITE, GROUP_READ), of_transactions.add_offsets, "whole"),
    Row(transactions.EndTxnRequest, (ID_WRITE,), of_transactions.end_transaction, "whole"),
    Row(
        transactions.TxnOffsetCommitRequest,
        (ID_WRITE, GROUP_READ, TOPIC_READ),
        of_transactions.txn_offset_commit,
        "the id and the group whole, each topic",
    ),
    Row(
        transactions.WriteTxnMarkersRequest,
        (CLUSTER_ALTER, CLUSTER_ACTION),
        of_transactions.write_markers,
        "whole: one of the two",
    ),
    Row(
        transactions.DescribeTransactionsRequest,
        (ID_DESCRIBE, TOPIC_DESCRIBE),
        of_transactions.describe_transactions,
        "each id; topics are left out",
    ),
    Row(transactions.ListTransactionsRequest, (ID_DESCRIBE,), of_transactions.list_transactions, "left out"),
    Row(joint.BeginJointRequest, (ID_WRITE,), of_transactions.joint, "whole: the group's name as an id"),
    Row(joint.CommitJointRequest, (ID_WRITE,), of_transactions.joint, "whole: the group's name as an id"),
    Row(joint.AbortJointRequest, (ID_WRITE,), of_transactions.joint, "whole: the group's name as an id"),
    Row(joint.ForgetJointRequest, (ID_WRITE,), of_transactions.joint, "whole: the group's name as an id"),
    Row(joint.ListJointRequest, (ID_DESCRIBE,), of_transactions.list_joint, "left out"),
)
_CLUSTER = (
    Row(admin.DescribeFeaturesRequest, (), of_all.nothing, "nobody is denied: ApiVersions tells the same"),
    _whole(quorum.DescribeQuorumRequest, CLUSTER_DESCRIBE),
    _whole(admin.DescribeLogDirsRequest, CLUSTER_DESCRIBE),
    _whole(moves.ListPartitionReassignmentsRequest, CLUSTER_DESCRIBE),
    _whole(brokers.DescribeAclsRequest, CLUSTER_DESCRIBE),
    _whole(brokers.CreateAclsRequest, CLUSTER_ALTER),
    _whole(brokers.DeleteAclsRequest, CLUSTER_ALTER),
    _whole(credentials.DescribeUserScramCredentialsRequest, CLUSTER_DESCRIBE),
    _whole(credentials.AlterUserScramCredentialsRequest, CLUSTER_ALTER),
    _whole(quotas.DescribeClientQuotasRequest, CLUSTER_DESCRIBE_CONFIGS),
    _whole(quotas.AlterClientQuotasRequest, CLUSTER_ALTER_CONFIGS),
    _whole(quotas.DescribeQuotaUseRequest, CLUSTER_DESCRIBE),
    _whole(events.DescribeEventsRequest, CLUSTER_DESCRIBE),
    _whole(backup.ReadMetadataRequest, CLUSTER_ALTER),
    _whole(backup.HoldCommitsRequest, CLUSTER_ALTER),
    _whole(admin.AlterReplicaLogDirsRequest, CLUSTER_ALTER),
    _whole(admin.BringLogDirOnlineRequest, CLUSTER_ALTER),
    _whole(moves.AlterPartitionReassignmentsRequest, CLUSTER_ALTER),
    _whole(moves.ElectLeadersRequest, CLUSTER_ALTER),
    _whole(admin.UpdateFeaturesRequest, CLUSTER_ALTER),
    _whole(brokers.UnregisterBrokerRequest, CLUSTER_ALTER),
    _whole(quorum.AddRaftVoterRequest, CLUSTER_ALTER),
    _whole(quorum.RemoveRaftVoterRequest, CLUSTER_ALTER),
    _whole(quorum.TransferLeadershipRequest, CLUSTER_ALTER),
    Row(imports.BeginImportRequest, (CLUSTER_ALTER, TOPIC_WRITE), of_all.begin_import, "whole"),
    Row(imports.ImportRecordsRequest, (CLUSTER_ALTER, TOPIC_WRITE), of_all.import_records, "whole"),
    Row(imports.FinishImportRequest, (CLUSTER_ALTER, TOPIC_WRITE), of_all.import_records, "whole"),
)


def rows(sessions: FetchSessionRights) -> Mapping[type, Row]:
    """The table of one broker, which remembers its fetch sessions."""
    of_sessions = Row(
        fetch.FetchRequest,
        (TOPIC_READ,),
        lambda ask, request: of_fetch.judge_fetch(sessions, ask, request),
        "each topic, once more when the answer is made",
    )
    found = (of_sessions, *_PARTITIONS, *_TOPICS, *_GROUPS, *_TRANSACTIONS, *_CLUSTER)
    table = {row.request: row for row in found}
    assert len(table) == len(found), "a request has two rows"
    return table


class MissingRow(Exception):
    """A request would be served without a right."""

    def __init__(self, missing: Collection[str]) -> None:
        super().__init__(
            f"no row in the table of rights for {', '.join(sorted(missing))}; "
            "say in quorumlog/security/required/table.py what it needs"
        )


def check_rows(served: Collection[type]) -> None:
    """Raises MissingRow for requests that are served to clients and have no row."""
    known = {*rows(FetchSessionRights()), *NODES_ONLY}
    missing = [request.__name__ for request in served if request not in known]
    if missing:
        raise MissingRow(missing)

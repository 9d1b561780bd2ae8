"""For each row of the table: a request about names that a test chooses, and what a client hears that has no right.

A new row needs a case here; `test_rows.py` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from quorumlog.errors import ErrorCode as E
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
from quorumlog.messages.common import Endpoint, QuotaEntity
from quorumlog.records import Record, encode_batch

T, G, C, X = (
    E.TOPIC_AUTHORIZATION_FAILED,
    E.GROUP_AUTHORIZATION_FAILED,
    E.CLUSTER_AUTHORIZATION_FAILED,
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
DENIALS = frozenset({T, G, C, X, E.OPERATION_NOT_ATTEMPTED})
RECORDS = encode_batch([Record(0, 1_700_000_000_000, None, b"value", ())])
MS = 5_000
STRANGE = bytes(range(16))


class Names(NamedTuple):
    """topic_id: of the topic; of none if the topic does not exist."""

    topic: str
    topic_id: bytes
    group: str
    transactional_id: str


@dataclass(frozen=True)
class Case:
    """denied: what the answer holds if no right is there; None: nothing, it is a listing that leaves out, or told all.
    by_id: names the topic by its id."""

    make: Callable[[Names], Any]
    denied: E | None
    by_id: bool = False


def _partition(topic: str) -> tuple[transactions.TransactionTopic, ...]:
    return (transactions.TransactionTopic(name=topic, partitions=(0,)),)


def _offset(names: Names) -> tuple[groups.OffsetCommitTopic, ...]:
    one = groups.OffsetCommitPartition(index=0, committed_offset=1)
    return (groups.OffsetCommitTopic(name=names.topic, partitions=(one,)),)


def _fetch(names: Names) -> fetch.FetchRequest:
    one = fetch.FetchPartition(index=0, fetch_offset=0, max_bytes=10_000)
    topic = fetch.FetchTopic(topic_id=b"", name=names.topic, partitions=(one,))
    return fetch.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=10_000, topics=(topic,))


def _produce(names: Names) -> produce.ProduceRequest:
    one = produce.ProducePartition(index=0, records=RECORDS)
    topic = produce.ProduceTopic(name=names.topic, partitions=(one,))
    return produce.ProduceRequest(acks=-1, timeout_ms=MS, topics=(topic,))


def _acl() -> brokers.AclCreation:
    return brokers.AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
    )


_ACLS = brokers.DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)

CASES: dict[type, Case] = {
    produce.ProduceRequest: Case(_produce, T),
    fetch.FetchRequest: Case(_fetch, T),
    fetch.FetchChunkRequest: Case(lambda n: fetch.FetchChunkRequest(fetch=_fetch(n)), T),
    fetch.ListOffsetsRequest: Case(
        lambda n: fetch.ListOffsetsRequest(
            topics=(
                fetch.ListOffsetsTopic(
                    name=n.topic, partitions=(fetch.ListOffsetsPartition(index=0, timestamp_ms=-1),)
                ),
            ),
            timeout_ms=0,
        ),
        T,
    ),
    fetch.OffsetForLeaderEpochRequest: Case(
        lambda n: fetch.OffsetForLeaderEpochRequest(
            topics=(fetch.EpochTopic(name=n.topic, partitions=(fetch.EpochPartition(index=0, leader_epoch=0),)),)
        ),
        T,
    ),
    fetch.DescribeRangesRequest: Case(
        lambda n: fetch.DescribeRangesRequest(
            topics=(fetch.DescribeRangesTopic(name=n.topic, partitions=(fetch.DescribeRangesPartition(index=0),)),)
        ),
        T,
    ),
    fetch.CountRecordsRequest: Case(
        lambda n: fetch.CountRecordsRequest(
            topics=(fetch.CountRecordsTopic(name=n.topic, partitions=(fetch.CountRecordsPartition(index=0),)),)
        ),
        T,
    ),
    admin.DeleteRecordsRequest: Case(
        lambda n: admin.DeleteRecordsRequest(
            topics=(
                admin.DeleteRecordsTopic(name=n.topic, partitions=(admin.DeleteRecordsPartition(index=0, offset=0),)),
            ),
            timeout_ms=MS,
        ),
        T,
    ),
    transactions.DescribeProducersRequest: Case(
        lambda n: transactions.DescribeProducersRequest(topics=_partition(n.topic)), T
    ),
    # --- topics
    cluster.MetadataRequest: Case(
        lambda n: cluster.MetadataRequest(
            all_topics=False, topics=(cluster.TopicQuery(name=n.topic),), allow_auto_topic_creation=False
        ),
        T,
    ),
    admin.DescribeTopicPartitionsRequest: Case(lambda n: admin.DescribeTopicPartitionsRequest(topics=(n.topic,)), T),
    cluster.DescribeClusterRequest: Case(lambda _: cluster.DescribeClusterRequest(), None),
    cluster.CreateTopicsRequest: Case(
        lambda n: cluster.CreateTopicsRequest(
            topics=(cluster.CreatableTopic(name=n.topic),), timeout_ms=MS, validate_only=True
        ),
        T,
    ),
    cluster.DeleteTopicsRequest: Case(
        lambda n: cluster.DeleteTopicsRequest(
            topics=(cluster.TopicQuery(name=n.topic), cluster.TopicQuery(name=n.topic)), timeout_ms=MS
        ),  # twice: refused where it is allowed, so that the topic stays
        T,
    ),
    admin.CreatePartitionsRequest: Case(
        lambda n: admin.CreatePartitionsRequest(
            topics=(admin.PartitionsOfTopic(name=n.topic, count=2),), timeout_ms=MS, validate_only=True
        ),
        T,
    ),
    admin.ExplainCompactionRequest: Case(lambda n: admin.ExplainCompactionRequest(topic=n.topic, partition=0), T),
    cluster.DescribeConfigsRequest: Case(
        lambda n: cluster.DescribeConfigsRequest(
            resources=(cluster.ConfigResource(resource_type=2, resource_name=n.topic),)
        ),
        T,
    ),
    admin.IncrementalAlterConfigsRequest: Case(
        lambda n: admin.IncrementalAlterConfigsRequest(
            resources=(
                admin.AlterConfigsResource(
                    resource_type=2,
                    resource_name=n.topic,
                    configs=(admin.AlterableConfig(name="retention.ms", value="1000000"),),
                ),
            ),
            validate_only=True,
        ),
        T,
    ),
    # --- groups
    admin.FindCoordinatorRequest: Case(lambda n: admin.FindCoordinatorRequest(key_type=0, keys=(n.group,)), G),
    groups.JoinGroupRequest: Case(
        lambda n: groups.JoinGroupRequest(
            group_id=n.group, session_timeout_ms=10_000, member_id="", protocol_type="consumer"
        ),
        G,
    ),
    groups.SyncGroupRequest: Case(
        lambda n: groups.SyncGroupRequest(group_id=n.group, generation_id=1, member_id="m"), G
    ),
    groups.GroupHeartbeatRequest: Case(
        lambda n: groups.GroupHeartbeatRequest(group_id=n.group, generation_id=1, member_id="m"), G
    ),
    groups.LeaveGroupRequest: Case(
        lambda n: groups.LeaveGroupRequest(group_id=n.group, members=(groups.LeavingMember(member_id="m"),)), G
    ),
    groups.OffsetCommitRequest: Case(lambda n: groups.OffsetCommitRequest(group_id=n.group, topics=_offset(n)), G),
    groups.OffsetFetchRequest: Case(
        lambda n: groups.OffsetFetchRequest(
            groups=(
                groups.OffsetFetchGroup(
                    group_id=n.group,
                    topics=groups.OffsetFetchTopics(topics=(groups.OffsetFetchTopic(name=n.topic, partitions=(0,)),)),
                ),
            )
        ),
        G,
    ),
    groups.OffsetDeleteRequest: Case(
        lambda n: groups.OffsetDeleteRequest(
            group_id=n.group, topics=(groups.OffsetDeleteTopic(name=n.topic, partitions=(0,)),)
        ),
        G,
    ),
    groups.DescribeGroupsRequest: Case(lambda n: groups.DescribeGroupsRequest(groups=(n.group,)), G),
    groups.ConsumerGroupDescribeRequest: Case(lambda n: groups.ConsumerGroupDescribeRequest(group_ids=(n.group,)), G),
    admin.ListGroupsRequest: Case(lambda _: admin.ListGroupsRequest(), None),
    groups.DeleteGroupsRequest: Case(lambda n: groups.DeleteGroupsRequest(groups=(n.group,)), G),
    groups.ConsumerGroupHeartbeatRequest: Case(
        lambda n: groups.ConsumerGroupHeartbeatRequest(
            group_id=n.group,
            member_id="m",
            member_epoch=7,
            subscribed_topic_names=groups.SubscribedTopicNames(names=(n.topic,)),
        ),
        G,
    ),
    # --- transactions
    produce.InitProducerIdRequest: Case(
        lambda n: produce.InitProducerIdRequest(transactional_id=n.transactional_id), X
    ),
    transactions.AddPartitionsToTxnRequest: Case(
        lambda n: transactions.AddPartitionsToTxnRequest(
            transactions=(
                transactions.TransactionToExtend(
                    transactional_id=n.transactional_id, producer_id=1, producer_epoch=0, topics=_partition(n.topic)
                ),
            )
        ),
        X,
    ),
    transactions.AddOffsetsToTxnRequest: Case(
        lambda n: transactions.AddOffsetsToTxnRequest(
            transactional_id=n.transactional_id, producer_id=1, producer_epoch=0, group_id=n.group
        ),
        X,
    ),
    transactions.EndTxnRequest: Case(
        lambda n: transactions.EndTxnRequest(
            transactional_id=n.transactional_id, producer_id=1, producer_epoch=0, committed=True
        ),
        X,
    ),
    transactions.TxnOffsetCommitRequest: Case(
        lambda n: transactions.TxnOffsetCommitRequest(
            transactional_id=n.transactional_id, group_id=n.group, producer_id=1, producer_epoch=0, topics=_offset(n)
        ),
        X,
    ),
    transactions.WriteTxnMarkersRequest: Case(
        lambda n: transactions.WriteTxnMarkersRequest(
            markers=(
                transactions.TransactionMarker(
                    producer_id=1, producer_epoch=0, committed=False, coordinator_epoch=0, topics=_partition(n.topic)
                ),
            )
        ),
        C,
    ),
    transactions.DescribeTransactionsRequest: Case(
        lambda n: transactions.DescribeTransactionsRequest(transactional_ids=(n.transactional_id,)), X
    ),
    transactions.ListTransactionsRequest: Case(lambda _: transactions.ListTransactionsRequest(), None),
    joint.BeginJointRequest: Case(
        lambda n: joint.BeginJointRequest(
            group_id=n.transactional_id, run="r", sequence=0, token=b"t" * 16, timeout_ms=MS
        ),
        X,
    ),
    joint.CommitJointRequest: Case(
        lambda n: joint.CommitJointRequest(group_id=n.transactional_id, run="r", sequence=0), X
    ),
    joint.AbortJointRequest: Case(lambda n: joint.AbortJointRequest(group_id=n.transactional_id, sequence=0), X),
    joint.ForgetJointRequest: Case(lambda n: joint.ForgetJointRequest(group_id=n.transactional_id), X),
    joint.ListJointRequest: Case(lambda _: joint.ListJointRequest(), None),
    # --- the cluster; what would do harm names what does not exist
    admin.DescribeFeaturesRequest: Case(lambda _: admin.DescribeFeaturesRequest(), None),
    quorum.DescribeQuorumRequest: Case(lambda _: quorum.DescribeQuorumRequest(), C),
    admin.DescribeLogDirsRequest: Case(lambda _: admin.DescribeLogDirsRequest(), C),
    moves.ListPartitionReassignmentsRequest: Case(lambda _: moves.ListPartitionReassignmentsRequest(), C),
    brokers.DescribeAclsRequest: Case(lambda _: _ACLS, C),
    brokers.CreateAclsRequest: Case(lambda _: brokers.CreateAclsRequest(creations=(_acl(),)), C),
    brokers.DeleteAclsRequest: Case(lambda _: brokers.DeleteAclsRequest(filters=(_ACLS,)), C),
    credentials.DescribeUserScramCredentialsRequest: Case(
        lambda _: credentials.DescribeUserScramCredentialsRequest(), C
    ),
    credentials.AlterUserScramCredentialsRequest: Case(
        lambda _: credentials.AlterUserScramCredentialsRequest(
            deletions=(credentials.ScramDeletion(name="nobody", mechanism=1),)
        ),
        C,
    ),
    quotas.DescribeClientQuotasRequest: Case(lambda _: quotas.DescribeClientQuotasRequest(), C),
    backup.ReadMetadataRequest: Case(lambda _: backup.ReadMetadataRequest(timeout_ms=MS), C),
    backup.HoldCommitsRequest: Case(lambda _: backup.HoldCommitsRequest(holder=STRANGE, lease_ms=0), C),
    events.DescribeEventsRequest: Case(lambda _: events.DescribeEventsRequest(), C),
    quotas.DescribeQuotaUseRequest: Case(lambda _: quotas.DescribeQuotaUseRequest(max_results=1), C),
    quotas.AlterClientQuotasRequest: Case(
        lambda _: quotas.AlterClientQuotasRequest(
            entries=(
                quotas.QuotaAlteration(
                    entity=(QuotaEntity(entity_type="user", entity_name="nobody"),),
                    ops=(quotas.QuotaOp(key="producer_byte_rate", value=1.0),),
                ),
            ),
            validate_only=True,
        ),
        C,
    ),
    admin.AlterReplicaLogDirsRequest: Case(
        lambda n: admin.AlterReplicaLogDirsRequest(
            dirs=(
                admin.AlterReplicaLogDir(
                    path="/not/a/directory",
                    topics=(admin.AlterReplicaLogDirTopic(name=n.topic, partitions=(0,)),),
                ),
            )
        ),
        C,
    ),
    admin.BringLogDirOnlineRequest: Case(lambda _: admin.BringLogDirOnlineRequest(path="/not/a/directory"), C),
    moves.AlterPartitionReassignmentsRequest: Case(
        lambda n: moves.AlterPartitionReassignmentsRequest(
            topics=(
                moves.ReassignableTopic(name=n.topic, partitions=(moves.ReassignablePartition(index=0, cancel=True),)),
            )
        ),
        C,
    ),
    moves.ElectLeadersRequest: Case(
        lambda n: moves.ElectLeadersRequest(
            all_partitions=False, topics=(moves.ElectionTopic(name=n.topic, partitions=(0,)),)
        ),
        C,
    ),
    admin.UpdateFeaturesRequest: Case(
        lambda _: admin.UpdateFeaturesRequest(
            updates=(admin.FeatureUpdate(name="no.feature", level=1),), timeout_ms=MS
        ),
        C,
    ),
    brokers.UnregisterBrokerRequest: Case(lambda _: brokers.UnregisterBrokerRequest(broker_id=99), C),
    quorum.AddRaftVoterRequest: Case(
        lambda _: quorum.AddRaftVoterRequest(
            cluster_id="another one",
            timeout_ms=MS,
            voter_id=9,
            voter_directory_id=STRANGE,
            listeners=(Endpoint(name="INTERNAL", host="h", port=1),),
        ),
        C,
    ),
    quorum.RemoveRaftVoterRequest: Case(
        lambda _: quorum.RemoveRaftVoterRequest(cluster_id="another one", voter_id=9, voter_directory_id=STRANGE), C
    ),
    quorum.TransferLeadershipRequest: Case(lambda _: quorum.TransferLeadershipRequest(to_node_id=9), C),
    imports.BeginImportRequest: Case(
        lambda n: imports.BeginImportRequest(name=n.topic, last_epochs=(-1,), timeout_ms=MS), C
    ),
    imports.ImportRecordsRequest: Case(
        lambda n: imports.ImportRecordsRequest(topic_id=n.topic_id, index=0), C, by_id=True
    ),
    imports.FinishImportRequest: Case(
        lambda n: imports.FinishImportRequest(topic_id=n.topic_id, timeout_ms=MS), C, by_id=True
    ),
}

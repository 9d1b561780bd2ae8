"""The APIs of the lane, one row each: Kafka's key and versions, our message types, and the conversion between them.

Fields that Kafka's message and ours have in common are copied (convert/mirror); a row names only the functions for what
differs. Versions are those of Kafka 4.x (KIP-896 removed older ones), as far as kio has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from quorumlog.messages import (
    admin,
    brokers,
    cluster,
    credentials,
    fetch,
    groups,
    produce,
    quorum,
    quotas,
    reassignments,
    transactions,
)
from quorumlog.messages.method import Method
from quorumlog.messages.services import METHODS
from quorumlog.slices import Pace, Sliced, at_once
from quorumlog.wire.convert import admin as to_admin
from quorumlog.wire.convert import cluster as to_cluster
from quorumlog.wire.convert import consumer_groups as to_consumers
from quorumlog.wire.convert import fetch as to_fetch
from quorumlog.wire.convert import group_offsets as to_offsets
from quorumlog.wire.convert import groups as to_groups
from quorumlog.wire.convert import list_offsets as to_times
from quorumlog.wire.convert import produce as to_produce
from quorumlog.wire.convert import reassignments as to_reassignments
from quorumlog.wire.convert import throttling
from quorumlog.wire.convert import transactions as to_transactions
from quorumlog.wire.convert.mirror import from_values, from_values_sliced, to_values
from quorumlog.wire.fast.classic_groups import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from quorumlog.wire.fast.consumer_heartbeat import CONSUMER_HEARTBEAT
from quorumlog.wire.fast.fetch import FETCH
from quorumlog.wire.fast.form import FastPath
from quorumlog.wire.fast.offset_commit import OFFSET_COMMIT
from quorumlog.wire.fast.produce import PRODUCE
from quorumlog.wire.format.header import API_VERSIONS_KEY
from quorumlog.wire.format.kio_schemas import request_shape, response_shape
from quorumlog.wire.format.schema import Shape, Values
from quorumlog.wire.protocol import features

Read = Callable[[Values, int], Any]  # (values, version) -> request
ReadSliced = Callable[[Values, int, Pace], Sliced[Any]]  # the same, of an array that may be long
Write = Callable[[Any, int], Values]  # (request, version) -> values
ReadAnswer = Callable[[Values, Any, int], Any]  # (values, request, version) -> response
WriteAnswer = Callable[[Any, Any, int], Values]  # (response, request, version) -> values

METHOD_OF: dict[type, Method] = {method.request: method for method in METHODS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """oldest, newest: versions that are served, inclusive. schema: kio's name.

    announced: the versions that ApiVersions names, inclusive; not always those that are served.
    version_for: the newest version, not above the given one, that can express this request.
    fast: the fast path for messages without rare fields.
    read_sliced: the request in slices.
    """

    key: int
    schema: str
    method: Method
    oldest: int
    newest: int
    announced: tuple[int, int]
    read_sliced: ReadSliced
    write_request: Write
    read_response: ReadAnswer
    write_response: WriteAnswer
    version_for: Callable[[Any, int], int]
    fast: FastPath | None

    def read_request(self, values: Values, version: int) -> Any:
        return at_once(self.read_sliced(values, version, Pace()))

    def request_shape(self, version: int) -> Shape:
        return request_shape(self.schema, version)

    def response_shape(self, version: int) -> Shape:
        return response_shape(self.schema, version)


def api_row(
    key: int,
    schema: str,
    request: type,
    versions: tuple[int, int],
    *,
    announced: tuple[int, int] | None = None,
    read: Read | None = None,
    read_sliced: ReadSliced | None = None,
    write: Write | None = None,
    read_answer: ReadAnswer | None = None,
    write_answer: WriteAnswer | None = None,
    version_for: Callable[[Any, int], int] = lambda _request, newest: newest,
    fast: FastPath | None = None,
) -> Api:
    method = METHOD_OF[request]
    oldest, newest = versions
    return Api(
        key=key,
        schema=schema,
        method=method,
        oldest=oldest,
        newest=newest,
        announced=announced or versions,
        read_sliced=read_sliced or _in_one_slice(read) or _mirrored(request),
        write_request=write or (lambda message, _version: to_values(message)),
        read_response=read_answer or (lambda values, _request, _version: from_values(method.response, values)),
        write_response=write_answer or (lambda response, _request, _version: to_values(response)),
        version_for=version_for,
        fast=fast,
    )


def _in_one_slice(read: Read | None) -> ReadSliced | None:
    """Of a request whose arrays are short, or are read by the schema."""
    if read is None:
        return None

    def sliced(values: Values, version: int, _pace: Pace) -> Sliced[Any]:
        yield from ()
        return read(values, version)

    return sliced


def _mirrored(request: type) -> ReadSliced:
    return lambda values, _version, pace: from_values_sliced(request, values, pace)


def _rows() -> Iterator[Api]:
    yield api_row(
        0,
        "produce",
        produce.ProduceRequest,
        (3, 13),
        announced=(0, 13),  # as Kafka 4 does: older librdkafka compresses nothing for a broker without version 0
        read=to_produce.read_request,
        write=to_produce.write_request,
        read_answer=to_produce.read_response,
        write_answer=to_produce.write_response,
        version_for=to_produce.version_for,
        fast=PRODUCE,
    )
    yield api_row(
        1,
        "fetch",
        fetch.FetchRequest,
        (4, 18),
        read=to_fetch.read_request,
        write=to_fetch.write_request,
        read_answer=to_fetch.read_response,
        write_answer=to_fetch.write_response,
        version_for=to_fetch.version_for,
        fast=FETCH,
    )
    yield api_row(
        2,
        "list_offsets",
        fetch.ListOffsetsRequest,
        (1, 11),
        read_sliced=to_times.read_request,
        write_answer=to_times.write_response,
    )
    yield api_row(
        3,
        "metadata",
        cluster.MetadataRequest,
        (0, 13),
        read=to_cluster.read_metadata_request,
        write=to_cluster.write_metadata_request,
        write_answer=to_cluster.write_metadata_response,
    )
    yield from _group_rows()
    yield from _transaction_rows()
    yield api_row(
        19,
        "create_topics",
        cluster.CreateTopicsRequest,
        (2, 7),
        read_sliced=throttling.read_create_topics,
        version_for=throttling.version_for,
    )
    yield api_row(
        20,
        "delete_topics",
        cluster.DeleteTopicsRequest,
        (1, 6),
        read=to_cluster.read_delete_topics_request,
        write=to_cluster.write_delete_topics_request,
        write_answer=to_cluster.write_delete_topics_response,
        version_for=throttling.version_for,
    )
    yield api_row(21, "delete_records", admin.DeleteRecordsRequest, (0, 2))
    yield api_row(
        22,
        "init_producer_id",
        produce.InitProducerIdRequest,
        (0, 5),  # 6 is that of two-phase commit (KIP-939), which Kafka does not announce either
        read=to_transactions.read_init_request,
        version_for=to_transactions.init_version,
    )
    yield api_row(23, "offset_for_leader_epoch", fetch.OffsetForLeaderEpochRequest, (2, 4))
    yield api_row(29, "describe_acls", brokers.DescribeAclsRequest, (1, 3))
    yield api_row(30, "create_acls", brokers.CreateAclsRequest, (1, 3))
    yield api_row(31, "delete_acls", brokers.DeleteAclsRequest, (1, 3))
    yield api_row(32, "describe_configs", cluster.DescribeConfigsRequest, (1, 4))
    # The older of two APIs for one message; `BY_REQUEST` holds the newer one, which follows.
    yield api_row(
        33,
        "alter_configs",
        admin.IncrementalAlterConfigsRequest,
        (0, 2),
        read=to_admin.read_alter_configs_request,
    )
    yield api_row(34, "alter_replica_log_dirs", admin.AlterReplicaLogDirsRequest, (1, 2))
    yield api_row(
        35,
        "describe_log_dirs",
        admin.DescribeLogDirsRequest,
        (1, 5),
        read=to_admin.read_log_dirs_request,
        write=to_admin.write_log_dirs_request,
    )
    yield api_row(
        37,
        "create_partitions",
        admin.CreatePartitionsRequest,
        (0, 3),
        read_sliced=throttling.read_create_partitions,
        version_for=throttling.version_for,
    )
    yield from _reassignment_rows()
    yield api_row(44, "incremental_alter_configs", admin.IncrementalAlterConfigsRequest, (0, 1))
    yield api_row(48, "describe_client_quotas", quotas.DescribeClientQuotasRequest, (0, 1))
    yield api_row(49, "alter_client_quotas", quotas.AlterClientQuotasRequest, (0, 1))
    yield api_row(50, "describe_user_scram_credentials", credentials.DescribeUserScramCredentialsRequest, (0, 0))
    yield api_row(51, "alter_user_scram_credentials", credentials.AlterUserScramCredentialsRequest, (0, 0))
    yield api_row(
        55,
        "describe_quorum",
        quorum.DescribeQuorumRequest,
        (0, 2),
        read=to_cluster.read_quorum_request,
        write=to_cluster.write_quorum_request,
        read_answer=to_cluster.read_quorum_response,
        write_answer=to_cluster.write_quorum_response,
    )
    yield api_row(
        57,
        "update_features",
        admin.UpdateFeaturesRequest,
        (0, 2),
        read=features.read_request,
        write=features.write_request,
        read_answer=features.read_response,
        write_answer=features.write_response,
    )
    yield api_row(60, "describe_cluster", cluster.DescribeClusterRequest, (0, 2))
    yield api_row(64, "unregister_broker", brokers.UnregisterBrokerRequest, (0, 0))
    yield api_row(
        75,
        "describe_topic_partitions",
        admin.DescribeTopicPartitionsRequest,
        (0, 0),
        read=to_admin.read_topic_partitions_request,
        write=to_admin.write_topic_partitions_request,
    )
    yield api_row(80, "add_raft_voter", quorum.AddRaftVoterRequest, (0, 1))
    yield api_row(81, "remove_raft_voter", quorum.RemoveRaftVoterRequest, (0, 0))


def _reassignment_rows() -> Iterator[Api]:
    yield api_row(
        43,
        "elect_leaders",
        reassignments.ElectLeadersRequest,
        (0, 2),
        read=to_reassignments.read_elect_request,
        write=to_reassignments.write_elect_request,
    )
    yield api_row(
        45,
        "alter_partition_reassignments",
        reassignments.AlterPartitionReassignmentsRequest,
        (0, 1),
        read=to_reassignments.read_alter_request,
        write=to_reassignments.write_alter_request,
    )
    yield api_row(
        46,
        "list_partition_reassignments",
        reassignments.ListPartitionReassignmentsRequest,
        (0, 0),
        read=to_reassignments.read_list_request,
        write=to_reassignments.write_list_request,
    )


def _group_rows() -> Iterator[Api]:
    yield api_row(
        8,
        "offset_commit",
        groups.OffsetCommitRequest,
        (2, 10),
        read_sliced=to_offsets.read_commit_request,
        write_answer=to_offsets.write_commit_response,
        version_for=to_offsets.commit_version,
        fast=OFFSET_COMMIT,
    )
    yield api_row(
        9,
        "offset_fetch",
        groups.OffsetFetchRequest,
        (1, 10),
        read_sliced=to_offsets.read_fetch_request,
        write=to_offsets.write_fetch_request,
        read_answer=to_offsets.read_fetch_response,
        write_answer=to_offsets.write_fetch_response,
        version_for=to_offsets.fetch_version,
    )
    yield api_row(
        10,
        "find_coordinator",
        admin.FindCoordinatorRequest,
        (0, 6),
        read=to_admin.read_coordinator_request,
        write=to_admin.write_coordinator_request,
        read_answer=to_admin.read_coordinator_response,
        write_answer=to_admin.write_coordinator_response,
    )
    yield api_row(11, "join_group", groups.JoinGroupRequest, (0, 9), read=to_groups.read_join_request, fast=JOIN_GROUP)
    yield api_row(12, "heartbeat", groups.GroupHeartbeatRequest, (0, 4), fast=HEARTBEAT)
    yield api_row(
        13,
        "leave_group",
        groups.LeaveGroupRequest,
        (0, 5),
        read=to_groups.read_leave_request,
        write=to_groups.write_leave_request,
        read_answer=to_groups.read_leave_response,
        write_answer=to_groups.write_leave_response,
    )
    yield api_row(14, "sync_group", groups.SyncGroupRequest, (0, 5), read=to_groups.read_sync_request, fast=SYNC_GROUP)
    yield api_row(
        15,
        "describe_groups",
        groups.DescribeGroupsRequest,
        (0, 6),
        write_answer=to_groups.write_describe_response,
    )
    yield api_row(16, "list_groups", admin.ListGroupsRequest, (0, 5))
    yield api_row(42, "delete_groups", groups.DeleteGroupsRequest, (0, 2))
    yield api_row(
        47,
        "offset_delete",
        groups.OffsetDeleteRequest,
        (0, 0),
        read=to_offsets.read_delete_request,
        write=to_offsets.write_delete_request,
    )
    yield api_row(
        68,
        "consumer_group_heartbeat",
        groups.ConsumerGroupHeartbeatRequest,
        (0, 1),
        read=to_consumers.read_heartbeat_request,
        write=to_consumers.write_heartbeat_request,
        write_answer=to_consumers.write_heartbeat_response,
        version_for=to_consumers.heartbeat_version,
        fast=CONSUMER_HEARTBEAT,
    )
    yield api_row(
        69,
        "consumer_group_describe",
        groups.ConsumerGroupDescribeRequest,
        (0, 1),
        read_answer=to_consumers.read_describe_response,
        write_answer=to_consumers.write_describe_response,
    )


def _transaction_rows() -> Iterator[Api]:
    yield api_row(
        24,
        "add_partitions_to_txn",
        transactions.AddPartitionsToTxnRequest,
        (0, 5),
        read_sliced=to_transactions.read_extend_request,
        write=to_transactions.write_extend_request,
        read_answer=to_transactions.read_extend_response,
        write_answer=to_transactions.write_extend_response,
        version_for=to_transactions.extend_version,
    )
    yield api_row(
        25,
        "add_offsets_to_txn",
        transactions.AddOffsetsToTxnRequest,
        (0, 4),
        read=to_transactions.read_add_offsets_request,
        version_for=to_transactions.add_offsets_version,
    )
    yield api_row(
        26,
        "end_txn",
        transactions.EndTxnRequest,
        (0, 5),
        read=to_transactions.read_end_request,
        version_for=to_transactions.end_version,
    )
    yield api_row(27, "write_txn_markers", transactions.WriteTxnMarkersRequest, (1, 2))
    yield api_row(
        28,
        "txn_offset_commit",
        transactions.TxnOffsetCommitRequest,
        (0, 5),
        read_sliced=to_transactions.read_offsets_request,
        write_answer=to_transactions.write_offsets_response,
        version_for=to_transactions.offsets_version,
    )
    yield api_row(61, "describe_producers", transactions.DescribeProducersRequest, (0, 0))
    yield api_row(65, "describe_transactions", transactions.DescribeTransactionsRequest, (0, 0))
    yield api_row(66, "list_transactions", transactions.ListTransactionsRequest, (0, 2))


APIS: tuple[Api, ...] = tuple(_rows())
BY_KEY: dict[int, Api] = {api.key: api for api in APIS}
FEATURES = api_row(  # of the calling side; a listener answers ApiVersions by itself (local_apis.py)
    API_VERSIONS_KEY,
    "api_versions",
    admin.DescribeFeaturesRequest,
    (3, 4),
    write=features.ask_announced,
    read_answer=features.read_announced,
)
BY_REQUEST: dict[type, Api] = {api.method.request: api for api in (*APIS, FEATURES)}  # what a caller can send

ALWAYS_USED = ("produce", "fetch", "list_offsets", "metadata", "init_producer_id")


def load_newest() -> None:
    """Load the schemas of the newest versions of the APIs that every client uses, before a client waits for them.

    A schema loads when its version is first used. On a node's loop these imports take 0.2 s at its first Kafka client,
    0.25 to 1 s on a busy machine, and no heartbeat and no vote is sent meanwhile. Other APIs and versions still load at
    their first use; a few ms each, since what they have in common is loaded by then.
    """
    for api in APIS:
        if api.schema in ALWAYS_USED:
            api.request_shape(api.newest)
            api.response_shape(api.newest)

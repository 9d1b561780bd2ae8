"""Our messages through every version of their API and back: what a version can express survives, above all errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorumlog.ids import ZERO_UUID
from quorumlog.messages import (
    admin,
    brokers,
    cluster,
    common,
    credentials,
    fetch,
    produce,
    quorum,
    quotas,
    reassignments,
)
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.protocol.apis import APIS, BY_KEY, BY_REQUEST, Api
from quorumlog.wire.protocol.codec import WireRequest, decode_request, decode_response, encode_request, encode_response
from tests.wire import group_examples, transaction_examples

ID = b"t" * 16
QUERIES = (cluster.TopicQuery(name="a"), cluster.TopicQuery(name="b"))
RESOURCE = cluster.ConfigResource(resource_type=2, resource_name="a", names=("x",))

ANY_TOPIC = brokers.DescribeAclsRequest(
    resource_type_filter=2, resource_name_filter=None, principal_filter="User:x", operation=1, permission_type=1
)

DEFAULT_CLIENT = common.QuotaEntity(entity_type="client-id")

REQUESTS: list[Any] = [
    produce.ProduceRequest(
        acks=-1,
        timeout_ms=5,
        topics=(
            produce.ProduceTopic(name="a", topic_id=ID, partitions=(produce.ProducePartition(index=1, records=b"r"),)),
        ),
    ),
    fetch.FetchRequest(
        max_wait_ms=5,
        min_bytes=1,
        max_bytes=9,
        topics=(
            fetch.FetchTopic(
                topic_id=ID,
                name="a",
                partitions=(fetch.FetchPartition(index=1, fetch_offset=7, max_bytes=5, log_start_offset=2),),
            ),
        ),
        replica=fetch.ReplicaState(replica_id=2, broker_epoch=8),
    ),
    fetch.ListOffsetsRequest(
        topics=(fetch.ListOffsetsTopic(name="a", partitions=(fetch.ListOffsetsPartition(index=1, timestamp_ms=-2),)),),
    ),
    fetch.OffsetForLeaderEpochRequest(
        topics=(fetch.EpochTopic(name="a", partitions=(fetch.EpochPartition(index=1, leader_epoch=4),)),)
    ),
    cluster.MetadataRequest(all_topics=False, topics=QUERIES),
    cluster.MetadataRequest(all_topics=True),
    cluster.CreateTopicsRequest(topics=(cluster.CreatableTopic(name="a", num_partitions=2),), timeout_ms=5),
    cluster.DeleteTopicsRequest(topics=QUERIES, timeout_ms=5),
    cluster.DescribeConfigsRequest(resources=(RESOURCE,), include_documentation=True),
    cluster.DescribeClusterRequest(include_fenced_brokers=True, endpoint_type=2),
    quorum.DescribeQuorumRequest(),
    produce.InitProducerIdRequest(producer_id=5, producer_epoch=2),
    admin.CreatePartitionsRequest(topics=(admin.PartitionsOfTopic(name="a", count=4),), timeout_ms=5),
    admin.IncrementalAlterConfigsRequest(
        resources=(
            admin.AlterConfigsResource(
                resource_type=2,
                resource_name="a",
                configs=(admin.AlterableConfig(name="x", operation=1, value=None),),
            ),
        ),
    ),
    admin.DescribeTopicPartitionsRequest(
        topics=("a", "b"), cursor=admin.PartitionCursor(topic_name="a", partition_index=3)
    ),
    admin.DeleteRecordsRequest(
        topics=(admin.DeleteRecordsTopic(name="a", partitions=(admin.DeleteRecordsPartition(index=1, offset=5),)),)
    ),
    admin.AlterReplicaLogDirsRequest(
        dirs=(
            admin.AlterReplicaLogDir(path="/d", topics=(admin.AlterReplicaLogDirTopic(name="a", partitions=(1, 2)),)),
        )
    ),
    admin.DescribeLogDirsRequest(),
    admin.DescribeLogDirsRequest(all_topics=False, topics=(admin.LogDirsTopic(name="a", partitions=(1, 2)),)),
    reassignments.AlterPartitionReassignmentsRequest(
        topics=(
            reassignments.ReassignableTopic(
                name="a",
                partitions=(
                    reassignments.ReassignablePartition(index=1, replicas=(3, 1, 2)),
                    reassignments.ReassignablePartition(index=2, cancel=True),
                    reassignments.ReassignablePartition(index=4),
                ),
            ),
        ),
        timeout_ms=5,
        allow_replication_factor_change=False,
    ),
    reassignments.ListPartitionReassignmentsRequest(timeout_ms=5),
    reassignments.ListPartitionReassignmentsRequest(
        all_topics=False, topics=(reassignments.ReassignmentsOfTopic(name="a", partitions=(1, 2)),)
    ),
    reassignments.ElectLeadersRequest(
        election_type=1,
        all_partitions=False,
        topics=(reassignments.ElectionTopic(name="a", partitions=(1, 2)),),
        timeout_ms=5,
    ),
    reassignments.ElectLeadersRequest(),
    quorum.AddRaftVoterRequest(
        cluster_id="c",
        timeout_ms=5,
        voter_id=4,
        voter_directory_id=ID,
        listeners=(common.Endpoint(name="INTERNAL", host="h", port=9),),
        ack_when_committed=False,
    ),
    quorum.RemoveRaftVoterRequest(cluster_id="c", voter_id=4, voter_directory_id=ID),
    admin.UpdateFeaturesRequest(
        updates=(admin.FeatureUpdate(name="metadata.version", level=2, upgrade_type=3),), timeout_ms=5
    ),
    brokers.UnregisterBrokerRequest(broker_id=4),
    ANY_TOPIC,
    brokers.CreateAclsRequest(
        creations=(
            brokers.AclCreation(
                resource_type=2, resource_name="a", principal="User:x", host="*", operation=3, permission_type=3
            ),
        )
    ),
    brokers.DeleteAclsRequest(filters=(ANY_TOPIC,)),
    credentials.DescribeUserScramCredentialsRequest(),
    credentials.DescribeUserScramCredentialsRequest(users=(credentials.ScramUserName(name="ops,eu=1"),)),
    credentials.AlterUserScramCredentialsRequest(
        deletions=(credentials.ScramDeletion(name="a", mechanism=1),),
        upsertions=(
            credentials.ScramUpsertion(name="b", mechanism=2, iterations=4096, salt=b"s\0", salted_password=b"p" * 64),
        ),
    ),
    quotas.DescribeClientQuotasRequest(
        components=(
            quotas.QuotaComponent(entity_type="user", match_type=0, match="<default>"),
            quotas.QuotaComponent(entity_type="client-id", match_type=1),
        ),
        strict=True,
    ),
    quotas.AlterClientQuotasRequest(
        entries=(
            quotas.QuotaAlteration(
                entity=(common.QuotaEntity(entity_type="user", entity_name="a"), DEFAULT_CLIENT),
                ops=(
                    quotas.QuotaOp(key="producer_byte_rate", value=1.5e300),
                    quotas.QuotaOp(key="x", remove=True),
                ),
            ),
        ),
        validate_only=True,
    ),
]
NAMES = [f"{number}-{type(request).__name__}" for number, request in enumerate(REQUESTS)]
BY_EXAMPLE = (
    *group_examples.EXAMPLES,
    *transaction_examples.EXAMPLES,
)  # each has a test of its own
ALL = REQUESTS + [one.our_request(one.oldest) for one in BY_EXAMPLE]
ALL_NAMES = [f"{number}-{type(request).__name__}" for number, request in enumerate(ALL)]


def through(api: Api, request: Any, version: int) -> WireRequest:
    frame = b"".join(encode_request(api, RequestHeader(api.key, version, 9, "me"), request))
    cursor = Cursor(memoryview(frame)[LENGTH_BYTES:])
    return decode_request(api, cursor, read_fixed(cursor))


def answer(asked: WireRequest, response: Any) -> Any:
    return decode_response(asked, memoryview(b"".join(encode_response(asked, response)))[LENGTH_BYTES:])


def newest_by_name(api: Api, request: Any) -> int:
    return api.version_for(request, api.newest)


def test_every_api_has_an_example() -> None:
    assert {type(request) for request in ALL} == {api.method.request for api in APIS}


@pytest.mark.parametrize("request_", REQUESTS, ids=NAMES)
def test_a_request_survives_its_newest_version(request_: Any) -> None:
    api = BY_REQUEST[type(request_)]
    found = through(api, request_, api.newest).request
    assert without_names(found) == without_names(request_)


def without_names(request: Any) -> Any:
    """From the version with topic ids on, there are no names."""
    if type(request) not in (produce.ProduceRequest, fetch.FetchRequest):
        return request
    return replace(request, topics=tuple(replace(topic, name="") for topic in request.topics))


@pytest.mark.parametrize("request_", ALL, ids=ALL_NAMES)
def test_an_error_of_the_whole_request_can_be_expressed_in_every_version(request_: Any) -> None:
    """For the whole response or in its parts; DescribeLogDirs has no error before version 3."""
    api = BY_REQUEST[type(request_)]
    for version in range(api.oldest, api.newest + 1):
        asked = through(api, request_, version)
        result = answer(asked, api.method.response(error_code=41, error_message="why"))
        silent = isinstance(request_, admin.DescribeLogDirsRequest) and version < 3
        everything = isinstance(request_, cluster.MetadataRequest) and request_.all_topics and version < 13
        everything |= (
            isinstance(request_, reassignments.ElectLeadersRequest) and request_.all_partitions and not version
        )
        assert ("error_code=41" in repr(result)) is not (silent or everything), (version, result)


@pytest.mark.parametrize("api", APIS, ids=[api.schema for api in APIS])
def test_an_empty_response_can_be_expressed_in_every_version(api: Api) -> None:
    request = next(request for request in ALL if type(request) is api.method.request)
    for version in range(api.oldest, api.newest + 1):
        result = answer(through(api, request, version), api.method.response())
        assert result.error_code == 0


def test_a_leaders_hints_reach_the_producer() -> None:
    """KIP-951: a NOT_LEADER response names the leader and its address."""
    partition = produce.ProducePartitionResponse(
        index=1, error_code=6, current_leader=common.CurrentLeader(leader_id=3, leader_epoch=9)
    )
    response = produce.ProduceResponse(
        topics=(produce.ProduceTopicResponse(name="a", partitions=(partition,)),),
        node_endpoints=(common.NodeEndpoint(node_id=3, host="h", port=1),),
    )
    request = REQUESTS[0]
    result = answer(through(BY_REQUEST[type(request)], request, 12), response)
    assert result == response


def test_a_response_to_a_follower_survives() -> None:
    parts = (
        fetch.FetchPartitionResponse(index=1, high_watermark=5, last_stable_offset=5, records=b"r" * 9),
        fetch.FetchPartitionResponse(
            index=2, error_code=0, diverging_epoch=common.EpochEndOffset(epoch=3, end_offset=70)
        ),
        fetch.FetchPartitionResponse(
            index=3, error_code=6, current_leader=common.CurrentLeader(leader_id=3, leader_epoch=9)
        ),
    )
    response = fetch.FetchResponse(
        topics=(fetch.FetchTopicResponse(topic_id=ID, name="a", partitions=parts),), throttle_time_ms=4
    )
    request = REQUESTS[1]
    asked = WireRequest(BY_REQUEST[type(request)], RequestHeader(1, 18, 9), request)
    assert answer(asked, response) == response


def test_a_description_of_the_quorum_survives() -> None:
    voter = quorum.QuorumReplica(
        replica_id=1, directory_id=ID, log_end_offset=9, last_fetch_wall_ms=1_700_000_000_000, last_caught_up_wall_ms=7
    )
    node = quorum.QuorumNode(node_id=1, endpoints=(common.Endpoint(name="INTERNAL", host="h", port=5),))
    response = quorum.DescribeQuorumResponse(
        leader_id=1, leader_epoch=4, high_watermark=9, voters=(voter,), observers=(), nodes=(node,)
    )
    request = quorum.DescribeQuorumRequest()
    assert answer(through(BY_REQUEST[type(request)], request, 2), response) == response


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (
            quotas.DescribeClientQuotasRequest(),
            quotas.DescribeClientQuotasResponse(
                entries=(
                    quotas.DescribedQuota(
                        entity=(DEFAULT_CLIENT, common.QuotaEntity(entity_type="user", entity_name="<default>")),
                        values=(quotas.QuotaValue(key="request_percentage", value=0.1),),
                    ),
                )
            ),
        ),
        (
            credentials.DescribeUserScramCredentialsRequest(),
            credentials.DescribeUserScramCredentialsResponse(
                results=(
                    credentials.DescribedScramUser(
                        user="a", credential_infos=(credentials.ScramCredentialInfo(mechanism=2, iterations=8192),)
                    ),
                    credentials.DescribedScramUser(user="b", error_code=91, error_message="no"),
                )
            ),
        ),
    ],
    ids=["quotas", "credentials"],
)
def test_descriptions_of_quotas_and_credentials_survive(request_: Any, response: Any) -> None:
    api = BY_REQUEST[type(request_)]
    for version in range(api.oldest, api.newest + 1):
        assert answer(through(api, request_, version), response) == response


def test_a_topic_without_an_id_has_the_zero_id_on_the_wire() -> None:
    request = fetch.FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1, topics=(fetch.FetchTopic(topic_id=b"", name="a"),)
    )
    api = BY_REQUEST[fetch.FetchRequest]
    assert api.version_for(request, 18) == 12
    assert through(api, request, 18).request.topics[0].topic_id == ZERO_UUID


@pytest.mark.parametrize("version", [0, 1, 2])
def test_alter_configs_replaces_what_is_set(version: int) -> None:
    resource = {"resource_type": 2, "resource_name": "a", "configs": [{"name": "x", "value": "1"}]}
    api = BY_KEY[33]
    request = api.read_request({"resources": [resource], "validate_only": True}, version)
    wanted = admin.AlterConfigsResource(
        resource_type=2, resource_name="a", configs=(admin.AlterableConfig(name="x", value="1"),), replace=True
    )
    assert request == admin.IncrementalAlterConfigsRequest(resources=(wanted,), validate_only=True)


def test_answers_about_reassignments_survive() -> None:
    refused = {"error_code": 39, "error_message": "why"}
    request: Any = reassignments.AlterPartitionReassignmentsRequest()
    response: Any = reassignments.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=False,
        topics=(
            reassignments.ReassignableTopicResult(
                name="a", partitions=(reassignments.ReassignablePartitionResult(index=1, **refused),)
            ),
        ),
    )
    assert answer(through(BY_REQUEST[type(request)], request, 1), response) == response
    request = reassignments.ListPartitionReassignmentsRequest()
    ongoing = reassignments.OngoingPartitionReassignment(
        index=1, replicas=(3, 1, 2), adding_replicas=(3,), removing_replicas=(2,)
    )
    response = reassignments.ListPartitionReassignmentsResponse(
        topics=(reassignments.OngoingTopicReassignment(name="a", partitions=(ongoing,)),)
    )
    assert answer(through(BY_REQUEST[type(request)], request, 0), response) == response
    request = reassignments.ElectLeadersRequest()
    response = reassignments.ElectLeadersResponse(
        topics=(
            reassignments.ElectionTopicResult(
                name="a", partitions=(reassignments.ElectionPartitionResult(index=1, **refused),)
            ),
        )
    )
    assert answer(through(BY_REQUEST[type(request)], request, 2), response) == response


@pytest.mark.parametrize(
    ("request_", "first"),
    [
        (cluster.CreateTopicsRequest(topics=(), timeout_ms=5), 6),
        (cluster.DeleteTopicsRequest(topics=QUERIES, timeout_ms=5), 5),
        (admin.CreatePartitionsRequest(topics=(), timeout_ms=5), 3),
    ],
)
def test_older_versions_are_of_clients_that_know_no_refusal_by_a_quota(request_: Any, first: int) -> None:
    """KIP-599."""
    api = BY_REQUEST[type(request_)]
    for version in range(api.oldest, api.newest + 1):
        assert through(api, request_, version).request.takes_throttling == (version >= first)
    assert api.version_for(replace(request_, takes_throttling=False), api.newest) == first - 1

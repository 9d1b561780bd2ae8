"""Every API of the lane: Kafka's key and versions, our message types, and the conversion between them.

Each API is one row. Fields that Kafka's message and ours have in common are copied (convert/mirror); a row names only
the functions for what differs. Versions are those of Kafka 4.x (KIP-896 removed older ones), as far as kio has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from quorumlog.messages import admin, cluster, fetch, produce, quorum
from quorumlog.messages.method import Method
from quorumlog.messages.services import METHODS
from quorumlog.wire.convert import admin as to_admin
from quorumlog.wire.convert import cluster as to_cluster
from quorumlog.wire.convert import fetch as to_fetch
from quorumlog.wire.convert import produce as to_produce
from quorumlog.wire.convert.mirror import from_values, to_values
from quorumlog.wire.entities import request_shape, response_shape
from quorumlog.wire.plain.fetch import FETCH
from quorumlog.wire.plain.form import Plain
from quorumlog.wire.plain.produce import PRODUCE
from quorumlog.wire.schema import Shape, Values

Read = Callable[[Values, int], Any]  # (values, version) -> request
Write = Callable[[Any, int], Values]  # (request, version) -> values
ReadAnswer = Callable[[Values, Any, int], Any]  # (values, request, version) -> response
WriteAnswer = Callable[[Any, Any, int], Values]  # (response, request, version) -> values

METHOD_OF: dict[type, Method] = {method.request: method for method in METHODS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """oldest, newest: versions that are served, inclusive. schema: kio's name.

    announced_from: the oldest version that ApiVersions announces; None: the API is served but not announced.
    version_for: the newest version, not above the given one, that can express this request.
    plain: the fast path for messages without rare fields.
    """

    key: int
    schema: str
    method: Method
    oldest: int
    newest: int
    announced_from: int | None
    read_request: Read
    write_request: Write
    read_response: ReadAnswer
    write_response: WriteAnswer
    version_for: Callable[[Any, int], int]
    plain: Plain | None

    def request_shape(self, version: int) -> Shape:
        return request_shape(self.schema, version)

    def response_shape(self, version: int) -> Shape:
        return response_shape(self.schema, version)


def _api(
    key: int,
    schema: str,
    request: type,
    versions: tuple[int, int],
    *,
    announced: bool = True,
    announced_from: int | None = None,
    read: Read | None = None,
    write: Write | None = None,
    read_answer: ReadAnswer | None = None,
    write_answer: WriteAnswer | None = None,
    version_for: Callable[[Any, int], int] = lambda _request, newest: newest,
    plain: Plain | None = None,
) -> Api:
    method = METHOD_OF[request]
    oldest, newest = versions
    announced_oldest = oldest if announced_from is None else announced_from
    return Api(
        key=key,
        schema=schema,
        method=method,
        oldest=oldest,
        newest=newest,
        announced_from=announced_oldest if announced else None,
        read_request=read or (lambda values, _version: from_values(request, values)),
        write_request=write or (lambda message, _version: to_values(message)),
        read_response=read_answer or (lambda values, _request, _version: from_values(method.response, values)),
        write_response=write_answer or (lambda response, _request, _version: to_values(response)),
        version_for=version_for,
        plain=plain,
    )


def _rows() -> Iterator[Api]:
    yield _api(
        0,
        "produce",
        produce.ProduceRequest,
        (3, 13),
        announced_from=0,  # as Kafka 4 does: older librdkafka compresses nothing for a broker without version 0
        read=to_produce.read_request,
        write=to_produce.write_request,
        read_answer=to_produce.read_response,
        write_answer=to_produce.write_response,
        version_for=to_produce.version_for,
        plain=PRODUCE,
    )
    yield _api(
        1,
        "fetch",
        fetch.FetchRequest,
        (4, 18),
        read=to_fetch.read_request,
        write=to_fetch.write_request,
        read_answer=to_fetch.read_response,
        write_answer=to_fetch.write_response,
        version_for=to_fetch.version_for,
        plain=FETCH,
    )
    yield _api(2, "list_offsets", fetch.ListOffsetsRequest, (1, 11))
    yield _api(
        3,
        "metadata",
        cluster.MetadataRequest,
        (0, 13),
        read=to_cluster.read_metadata_request,
        write=to_cluster.write_metadata_request,
    )
    # Only version 0, which knows no coordinators but those of groups: without FindCoordinator a client waits silently,
    # but without JoinGroup, or without a coordinator for transactions, it reports an error.
    yield _api(
        10,
        "find_coordinator",
        admin.FindCoordinatorRequest,
        (0, 0),
        read=to_admin.read_coordinator_request,
        write=to_admin.write_coordinator_request,
        write_answer=to_admin.write_coordinator_response,
    )
    yield _api(16, "list_groups", admin.ListGroupsRequest, (0, 5))
    yield _api(19, "create_topics", cluster.CreateTopicsRequest, (2, 7))
    yield _api(
        20,
        "delete_topics",
        cluster.DeleteTopicsRequest,
        (1, 6),
        read=to_cluster.read_delete_topics_request,
        write=to_cluster.write_delete_topics_request,
    )
    yield _api(21, "delete_records", admin.DeleteRecordsRequest, (0, 2))
    yield _api(22, "init_producer_id", produce.InitProducerIdRequest, (0, 6))
    yield _api(23, "offset_for_leader_epoch", fetch.OffsetForLeaderEpochRequest, (2, 4))
    yield _api(32, "describe_configs", cluster.DescribeConfigsRequest, (1, 4))
    # The older of two APIs for one message; `BY_REQUEST` holds the newer one, which follows.
    yield _api(
        33,
        "alter_configs",
        admin.IncrementalAlterConfigsRequest,
        (0, 2),
        read=to_admin.read_alter_configs_request,
    )
    yield _api(
        35,
        "describe_log_dirs",
        admin.DescribeLogDirsRequest,
        (1, 5),
        read=to_admin.read_log_dirs_request,
        write=to_admin.write_log_dirs_request,
    )
    yield _api(37, "create_partitions", admin.CreatePartitionsRequest, (0, 3))
    yield _api(44, "incremental_alter_configs", admin.IncrementalAlterConfigsRequest, (0, 1))
    yield _api(
        55,
        "describe_quorum",
        quorum.DescribeQuorumRequest,
        (0, 2),
        read=to_cluster.read_quorum_request,
        write=to_cluster.write_quorum_request,
        read_answer=to_cluster.read_quorum_response,
        write_answer=to_cluster.write_quorum_response,
    )
    yield _api(60, "describe_cluster", cluster.DescribeClusterRequest, (0, 2))
    yield _api(
        75,
        "describe_topic_partitions",
        admin.DescribeTopicPartitionsRequest,
        (0, 0),
        read=to_admin.read_topic_partitions_request,
        write=to_admin.write_topic_partitions_request,
    )


APIS: tuple[Api, ...] = tuple(_rows())
BY_KEY: dict[int, Api] = {api.key: api for api in APIS}
BY_REQUEST: dict[type, Api] = {api.method.request: api for api in APIS}


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

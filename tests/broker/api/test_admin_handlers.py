"""The handlers of administrative requests against fakes: what is forwarded, answered and refused."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from broker_fakes import ORDERS, FakeContext, FakeController, Fakes, image_of, topic_records, usual_image, uuid

from quorumlog.configs.throttle import FOLLOWER_RATE, LEADER_RATE, NO_RATE
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    AlterConfigsResource,
    AlterConfigsResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResult,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    LogDirsTopic,
    PartitionCursor,
    PartitionsOfTopic,
)
from quorumlog.messages.cluster import (
    ConfigResource,
    ConfigSynonym,
    CreatableTopic,
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribedConfig,
    MetadataRequest,
    TopicQuery,
)
from quorumlog.messages.controller import AllocateProducerIdsResponse
from quorumlog.messages.fetch import (
    EpochPartition,
    EpochTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetForLeaderEpochRequest,
)
from quorumlog.messages.metadata_records import ConfigRecord, RemoveTopicRecord
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumReplica,
    TransferLeadershipRequest,
    TransferLeadershipResponse,
)
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.api.producer_ids import ProducerIds
from quorumlog_broker.api.recent_images import RecentImages
from quorumlog_quorum.metadata.image import EMPTY, Image
from tests.rules import rule

TOPIC, BROKER = 2, 4


def ask(fakes: Fakes, request: Any) -> Any:
    async def run() -> Any:
        return await HANDLERS[type(request)](fakes.services(), FakeContext(), request)

    return asyncio.run(run())


def refused(fakes: Fakes, request: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        ask(fakes, request)
    return caught.value.code


# What the controller answers.

FORWARDED: list[tuple[Any, Any]] = [
    (
        CreatePartitionsRequest(topics=(PartitionsOfTopic(name="orders", count=4),), timeout_ms=100),
        CreatePartitionsResponse(error_message="as it said"),
    ),
    (
        IncrementalAlterConfigsRequest(resources=(AlterConfigsResource(resource_type=2, resource_name="orders"),)),
        IncrementalAlterConfigsResponse(error_message="as it said"),
    ),
]


@pytest.mark.parametrize(("request_", "answer"), FORWARDED, ids=["CreatePartitions", "IncrementalAlterConfigs"])
def test_changes_go_to_the_controller(request_: Any, answer: Any) -> None:
    fakes = Fakes()
    fakes.controller.answers = [answer, NotDelivered("nobody"), OutcomeUnknown("silence")]
    assert ask(fakes, request_) is answer and fakes.controller.calls == [request_]
    assert refused(fakes, request_) is ErrorCode.NOT_CONTROLLER
    assert refused(fakes, request_) is ErrorCode.REQUEST_TIMED_OUT


def test_a_quorums_durations_are_given_as_points_in_time_too() -> None:
    fakes = Fakes()
    now_ms = fakes.services().clock.wall_ms()
    seen = QuorumReplica(replica_id=2, since_fetch_ms=5, since_caught_up_ms=9)
    never = QuorumReplica(replica_id=3)
    fakes.controller.answers = [DescribeQuorumResponse(voters=(seen,), observers=(never,))]
    found = ask(fakes, DescribeQuorumRequest())
    assert found.voters == (
        dataclasses.replace(seen, last_fetch_wall_ms=now_ms - 5, last_caught_up_wall_ms=now_ms - 9),
    )
    assert found.observers == (never,)


NEW = uuid(3000)
GROWN = image_of(topic_records("new", NEW, [1, 2]), usual_image())
MADE: list[tuple[Any, Any, Image, Image]] = [
    (
        CreateTopicsRequest(topics=(CreatableTopic(name="new"),), timeout_ms=100),
        CreateTopicsResponse(topics=(CreateTopicResult(name="new", topic_id=NEW),)),
        usual_image(),
        GROWN,
    ),
    (
        DeleteTopicsRequest(topics=(TopicQuery(name="new"),), timeout_ms=100),
        DeleteTopicsResponse(topics=(DeleteTopicResult(name="new", topic_id=NEW),)),
        GROWN,
        image_of([RemoveTopicRecord(topic_id=NEW)], GROWN),
    ),
    (
        CreatePartitionsRequest(topics=(PartitionsOfTopic(name="new", count=2),), timeout_ms=100),
        CreatePartitionsResponse(results=(CreatePartitionsResult(name="new"),)),
        image_of(topic_records("new", NEW, [1]), usual_image()),
        GROWN,
    ),
]


@pytest.mark.parametrize("validate_only", [False, True])
def test_a_new_topic_is_described_with_what_this_broker_s_file_sets(validate_only: bool) -> None:
    """The controller that makes it does not have the file; a description afterwards shows the same."""
    fakes = Fakes()
    fakes.subscription.image = GROWN
    told = (
        DescribedConfig(name="retention.ms", value="5", source=1),
        DescribedConfig(name="segment.bytes", value="1073741824", source=5),
    )
    new = CreateTopicResult(name="new", topic_id=NEW, configs=told)
    refused = CreateTopicResult(name="odd", error_code=ErrorCode.INVALID_CONFIG)
    fakes.controller.answers = [CreateTopicsResponse(topics=(new, refused))]
    topics = (CreatableTopic(name="new"), CreatableTopic(name="odd"))
    made, odd = ask(fakes, CreateTopicsRequest(topics=topics, timeout_ms=100, validate_only=validate_only)).topics
    shown = {config.name: (config.value, config.source) for config in made.configs}
    assert shown["segment.bytes"] == ("2097152", 4) and shown["retention.ms"] == ("5", 1)
    assert shown["cleanup.policy"] == ("delete", 5) and odd is refused


@pytest.mark.parametrize(
    ("request_", "answer", "before", "after"), MADE, ids=["CreateTopics", "DeleteTopics", "CreatePartitions"]
)
def test_a_change_is_known_here_before_it_is_answered(request_: Any, answer: Any, before: Image, after: Image) -> None:
    fakes = Fakes()
    fakes.subscription.image = before
    fakes.subscription.next_images.append(dataclasses.replace(after, offset=before.offset + 1))
    fakes.controller.answers = [answer]
    assert ask(fakes, request_) is answer
    assert fakes.subscription.next_images == []


@pytest.mark.parametrize(
    ("request_", "answer", "before", "_after"), MADE, ids=["CreateTopics", "DeleteTopics", "CreatePartitions"]
)
def test_a_broker_that_lags_answers_all_the_same(request_: Any, answer: Any, before: Image, _after: Image) -> None:
    fakes = Fakes()
    fakes.subscription.image = before
    fakes.controller.answers = [answer]
    assert ask(fakes, request_) is answer


TOO_LARGE: list[Any] = [
    CreatePartitionsRequest(topics=(PartitionsOfTopic(name="a", count=1),) * 11, timeout_ms=1),
    IncrementalAlterConfigsRequest(resources=(AlterConfigsResource(resource_type=2, resource_name="a"),) * 11),
    DescribeTopicPartitionsRequest(topics=("a",) * 11),
    DeleteRecordsRequest(topics=(DeleteRecordsTopic(name="a"),) * 11),
    DescribeLogDirsRequest(all_topics=False, topics=(LogDirsTopic(name="a"),) * 11),
    OffsetForLeaderEpochRequest(topics=(EpochTopic(name="a"),) * 11),
    FindCoordinatorRequest(keys=("a",) * 11),
]


@pytest.mark.parametrize("request_", TOO_LARGE, ids=[type(one).__name__ for one in TOO_LARGE])
def test_a_request_that_is_too_large_is_refused_before_anything_is_done(request_: Any) -> None:
    fakes = Fakes()
    assert refused(fakes, request_) is ErrorCode.INVALID_REQUEST
    assert fakes.controller.calls == [] and fakes.replicas.deleted == []


# InitProducerId


@rule("storage 5.5")
def test_producer_ids_come_from_a_block_and_then_from_the_next_one() -> None:
    controller = FakeController(
        answers=[
            AllocateProducerIdsResponse(first_producer_id=5, count=2),
            AllocateProducerIdsResponse(first_producer_id=100, count=1),
        ]
    )
    ids = ProducerIds(1, controller, lambda: 7)

    async def run() -> list[int]:
        return [await ids.take() for _ in range(3)]

    assert asyncio.run(run()) == [5, 6, 100]
    assert [(call.broker_id, call.broker_epoch) for call in controller.calls] == [(1, 7), (1, 7)]


FAILURES = [
    ("nobody", NotDelivered("nobody")),
    ("silence", OutcomeUnknown("silence")),
    ("stale", AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, error_message="stale")),
    ("an empty block", AllocateProducerIdsResponse(first_producer_id=5, count=0)),
]


@pytest.mark.parametrize("answer", [case[1] for case in FAILURES], ids=[case[0] for case in FAILURES])
def test_without_a_block_producers_come_again(answer: Any) -> None:
    fakes = Fakes()
    fakes.controller.answers = [answer]
    assert refused(fakes, InitProducerIdRequest()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class SlowController(FakeController):
    async def call(self, request: Any, timeout_ms: int) -> Any:
        await asyncio.sleep(0)
        return await super().call(request, timeout_ms)


def test_all_waiting_producers_fail_with_the_one_request() -> None:
    controller = SlowController(answers=[NotDelivered("nobody")])
    ids = ProducerIds(1, controller, lambda: 7)

    async def run() -> list[ErrorCode]:
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(ids.take()) for _ in range(3)]
        codes = []
        for one in waiting:
            try:
                await one
            except ApiError as error:
                codes.append(error.code)
        return codes

    assert asyncio.run(run()) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3
    assert len(controller.calls) == 1


def test_a_producer_gets_an_id_and_epoch_0() -> None:
    fakes = Fakes()
    fakes.controller.answers = [AllocateProducerIdsResponse(first_producer_id=5, count=2)]
    response = ask(fakes, InitProducerIdRequest(producer_id=3, producer_epoch=2))
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 5, 0)


@pytest.mark.parametrize(("name", "code"), [("", ErrorCode.INVALID_REQUEST), ("t", ErrorCode.NOT_COORDINATOR)])
def test_a_transactional_id_is_for_its_coordinator(name: str, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        ask(Fakes(), InitProducerIdRequest(transactional_id=name))
    assert caught.value.code is code


# DeleteRecords


def delete(*indexes: int, name: str = "orders", **fields: Any) -> DeleteRecordsRequest:
    partitions = tuple(DeleteRecordsPartition(index=index, offset=7) for index in indexes)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=name, partitions=partitions),), **fields)


def test_an_error_of_a_deletion_concerns_its_partition_alone() -> None:
    fakes = Fakes()
    fakes.replicas.refuse[1] = ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, "")
    fakes.replicas.fail[2] = ApiError(ErrorCode.REQUEST_TIMED_OUT, "")
    results = ask(fakes, delete(0, 1, 2, timeout_ms=10**6)).topics[0].partitions
    assert [(one.index, one.error_code, one.low_watermark) for one in results] == [(0, 0, 7), (1, 1, -1), (2, 7, -1)]
    assert fakes.replicas.deleted == [("orders", 0, 7, 1_000), ("orders", 2, 7, 1_000)]


@rule("group 1.4")
def test_the_clusters_own_topics_keep_their_records() -> None:
    (result,) = ask(Fakes(), delete(0, name="__consumer_offsets")).topics[0].partitions
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


# DescribeLogDirs, OffsetForLeaderEpoch


@rule("storage 7.15")
def test_directories_are_described_whole_or_as_requested() -> None:
    healthy, sick = ask(Fakes(), DescribeLogDirsRequest()).directories
    assert [len(topic.partitions) for topic in healthy.topics] == [3, 3] and sick.error_code == 56
    asked = (LogDirsTopic(name="orders", partitions=(1, 9)), LogDirsTopic(name="nobody", partitions=(0,)))
    healthy, sick = ask(Fakes(), DescribeLogDirsRequest(all_topics=False, topics=asked)).directories
    assert [(topic.name, [one.index for one in topic.partitions]) for topic in healthy.topics] == [("orders", [1])]
    assert (healthy.total_bytes, healthy.usable_bytes, sick.error_code) == (10, 5, 56)


def test_directories_are_not_called_empty_before_the_metadata_is_read() -> None:
    fakes = Fakes()
    fakes.subscription.image = image_of([])
    with pytest.raises(ApiError, match="still reading the metadata log") as refused:
        ask(fakes, DescribeLogDirsRequest())
    assert refused.value.code == ErrorCode.LEADER_NOT_AVAILABLE


def test_epoch_ends_are_given_by_topic() -> None:
    asked = EpochTopic(name="orders", partitions=(EpochPartition(index=2, current_leader_epoch=3, leader_epoch=1),))
    (topic,) = ask(Fakes(), OffsetForLeaderEpochRequest(topics=(asked,))).topics
    assert (topic.name, topic.partitions[0].leader_epoch, topic.partitions[0].end_offset) == ("orders", 1, 23)


# DescribeTopicPartitions


def wide_fakes() -> Fakes:
    """orders has 2 partitions, and `a` 3."""
    fakes = Fakes()
    fakes.subscription.image = image_of(topic_records("a", uuid(7), [1, 3, -1]), usual_image())
    return fakes


def pages(fakes: Fakes, limit: int, topics: tuple[str, ...] = ()) -> list[list[tuple[str, list[int]]]]:
    found, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)
        response = ask(fakes, request)
        found.append([(topic.name, [one.index for one in topic.partitions]) for topic in response.topics])
        cursor = response.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("limit", "want"),
    [
        (2000, [[("a", [0, 1, 2]), ("orders", [0, 1])]]),
        (3, [[("a", [0, 1, 2])], [("orders", [0, 1])]]),
        (2, [[("a", [0, 1])], [("a", [2]), ("orders", [0])], [("orders", [1])]]),
        (0, [[("a", [0])], [("a", [1])], [("a", [2])], [("orders", [0])], [("orders", [1])]]),
    ],
)
def test_pages_of_partitions(limit: int, want: list[Any]) -> None:
    assert pages(wide_fakes(), limit) == want


def test_a_full_page_ends_before_a_topic_that_is_not_there() -> None:
    found = pages(wide_fakes(), 3, ("a", "nobody", "orders"))
    assert found == [[("a", [0, 1, 2])], [("nobody", []), ("orders", [0, 1])]]


def test_how_a_partition_is_described() -> None:
    response = ask(wide_fakes(), DescribeTopicPartitionsRequest(topics=("a", "nobody", "a b")))
    found, illegal, missing = response.topics
    assert (found.topic_id, [one.leader_id for one in found.partitions]) == (uuid(7), [1, -1, -1])
    assert [one.error_code for one in found.partitions] == [0, 5, 5]
    assert found.partitions[0].offline_replicas == (3,) and found.partitions[0].isr == (1, 2)
    assert (illegal.name, illegal.error_code) == ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert (missing.name, missing.error_code) == ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_cursor_of_a_topic_that_is_gone_goes_on_with_the_next() -> None:
    cursor = PartitionCursor(topic_name="b", partition_index=1)
    response = ask(wide_fakes(), DescribeTopicPartitionsRequest(cursor=cursor))
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("orders", 2)]
    bad = PartitionCursor(topic_name="a", partition_index=-1)
    assert refused(wide_fakes(), DescribeTopicPartitionsRequest(cursor=bad)) is ErrorCode.INVALID_REQUEST


# Operations and endpoint types


@pytest.mark.parametrize(("endpoint_type", "want"), [(2, 114), (0, 115)])
def test_only_brokers_are_described(endpoint_type: int, want: int) -> None:
    assert refused(Fakes(), DescribeClusterRequest(endpoint_type=endpoint_type)) == want


def test_operations_are_given_on_request() -> None:
    query = (TopicQuery(name="orders"),)
    plain = ask(Fakes(), MetadataRequest(all_topics=False, topics=query))
    assert (plain.cluster_authorized_operations, plain.topics[0].authorized_operations) == (-(2**31), -(2**31))
    full = ask(
        Fakes(),
        MetadataRequest(
            all_topics=False,
            topics=query,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        ),
    )
    assert (full.cluster_authorized_operations, full.topics[0].authorized_operations) == (
        0b1111110100000,
        0b110111111000,
    )
    cluster = ask(Fakes(), DescribeClusterRequest(include_cluster_authorized_operations=True))
    assert cluster.cluster_authorized_operations == 0b1111110100000


# DescribeConfigs


def described(kind: int, name: str, **fields: Any) -> Any:
    records = [
        ConfigRecord(resource_type=kind, resource_name=name, name="retention.ms", value=value)
        for kind, name, value in ((BROKER, "", "3"), (BROKER, "1", "2"), (BROKER, "2", "9"), (TOPIC, "orders", "1"))
    ]
    fakes = Fakes()
    fakes.subscription.image = image_of(records, usual_image())
    request = DescribeConfigsRequest(resources=(ConfigResource(resource_type=kind, resource_name=name),), **fields)
    (result,) = ask(fakes, request).results
    return {config.name: config for config in result.configs}


def test_synonyms_say_where_a_value_could_come_from() -> None:
    config = described(TOPIC, "orders", include_synonyms=True)["retention.ms"]
    assert (config.value, config.source, config.config_type) == ("1", 1, 5)
    assert [(one.name, one.value, one.source) for one in config.synonyms] == [
        ("retention.ms", "1", 1),
        ("log.retention.ms", "2", 2),
        ("log.retention.ms", "3", 3),
        ("log.retention.ms", "604800000", 5),
    ]
    config = described(BROKER, "1", include_synonyms=True)["log.retention.ms"]
    assert (config.value, config.source, config.read_only) == ("2", 2, False)
    assert [one.source for one in config.synonyms] == [2, 3, 5]


def test_synonyms_and_documentation_are_given_on_request() -> None:
    config = described(TOPIC, "orders", include_documentation=False)["retention.ms"]
    assert (config.synonyms, config.documentation) == ((), "")
    assert described(TOPIC, "orders")["retention.ms"].documentation


def test_all_brokers_are_described_by_what_is_set_for_them() -> None:
    assert {name: config.value for name, config in described(BROKER, "").items()} == {"log.retention.ms": "3"}


TYPES = [("retention.ms", 5), ("segment.bytes", 3), ("preallocate", 1), ("cleanup.policy", 7), ("durability", 2)]


@pytest.mark.parametrize(("name", "want"), [*TYPES, ("min.cleanable.dirty.ratio", 6)])
def test_types_are_kafkas_numbers(name: str, want: int) -> None:
    assert described(TOPIC, "orders")[name].config_type == want


# Fetch with a session


def test_a_session_goes_through_the_handler() -> None:
    fakes = Fakes()

    def fetch(session_id: int, epoch: int, *indexes: int) -> Any:
        partitions = tuple(FetchPartition(index=index, fetch_offset=0, max_bytes=9) for index in indexes)
        topics = (FetchTopic(topic_id=ORDERS, partitions=partitions),) if indexes else ()
        return ask(
            fakes,
            FetchRequest(
                max_wait_ms=0, min_bytes=0, max_bytes=99, topics=topics, session_id=session_id, session_epoch=epoch
            ),
        )

    first = fetch(0, 0, 0, 1)
    assert first.session_id > 0 and len(first.topics[0].partitions) == 2
    second = fetch(first.session_id, 1)
    assert second.session_id == first.session_id
    assert [(topic.topic_id, topic.name, len(topic.partitions)) for topic in second.topics] == [(ORDERS, "", 2)]
    with pytest.raises(ApiError) as caught:
        fetch(first.session_id, 1)
    assert caught.value.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_the_newest_images_are_described_on_request() -> None:
    recent = RecentImages(kept=3)
    for offset in (3, 5, 6, 9):
        recent.on_image(dataclasses.replace(EMPTY, offset=offset, state_hash=offset))
    assert [image.offset for image in recent.newest(2)] == [6, 9]
    assert [image.offset for image in recent.newest(10)] == [5, 6, 9]
    assert [int.from_bytes(image.state_hash) for image in recent.newest(1)] == [9]
    assert recent.newest(0) == ()


def test_a_transfer_that_fails_is_told_as_the_controller_said() -> None:
    fakes = Fakes()
    answer = TransferLeadershipResponse(error_code=ErrorCode.VOTER_NOT_FOUND, error_message="node 9 is not a voter")
    fakes.controller.answers = [answer, NotDelivered("nobody")]
    request = TransferLeadershipRequest(to_node_id=9)
    assert ask(fakes, request) is answer and fakes.controller.calls == [request]
    assert refused(fakes, request) is ErrorCode.NOT_CONTROLLER


@rule("storage 9.22")
def test_settings_of_the_cleaner_are_layered_over_the_brokers_file() -> None:
    """They can be changed while it runs; other settings of the file cannot."""
    in_file = tuple(
        DescribedConfig(
            name=name, value="1", source=4, read_only=True, config_type=3,
            synonyms=(ConfigSynonym(name=name, value="1", source=4), ConfigSynonym(name=name, value="3", source=5)),
        )
        for name in ("log.cleaner.threads", "log.cleaner.backoff.ms", "log.cleaner.enable")
    )  # fmt: skip
    fakes = Fakes()
    records = [
        ConfigRecord(resource_type=BROKER, resource_name=name, name="log.cleaner.threads", value=value)
        for name, value in (("", "2"), ("1", "4"), ("2", "8"))
    ]
    fakes.subscription.image = image_of(records, usual_image())
    services = dataclasses.replace(fakes.services(), settings=in_file)

    def found(name: str) -> dict[str, Any]:
        request = DescribeConfigsRequest(
            resources=(ConfigResource(resource_type=BROKER, resource_name=name),), include_synonyms=True
        )
        (result,) = asyncio.run(HANDLERS[DescribeConfigsRequest](services, FakeContext(), request)).results
        return {config.name: config for config in result.configs}

    threads = found("1")["log.cleaner.threads"]
    assert (threads.value, threads.source, threads.read_only) == ("4", 2, False)
    assert [(one.value, one.source) for one in threads.synonyms] == [("4", 2), ("2", 3), ("1", 4), ("3", 5)]
    backoff, enable = found("1")["log.cleaner.backoff.ms"], found("1")["log.cleaner.enable"]
    assert (backoff.value, backoff.source, backoff.read_only, enable.read_only) == ("1", 4, False, True)
    assert [(name, one.value) for name, one in found("").items()] == [("log.cleaner.threads", "2")]


def test_a_rate_of_replication_that_was_left_behind_is_shown() -> None:
    """No file has it, so that only DescribeConfigs can tell why a broker is slow."""
    fakes = Fakes()
    left = ConfigRecord(resource_type=BROKER, resource_name="1", name=LEADER_RATE, value="1000")
    fakes.subscription.image = image_of([left], usual_image())
    request = DescribeConfigsRequest(resources=(ConfigResource(resource_type=BROKER, resource_name="1"),))
    (result,) = asyncio.run(HANDLERS[DescribeConfigsRequest](fakes.services(), FakeContext(), request)).results
    found = {config.name: (config.value, config.source) for config in result.configs}
    assert found[LEADER_RATE] == ("1000", 2) and found[FOLLOWER_RATE] == (str(NO_RATE), 5)


def test_too_large_a_step_of_the_cleaners_threads_is_refused_by_the_broker_and_the_rest_is_forwarded() -> None:
    fakes = Fakes()
    fakes.replicas.refused_settings = ApiError(ErrorCode.INVALID_CONFIG, "log.cleaner.threads=9: too many")
    resources = tuple(
        AlterConfigsResource(resource_type=kind, resource_name=name) for kind, name in ((4, ""), (2, "t"))
    )
    forwarded = AlterConfigsResult(resource_type=2, resource_name="t")
    fakes.controller.answers = [IncrementalAlterConfigsResponse(results=(forwarded,))]
    response = ask(fakes, IncrementalAlterConfigsRequest(resources=resources))
    assert [(one.resource_name, one.error_code) for one in response.results] == [("", 40), ("t", 0)]

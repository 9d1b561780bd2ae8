"""The APIs of a broker, each against fakes of the rooms that it uses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from broker_fakes import (
    INTERNAL,
    ORDERS,
    OUTSIDE,
    FakeContext,
    Fakes,
    broker_record,
    image_of,
    topic_records,
    usual_image,
    uuid,
)

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import (
    ConfigResource,
    CreatableTopic,
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    MetadataRequest,
    MetadataResponse,
    TopicQuery,
)
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    ReplicaState,
)
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.rpc.transport import Identity, NotDelivered, OutcomeUnknown
from quorumlog_broker.api.handlers import HANDLERS, describe_configs
from quorumlog_quorum.metadata import topic_settings
from quorumlog_storage.rules.isolation import Isolation


def ask(fakes: Fakes, request: Any, context: FakeContext | None = None) -> Any:
    async def run() -> Any:
        return await HANDLERS[type(request)](fakes.services(), context or FakeContext(), request)

    return asyncio.run(run())


def produce(acks: int = -1, indexes: tuple[int, ...] = (0, 1), **changes: Any) -> ProduceRequest:
    partitions = tuple(ProducePartition(index=index, records=b"r%d" % index) for index in indexes)
    return ProduceRequest(
        acks=acks, timeout_ms=500, topics=(ProduceTopic(name="orders", partitions=partitions),), **changes
    )


# Produce


def test_appends_are_enqueued_in_order_before_the_first_wait() -> None:
    fakes = Fakes()
    handling = HANDLERS[ProduceRequest](fakes.services(), FakeContext(), produce(indexes=(1, 0, 2)))

    async def run() -> None:
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(handling)  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert [entry[1] for entry in fakes.replicas.appended] == [1, 0, 2]
        assert not task.done()
        response = await task
        assert [partition.base_offset for partition in response.topics[0].partitions] == [100, 101, 102]

    asyncio.run(run())


def test_an_error_concerns_its_partition_alone_and_names_the_leader() -> None:
    fakes = Fakes()
    fakes.replicas.refuse[1] = ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")
    fakes.replicas.fail[2] = ApiError(ErrorCode.REQUEST_TIMED_OUT, "slow")
    response = ask(fakes, produce(indexes=(0, 1, 2)), FakeContext(listener=OUTSIDE))
    good, moved, slow = response.topics[0].partitions
    assert (good.error_code, good.base_offset) == (0, 100)
    assert (moved.error_code, moved.current_leader.leader_id, moved.current_leader.leader_epoch) == (6, 2, 7)
    assert (slow.error_code, slow.current_leader) == (ErrorCode.REQUEST_TIMED_OUT, None)
    (hint,) = response.node_endpoints
    assert (hint.node_id, hint.host, hint.port) == (2, "host2", 9192)


def test_acks_0_has_no_answer_and_an_error_ends_its_stream() -> None:
    assert ask(Fakes(), produce(acks=0)) is None
    fakes = Fakes()
    fakes.replicas.fail[1] = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "disk")
    with pytest.raises(ApiError, match="KAFKA_STORAGE_ERROR"):
        ask(fakes, produce(acks=0))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (produce(acks=2), ErrorCode.INVALID_REQUIRED_ACKS),
        (produce(transactional_id=""), ErrorCode.INVALID_REQUEST),
        (
            ProduceRequest(acks=1, timeout_ms=1, topics=(ProduceTopic(name="a"),) * 11),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_a_produce_that_is_refused_as_a_whole(request_: ProduceRequest, code: ErrorCode) -> None:
    fakes = Fakes()
    with pytest.raises(ApiError) as caught:
        ask(fakes, request_)
    assert caught.value.code is code
    assert fakes.replicas.appended == []


# Fetch, ListOffsets


def fetch(**changes: Any) -> FetchRequest:
    topics = (
        FetchTopic(topic_id=ORDERS, partitions=(partition(0), partition(1))),
        FetchTopic(topic_id=b"", name="empty"),
        FetchTopic(topic_id=b"", name="other", partitions=(partition(4),)),
    )
    return FetchRequest(**{"max_wait_ms": 10**6, "min_bytes": 1, "max_bytes": 10**6, "topics": topics, **changes})


def partition(index: int) -> FetchPartition:
    return FetchPartition(index=index, fetch_offset=0, max_bytes=100)


def test_answers_come_back_under_their_topics_and_limits_hold() -> None:
    fakes = Fakes()
    response = ask(fakes, fetch())
    assert [(topic.topic_id, topic.name) for topic in response.topics] == [(ORDERS, ""), (b"", "empty"), (b"", "other")]
    assert [[part.index for part in topic.partitions] for topic in response.topics] == [[0, 1], [], [4]]
    assert response.topics[2].partitions[0].records == b"'other'"
    assert [(params.max_wait_ms, params.max_bytes) for params in fakes.replicas.fetched] == [(1_000, 500)]


@pytest.mark.parametrize("changes", [{"max_bytes": 0}, {"max_bytes": -5}, {"min_bytes": -1}])
def test_limits_below_zero_mean_zero(changes: dict[str, int]) -> None:
    """As in Kafka, whose answer then has the first batch."""
    fakes = Fakes()
    ask(fakes, fetch(**changes))
    (params,) = fakes.replicas.fetched
    assert params.max_bytes == (0 if "max_bytes" in changes else 500)
    assert params.min_bytes == (0 if "min_bytes" in changes else 1)


def identity(node_id: int) -> Identity:
    return Identity(cluster_id="cluster", node_id=node_id, incarnation_id=uuid(9), secret=b"s")


def test_only_a_node_fetches_as_a_replica_and_only_as_itself() -> None:
    replica = ReplicaState(replica_id=2, broker_epoch=2)
    forged = [
        FakeContext(),
        FakeContext(peer=identity(2)),
        FakeContext(listener=INTERNAL),
        FakeContext(listener=INTERNAL, peer=identity(3)),
    ]
    for context in forged:
        fakes = Fakes()
        with pytest.raises(ApiError, match="CLUSTER_AUTHORIZATION_FAILED"):
            ask(fakes, fetch(replica=replica), context)
        assert fakes.replicas.fetched == []
    assert ask(Fakes(), fetch(replica=replica), FakeContext(listener=INTERNAL, peer=identity(2))).error_code == 0


@pytest.mark.parametrize("changes", [{"isolation_level": 2}, {"session_id": 5, "session_epoch": 3}])
def test_a_fetch_that_makes_no_sense_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ApiError):
        ask(Fakes(), fetch(**changes))


def test_list_offsets_answers_each_partition() -> None:
    partitions = tuple(ListOffsetsPartition(index=index, timestamp_ms=-1) for index in (3, 1))
    response = ask(Fakes(), ListOffsetsRequest(topics=(ListOffsetsTopic(name="orders", partitions=partitions),)))
    assert [(part.index, part.offset) for part in response.topics[0].partitions] == [(3, 30), (1, 10)]


def test_list_offsets_goes_by_the_id_where_there_is_one() -> None:
    """The name may be that of a former topic, in metadata that are behind."""
    fakes, part = Fakes(), ListOffsetsPartition(index=3, timestamp_ms=-1)
    named = ListOffsetsTopic(name="orders", partitions=(part,))
    meant = ListOffsetsTopic(name="orders", topic_id=b"i" * 16, partitions=(part,))
    for topic in (named, meant):
        assert [one.name for one in ask(fakes, ListOffsetsRequest(topics=(topic,))).topics] == ["orders"]
    assert fakes.replicas.listed == ["orders", b"i" * 16]


def test_list_offsets_refuses_partitions_that_are_named_twice() -> None:
    topics = [
        ListOffsetsTopic(
            name="orders", partitions=tuple(ListOffsetsPartition(index=index, timestamp_ms=-1) for index in indexes)
        )
        for indexes in ((3, 1), (3,))
    ]
    response = ask(Fakes(), ListOffsetsRequest(topics=tuple(topics)))
    found = [(part.index, part.error_code) for topic in response.topics for part in topic.partitions]
    assert found == [(3, ErrorCode.INVALID_REQUEST), (1, ErrorCode.NONE), (3, ErrorCode.INVALID_REQUEST)]


@pytest.mark.parametrize(
    ("context", "isolation"),
    [
        (FakeContext(), Isolation.HIGH_WATERMARK),
        (FakeContext(peer=identity(2)), Isolation.HIGH_WATERMARK),
        (FakeContext(listener=INTERNAL), Isolation.HIGH_WATERMARK),
        (FakeContext(listener=INTERNAL, peer=identity(3)), Isolation.HIGH_WATERMARK),
        (FakeContext(listener=INTERNAL, peer=identity(2)), Isolation.LOG_END),
    ],
    ids=["client", "client listener", "unproven", "another broker", "the broker itself"],
)
def test_only_a_proven_broker_learns_offsets_above_the_high_watermark(
    context: FakeContext, isolation: Isolation
) -> None:
    topic = ListOffsetsTopic(name="orders", partitions=(ListOffsetsPartition(index=3, timestamp_ms=-1),))
    fakes = Fakes()
    assert ask(fakes, ListOffsetsRequest(replica_id=2, topics=(topic,)), context).error_code == 0
    assert fakes.replicas.isolations == [isolation]


# Metadata, DescribeCluster


def named(*names: str, **changes: Any) -> MetadataRequest:
    return MetadataRequest(all_topics=False, topics=tuple(TopicQuery(name=name) for name in names), **changes)


def test_metadata_lists_live_brokers_at_the_listener_of_the_request() -> None:
    response: MetadataResponse = ask(Fakes(), MetadataRequest(all_topics=True), FakeContext(listener=OUTSIDE))
    assert [(broker.node_id, broker.port) for broker in response.brokers] == [(1, 9192), (2, 9192)]
    assert {endpoint.name for broker in response.brokers for endpoint in broker.endpoints} == {"CLIENT", "OUTSIDE"}
    (topic,) = response.topics
    assert [(part.leader_id, part.offline_replicas) for part in topic.partitions] == [(1, (3,)), (2, (3,))]


def test_a_request_on_the_internal_listener_gets_no_internal_address() -> None:
    response = ask(Fakes(), MetadataRequest(all_topics=True), FakeContext(listener=INTERNAL))
    assert [broker.port for broker in response.brokers] == [9092, 9092]


def test_a_leader_that_is_not_alive_is_none() -> None:
    fakes = Fakes()
    fakes.subscription.image = image_of(topic_records("late", uuid(2000), [3]), usual_image())
    (topic,) = ask(fakes, named("late")).topics
    assert (topic.partitions[0].leader_id, topic.partitions[0].error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)


def test_before_the_metadata_is_read_clients_get_a_retriable_error() -> None:
    fakes = Fakes()
    fakes.subscription.image = image_of([])
    with pytest.raises(ApiError, match="LEADER_NOT_AVAILABLE"):
        ask(fakes, MetadataRequest(all_topics=True))


def test_metadata_waits_for_the_first_broker_that_is_alive() -> None:
    fakes = Fakes()
    fakes.subscription.image = image_of([])
    fenced = image_of([broker_record(2, fenced=True)])
    fakes.subscription.next_images += [fenced, image_of([broker_record(3)], fenced)]
    response: MetadataResponse = ask(fakes, MetadataRequest(all_topics=True))
    assert [broker.node_id for broker in response.brokers] == [3]


@pytest.mark.parametrize(
    ("live", "known", "expected"), [((1, 2), True, 1), ((2, 3), True, 2), ((1, 2), False, -1), ((), True, -1)]
)
def test_the_controller_that_clients_get_is_a_broker_in_the_response(
    live: tuple[int, ...], known: bool, expected: int
) -> None:
    """This broker (1) forwards requests for the controller; while it is fenced it is not in the response."""
    fakes = Fakes()
    fakes.subscription.image = image_of([broker_record(number, fenced=number not in live) for number in (1, 2, 3)])
    if not known:
        fakes.subscription.active_controller = None
    assert ask(fakes, MetadataRequest(all_topics=True)).controller_id == expected
    assert ask(fakes, DescribeClusterRequest()).controller_id == expected


def created(name: str, code: ErrorCode = ErrorCode.NONE) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=(CreateTopicResult(name=name, error_code=code, error_message="said so"),))


def test_a_missing_topic_is_created_and_waited_for() -> None:
    fakes = Fakes()
    fakes.controller.answers.append(created("new"))
    fakes.subscription.next_images.append(image_of(topic_records("new", uuid(3000), [1]), usual_image()))
    response = ask(fakes, named("new", "orders"))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("new", 0), ("orders", 0)]
    (request,) = fakes.controller.calls
    assert request.topics == (CreatableTopic(name="new"),)


REFUSALS = [
    ("controller refuses", created("new", ErrorCode.INVALID_REPLICATION_FACTOR), 38),
    ("somebody was faster, not seen yet", created("new", ErrorCode.TOPIC_ALREADY_EXISTS), 3),
    ("nobody there", NotDelivered("no controller"), 5),
    ("lost", OutcomeUnknown("broke"), 5),
]


@pytest.mark.parametrize(("answer", "code"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
def test_a_topic_that_could_not_be_created(answer: Any, code: int) -> None:
    fakes = Fakes()
    fakes.controller.answers.append(answer)
    (topic,) = ask(fakes, named("new")).topics
    assert topic.error_code == code


def test_nothing_is_created_unless_both_sides_allow_it_and_the_name_is_legal() -> None:
    for fakes, request in [
        (Fakes(auto_create=False), named("new")),
        (Fakes(), named("new", allow_auto_topic_creation=False)),
        (Fakes(), named("not/legal")),
    ]:
        (topic,) = ask(fakes, request).topics
        assert topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
        assert fakes.controller.calls == []


def test_an_unknown_id_is_not_an_unknown_name() -> None:
    request = MetadataRequest(all_topics=False, topics=(TopicQuery(topic_id=uuid(77)), TopicQuery(topic_id=ORDERS)))
    unknown, known = ask(Fakes(), request).topics
    assert (unknown.error_code, known.name) == (ErrorCode.UNKNOWN_TOPIC_ID, "orders")


def test_describe_cluster_shows_fenced_brokers_only_when_asked() -> None:
    for include, ids in [(False, [1, 2]), (True, [1, 2, 3])]:
        response = ask(Fakes(), DescribeClusterRequest(include_fenced_brokers=include))
        assert [broker.node_id for broker in response.brokers] == ids
        assert response.state_hash == usual_image().state_hash_bytes


# Forwarding, DescribeConfigs


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotDelivered("no controller"), ErrorCode.NOT_CONTROLLER),
        (OutcomeUnknown("broke"), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_a_forwarded_call_says_whether_it_may_have_been_carried_out(error: Exception, code: ErrorCode) -> None:
    fakes = Fakes()
    fakes.controller.answers.append(error)
    with pytest.raises(ApiError) as caught:
        ask(fakes, CreateTopicsRequest(topics=(CreatableTopic(name="a"),), timeout_ms=10))
    assert caught.value.code is code


def test_topic_configs_name_their_source() -> None:
    fakes = Fakes()
    record = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5")
    fakes.subscription.image = image_of([record], usual_image())
    names = ("retention.ms", "segment.bytes", "cleanup.policy")
    (result,) = ask(
        fakes,
        DescribeConfigsRequest(resources=(ConfigResource(resource_type=2, resource_name="orders", names=names),)),
    ).results
    shown = {config.name: (config.value, config.source) for config in result.configs}
    assert shown == {"retention.ms": ("5", 1), "segment.bytes": ("2097152", 4), "cleanup.policy": ("delete", 5)}


def test_configs_of_what_is_not_there() -> None:
    resources = (
        ConfigResource(resource_type=2, resource_name="nowhere"),
        ConfigResource(resource_type=4, resource_name="9"),
        ConfigResource(resource_type=7, resource_name="x"),
        ConfigResource(resource_type=4, resource_name="1"),
    )
    results = ask(Fakes(), DescribeConfigsRequest(resources=resources)).results
    assert [result.error_code for result in results] == [3, 42, 42, 0]


def test_many_topics_are_described_in_turns_and_only_by_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client asks for the settings of every topic at once: nobody waits for all of them."""
    monkeypatch.setattr(describe_configs, "SETTINGS_A_TURN", 4)
    made: list[str] = []
    described = topic_settings._described
    monkeypatch.setattr(topic_settings, "_described", lambda key, *rest: made.append(key.name) or described(key, *rest))
    fakes = Fakes()
    asked = ConfigResource(resource_type=2, resource_name="orders", names=("retention.ms",))
    turns: list[int] = []

    async def run() -> Any:
        loop = asyncio.get_running_loop()

        def note() -> None:
            turns.append(len(made))
            loop.call_soon(note)

        loop.call_soon(note)
        request = DescribeConfigsRequest(resources=(asked,) * 10)
        return await HANDLERS[DescribeConfigsRequest](fakes.services(), FakeContext(), request)

    results = asyncio.run(run()).results
    assert [[one.name for one in result.configs] for result in results] == [["retention.ms"]] * 10
    assert made == ["retention.ms"] * 10
    assert turns[:2] == [2, 4]

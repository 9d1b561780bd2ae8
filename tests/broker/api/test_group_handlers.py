"""The handlers of groups, and how brokers protect the topic that the groups live in."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from broker_fakes import FakeClock, FakeContext, Fakes, image_of, topic_records, usual_image, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsResult,
    FindCoordinatorRequest,
    ListGroupsRequest,
    PartitionsOfTopic,
)
from quorumlog.messages.cluster import (
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    MetadataRequest,
    TopicQuery,
)
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    GroupHeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberTopicPartitions,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetDeleteRequest,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchRequest,
    OffsetFetchTopic,
    OffsetFetchTopics,
    SubscribedTopicNames,
    SyncGroupRequest,
)
from quorumlog.messages.joint import (
    AbortJointRequest,
    BeginJointRequest,
    CommitJointRequest,
    ForgetJointRequest,
    ListJointRequest,
)
from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.messages.produce import InitProducerIdRequest, ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    TransactionToExtend,
    TransactionTopic,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog.turn import Turn
from quorumlog_broker.api.handlers import HANDLERS, group_offsets
from quorumlog_broker.coordinator.placement import partition_of
from quorumlog_broker.coordinator.runtime.pending_answer import PendingAnswer
from tests.rules import rule

OFFSETS_ID = uuid(2000)
E = ErrorCode


def with_offsets(*leaders: int) -> Any:
    return image_of(topic_records(CONSUMER_OFFSETS, OFFSETS_ID, leaders), usual_image())


def fakes_with_offsets(*leaders: int) -> Fakes:
    fakes = Fakes()
    fakes.subscription.image = with_offsets(*leaders)
    return fakes


def ask(fakes: Fakes, request: Any) -> Any:
    async def answer() -> Any:
        return await HANDLERS[type(request)](fakes.services(), FakeContext(), request)

    return asyncio.run(answer())


def code_of(fakes: Fakes, request: Any) -> ErrorCode:
    """Of the whole request, raised or answered."""
    try:
        return ErrorCode(ask(fakes, request).error_code)
    except ApiError as error:
        return error.code


def find(fakes: Fakes, *keys: str, **more: Any) -> Any:
    return ask(fakes, FindCoordinatorRequest(keys=keys, **more)).coordinators


# --- FindCoordinator ---


@rule("group 1.2")
def test_the_coordinator_of_a_group_leads_its_partition() -> None:
    fakes = fakes_with_offsets(1, 2)
    for group_id in ("g", "billing", "grüppe"):
        (found,) = find(fakes, group_id)
        leader = (1, 2)[partition_of(group_id, 2)]
        assert (found.key, found.error_code, found.node_id, found.host) == (group_id, 0, leader, f"host{leader}")


@rule("group 1.2")
@pytest.mark.parametrize("leader", [-1, 3, 9], ids=["none", "fenced", "gone"])
def test_a_group_without_a_live_coordinator_is_asked_for_again(leader: int) -> None:
    (found,) = find(fakes_with_offsets(leader), "g")
    assert (found.error_code, found.node_id, found.port) == (E.COORDINATOR_NOT_AVAILABLE, -1, -1)


def created(**fields: Any) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=(CreateTopicResult(name=CONSUMER_OFFSETS, topic_id=OFFSETS_ID, **fields),))


@rule("group 1.2")
@pytest.mark.parametrize("code", [E.NONE, E.TOPIC_ALREADY_EXISTS], ids=lambda code: code.name)
def test_the_first_group_makes_the_topic(code: ErrorCode) -> None:
    fakes = Fakes()
    fakes.controller.answers = [created(error_code=code)]
    fakes.subscription.next_images = [with_offsets(2)]
    (found,) = find(fakes, "g")
    assert (found.error_code, found.node_id) == (0, 2)
    (request,) = fakes.controller.calls
    assert isinstance(request, CreateTopicsRequest)
    (topic,) = request.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == (CONSUMER_OFFSETS, 50, 3)
    assert {one.name: one.value for one in topic.configs}["cleanup.policy"] == "compact"


def test_a_topic_that_cannot_be_made_yet_is_asked_for_again() -> None:
    fakes = Fakes()
    fakes.controller.answers = [created(error_code=E.INVALID_REPLICATION_FACTOR, error_message="2 brokers")]
    (found,) = find(fakes, "g")
    assert found.error_code == E.COORDINATOR_NOT_AVAILABLE and "2 brokers" in found.error_message


@rule("group 1.3")
def test_there_are_no_other_coordinators() -> None:
    for found in find(Fakes(), "a", "b", key_type=2):
        assert (found.error_code, found.node_id, found.port) == (E.INVALID_REQUEST, -1, -1)
        assert not ErrorCode(found.error_code).retriable


# --- a broker that does not coordinate the group ---


def join(**fields: Any) -> JoinGroupRequest:
    given = {"group_id": "g", "member_id": "", "session_timeout_ms": 10_000, "protocol_type": "consumer", **fields}
    return JoinGroupRequest(**given)


OF_MEMBERS = [
    join(),
    SyncGroupRequest(group_id="g", generation_id=1, member_id="m"),
    GroupHeartbeatRequest(group_id="g", generation_id=1, member_id="m"),
    LeaveGroupRequest(group_id="g"),
    OffsetCommitRequest(group_id="g"),
    OffsetDeleteRequest(group_id="g"),
]


@pytest.mark.parametrize("request_", OF_MEMBERS, ids=lambda one: type(one).__name__)
def test_another_brokers_groups_are_refused(request_: Any) -> None:
    assert code_of(fakes_with_offsets(2), request_) is E.NOT_COORDINATOR
    assert code_of(Fakes(), request_) is E.NOT_COORDINATOR


class Passing(FakeClock):
    """Time passes with every look at it."""

    def now_ms(self) -> int:
        self.time_ms += 900
        return self.time_ms


def test_a_broker_that_is_about_to_lead_is_asked_again() -> None:
    fakes = fakes_with_offsets(1)
    fakes.clock = Passing()
    assert code_of(fakes, join()) is E.COORDINATOR_LOAD_IN_PROGRESS
    heartbeat = GroupHeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert code_of(fakes_with_offsets(1), heartbeat) is E.NONE


def test_another_brokers_groups_are_refused_one_by_one() -> None:
    fakes = fakes_with_offsets(2)
    fetched = ask(fakes, OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="a"), OffsetFetchGroup(group_id="b"))))
    assert [(one.group_id, one.error_code) for one in fetched.groups] == [("a", 16), ("b", 16)]
    described = ask(fakes, DescribeGroupsRequest(groups=("a", "b")))
    assert [(one.group_id, one.error_code) for one in described.groups] == [("a", 16), ("b", 16)]
    deleted = ask(fakes, DeleteGroupsRequest(groups=("a", "b")))
    assert [(one.group_id, one.error_code) for one in deleted.results] == [("a", 16), ("b", 16)]
    assert ask(fakes, ListGroupsRequest()).groups == ()
    assert [one.group_id for one in ask(fakes, DeleteGroupsRequest(groups=("a", "b", "a"))).results] == ["a", "b"]


@pytest.mark.parametrize("group_id", ["", "x" * 16_385, "ü" * 8_193], ids=["empty", "long", "many bytes"])
def test_a_group_needs_an_id_that_the_log_takes(group_id: str) -> None:
    for request in (join(group_id=group_id), OffsetCommitRequest(group_id=group_id)):
        assert code_of(fakes_with_offsets(1), request) is E.INVALID_GROUP_ID


HEARTBEAT = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="m",
    member_epoch=0,
    rebalance_timeout_ms=1_000,
    subscribed_topic_names=SubscribedTopicNames(names=("orders",)),
    topic_partitions=MemberTopicPartitions(),
)


def at_level_1(fakes: Fakes) -> Fakes:
    record = FeatureLevelRecord(name="group.version", level=1)
    fakes.subscription.image = image_of([record], fakes.subscription.image)
    return fakes


@rule("group 5.1")
@pytest.mark.parametrize("request_", [HEARTBEAT, ConsumerGroupDescribeRequest(group_ids=("g",))])
def test_a_cluster_at_level_0_has_no_consumer_protocol(request_: Any) -> None:
    assert code_of(fakes_with_offsets(2), request_) is E.UNSUPPORTED_VERSION
    assert code_of(at_level_1(fakes_with_offsets(2)), HEARTBEAT) is E.NOT_COORDINATOR


@rule("group 5.1")
@pytest.mark.parametrize("request_", [HEARTBEAT, ConsumerGroupDescribeRequest(group_ids=("g",))])
def test_a_broker_whose_metadata_is_late_ends_no_client(request_: Any) -> None:
    """Another broker has shown it the new level, and it goes by that."""
    fakes = fakes_with_offsets(2)
    before = fakes.subscription.image
    fakes.subscription.next_images = [at_level_1(fakes).subscription.image]
    fakes.subscription.image = before
    assert code_of(fakes, request_) is (E.NOT_COORDINATOR if request_ is HEARTBEAT else E.NONE)


def test_consumer_groups_of_another_broker_are_refused_one_by_one() -> None:
    asked = ConsumerGroupDescribeRequest(group_ids=("a", "b"), include_authorized_operations=True)
    found = ask(at_level_1(fakes_with_offsets(2)), asked)
    assert [(one.group_id, one.error_code) for one in found.groups] == [("a", 16), ("b", 16)]
    assert all(one.authorized_operations > 0 for one in found.groups)


@pytest.mark.parametrize(
    "change",
    [
        {"group_id": ""},
        {"group_id": "x" * 16_385},
        {"member_id": "x" * 16_385},
        {"group_instance_id": "x" * 16_385},
        {"rack_id": "x" * 16_385},
        {"server_assignor": "x" * 16_385},
        {"subscribed_topic_regex": "x" * 16_385},
        {"subscribed_topic_names": SubscribedTopicNames(names=("x" * 16_385,))},
        {"subscribed_topic_names": SubscribedTopicNames(names=("x",) * 11)},
    ],
)
def test_what_the_log_could_not_take_is_refused(change: Any) -> None:
    assert code_of(at_level_1(fakes_with_offsets(1)), dataclasses.replace(HEARTBEAT, **change)) is E.INVALID_REQUEST


def test_a_members_names_are_limited() -> None:
    assert code_of(fakes_with_offsets(1), join(group_instance_id="i" * 16_385)) is E.INVALID_REQUEST


TOO_LARGE = [
    OffsetCommitRequest(group_id="g", topics=(OffsetCommitTopic(name="orders"),) * 11),
    OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g"),) * 11),
    DescribeGroupsRequest(groups=("g",) * 11),
    DeleteGroupsRequest(groups=("g",) * 11),
]


@pytest.mark.parametrize("request_", TOO_LARGE, ids=lambda one: type(one).__name__)
def test_requests_are_limited(request_: Any) -> None:
    assert code_of(fakes_with_offsets(1), request_) is E.INVALID_REQUEST


def test_nothing_is_committed_without_a_coordinator() -> None:
    partitions = (OffsetCommitPartition(index=0, committed_offset=5),)
    topics = (OffsetCommitTopic(name="orders", partitions=partitions),)
    assert code_of(fakes_with_offsets(2), OffsetCommitRequest(group_id="g", topics=topics)) is E.NOT_COORDINATOR


def test_an_error_of_a_group_has_no_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of an older epoch that names its topics was answered with UNKNOWN_SERVER_ERROR."""

    def begin(*_arguments: Any) -> PendingAnswer:
        pending = PendingAnswer(Turn())
        pending.answer(OffsetFetchGroupResult(group_id="g", error_code=E.STALE_MEMBER_EPOCH))
        return pending

    monkeypatch.setattr(group_offsets, "begin", begin)
    topics = OffsetFetchTopics(topics=(OffsetFetchTopic(name="orders", partitions=(0,)),))
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g", topics=topics),))
    (found,) = ask(fakes_with_offsets(2), request).groups
    assert (found.error_code, found.topics) == (E.STALE_MEMBER_EPOCH, ())


# --- the topic is the cluster's own ---


def test_only_known_topics_of_the_cluster_are_internal() -> None:
    fakes = fakes_with_offsets(1)
    fakes.subscription.image = image_of(topic_records("__mine", uuid(3000), [1]), fakes.subscription.image)
    topics = ask(fakes, MetadataRequest(all_topics=True)).topics
    assert {one.name: one.is_internal for one in topics} == {"orders": False, "__mine": False, CONSUMER_OFFSETS: True}


@rule("group 1.4")
@pytest.mark.parametrize("named", [{"name": CONSUMER_OFFSETS}, {"topic_id": OFFSETS_ID}], ids=["name", "id"])
def test_clients_do_not_produce_to_it(named: Any) -> None:
    fakes = fakes_with_offsets(1)
    topic = ProduceTopic(**{"name": "", **named}, partitions=(ProducePartition(index=0, records=b"x"),))
    (answer,) = ask(fakes, ProduceRequest(acks=-1, timeout_ms=1_000, topics=(topic,))).topics
    assert answer.partitions[0].error_code == E.INVALID_TOPIC_EXCEPTION and not fakes.replicas.appended


@rule("group 1.4")
def test_its_partitions_keep_their_number() -> None:
    fakes = fakes_with_offsets(1)
    own, other = PartitionsOfTopic(name=CONSUMER_OFFSETS, count=9), PartitionsOfTopic(name="orders", count=9)
    (alone,) = ask(fakes, CreatePartitionsRequest(topics=(own,), timeout_ms=1_000)).results
    assert alone.error_code == E.INVALID_TOPIC_EXCEPTION and not fakes.controller.calls
    fakes.controller.answers = [CreatePartitionsResponse(results=(CreatePartitionsResult(name="orders"),))]
    results = ask(fakes, CreatePartitionsRequest(topics=(own, other), timeout_ms=1_000, validate_only=True)).results
    assert {one.name: one.error_code for one in results} == {"orders": 0, CONSUMER_OFFSETS: 17}
    assert [topic.name for topic in fakes.controller.calls[0].topics] == ["orders"]


def test_a_client_that_asks_for_it_gets_it_as_it_has_to_be() -> None:
    fakes = Fakes()
    fakes.controller.answers = [created()]
    fakes.subscription.next_images = [with_offsets(1)]
    query = TopicQuery(name=CONSUMER_OFFSETS)
    ask(fakes, MetadataRequest(all_topics=False, topics=(query,), allow_auto_topic_creation=True))
    assert fakes.controller.calls[0].topics[0].num_partitions == 50


# --- before there is any metadata ---


PRODUCER: Any = {"producer_id": 1, "producer_epoch": 0}
TOPICS = (TransactionTopic(name="orders", partitions=(0,)),)
COORDINATOR_CALLS: list[Any] = [
    join(),
    SyncGroupRequest(group_id="g", generation_id=1, member_id="m"),
    LeaveGroupRequest(group_id="g"),
    HEARTBEAT,
    ConsumerGroupDescribeRequest(group_ids=("g",)),
    OffsetCommitRequest(group_id="g"),
    OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g"),)),
    OffsetDeleteRequest(group_id="g"),
    DescribeGroupsRequest(groups=("g",)),
    DeleteGroupsRequest(groups=("g",)),
    ListGroupsRequest(),
    TxnOffsetCommitRequest(transactional_id="x", group_id="g", **PRODUCER),
    InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000),
    AddPartitionsToTxnRequest(transactions=(TransactionToExtend(transactional_id="x", topics=TOPICS, **PRODUCER),)),
    AddOffsetsToTxnRequest(transactional_id="x", group_id="g", **PRODUCER),
    EndTxnRequest(transactional_id="x", committed=True, **PRODUCER),
    DescribeTransactionsRequest(transactional_ids=("x",)),
    ListTransactionsRequest(),
    BeginJointRequest(group_id="x", run="r", sequence=0, token=bytes(16), timeout_ms=1_000),
    CommitJointRequest(group_id="x", run="r", sequence=0),
    AbortJointRequest(group_id="x", sequence=0),
    ForgetJointRequest(group_id="x"),
    ListJointRequest(),
]
OF_LEADERS = {DescribeProducersRequest, WriteTxnMarkersRequest}  # of partitions: their metadata is asked for
WELL_WHILE_IT_LOADS = {GroupHeartbeatRequest}


def test_every_call_of_a_coordinator_is_tried_before_the_metadata_is_read() -> None:
    homes = {f"quorumlog.messages.{home}" for home in ("groups", "transactions", "joint")}
    calls = {kind for kind in HANDLERS if kind.__module__ in homes}
    assert calls - OF_LEADERS - WELL_WHILE_IT_LOADS <= {*map(type, COORDINATOR_CALLS)}


@rule("group 1.5")
@pytest.mark.parametrize("asked", COORDINATOR_CALLS, ids=[type(one).__name__ for one in COORDINATOR_CALLS])
def test_before_the_metadata_is_read_clients_of_coordinators_come_again(asked: Any) -> None:
    """All but the heartbeat of a classic member, which is well while its coordinator loads, as with Kafka.

    Their clients take the error of other calls (LEADER_NOT_AVAILABLE) for the end, and an empty list for all.
    """
    fakes = Fakes()
    fakes.subscription.image = image_of([])
    fakes.clock = Passing()  # a call waits for its coordinator for a while
    assert codes_of(fakes, asked) <= {E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE}


def test_before_the_metadata_is_read_each_group_has_its_own_error() -> None:
    """A client of gRPC finds the answer of each group that it asked about, as one of the lane does."""
    fakes = Fakes()
    fakes.subscription.image = image_of([])
    fakes.clock = Passing()
    asked = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="a"), OffsetFetchGroup(group_id="b")))
    answered = [(one.group_id, one.error_code) for one in ask(fakes, asked).groups]
    assert answered == [(group, E.COORDINATOR_LOAD_IN_PROGRESS) for group in ("a", "b")]


def test_before_the_metadata_is_read_no_coordinator_is_found() -> None:
    fakes = Fakes()
    fakes.subscription.image = image_of([])
    for key_type in (0, 1):
        (found,) = find(fakes, "g", key_type=key_type)
        assert (
            found.error_code == E.COORDINATOR_NOT_AVAILABLE and "still reading the metadata log" in found.error_message
        )


def codes_of(fakes: Fakes, asked: Any) -> set[int]:
    """Of the whole answer where it has one, else those of its parts."""
    try:
        answer = ask(fakes, asked)
    except ApiError as error:
        return {error.code}
    if answer.error_code:
        return {answer.error_code}
    parts = [one for name in ("groups", "results", "transactions", "members") for one in getattr(answer, name, ())]
    found = {getattr(one, "error_code", 0) for one in parts}
    found |= {index.error_code for one in parts for topic in getattr(one, "topics", ()) for index in topic.partitions}
    return found - {0} or {0}

"""Changes with a lost answer: finding the work of the first try is success; any other error stays an error."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
from fake_cluster import TOPIC_ID, FakeCluster, TestClock

from quorumlog.client.admin import BROKER_RESOURCE, AsyncAdmin, NewTopic
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    AlterConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quorumlog.messages.cluster import (
    CreateTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown

Ask = Callable[[AsyncAdmin], Awaitable[Any]]

LOST: list[tuple[str, Any]] = [
    ("no answer", OutcomeUnknown("broke")),
    ("the broker has none", CreateTopicsResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)),
    (
        "the topic has none",
        CreateTopicsResponse(topics=(CreateTopicResult(name="new", error_code=ErrorCode.REQUEST_TIMED_OUT),)),
    ),
]


def asked(cluster: FakeCluster, ask: Ask) -> Any:
    async def scenario() -> Any:
        async with AsyncAdmin(cluster, clock=TestClock(), rng=random.Random(1), bootstrap_servers="b1") as admin:  # type: ignore[arg-type]
            return await ask(admin)

    return asyncio.run(scenario())


@pytest.mark.parametrize("lost", [row[1] for row in LOST], ids=[row[0] for row in LOST])
def test_a_topic_created_by_a_lost_first_try_counts_as_created(lost: Any) -> None:
    cluster = FakeCluster()
    cluster.fault_after(CreateTopicsRequest, lambda _: lost)
    assert asked(cluster, lambda admin: admin.create_topic("new", 2)).error_code == 0
    assert cluster.created == ["new"]
    assert sum(isinstance(request, CreateTopicsRequest) for _, request in cluster.requests) == 2


@pytest.mark.parametrize("lost", [row[1] for row in LOST], ids=[row[0] for row in LOST])
def test_a_topic_deleted_by_a_lost_first_try_counts_as_deleted(lost: Any) -> None:
    cluster = FakeCluster()
    cluster.fault_after(DeleteTopicsRequest, lambda _: lost)
    asked(cluster, lambda admin: admin.delete_topic("t"))
    assert cluster.topics == {}


@pytest.mark.parametrize("lost", [None, OutcomeUnknown("broke")], ids=["at once", "no answer"])
def test_a_topic_is_deleted_by_its_id(lost: Any) -> None:
    """A late copy of the request finds no topic of that id, even where the name is in use again."""
    cluster = FakeCluster()

    def delete(request: DeleteTopicsRequest) -> Any:
        (query,) = request.topics
        known = query.topic_id == TOPIC_ID and not query.name and cluster.topics.pop("t", None) is not None
        code = ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_ID
        return DeleteTopicsResponse(topics=(DeleteTopicResult(name="", topic_id=query.topic_id, error_code=code),))

    def first(request: DeleteTopicsRequest) -> Any:
        answer = delete(request)
        return lost or answer

    cluster.fault(DeleteTopicsRequest, first, delete, delete)
    for expected in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID):
        (result,) = asked(cluster, lambda admin: admin.delete_topics_by_id([TOPIC_ID]))
        assert result.error_code == expected and cluster.topics == {}


NO_DOUBT: list[tuple[str, Any]] = [
    ("at once", None),
    ("never sent", NotDelivered("nothing listens there")),
    ("no controller", CreateTopicsResponse(error_code=ErrorCode.NOT_CONTROLLER)),
]


@pytest.mark.parametrize("first", [row[1] for row in NO_DOUBT], ids=[row[0] for row in NO_DOUBT])
@pytest.mark.parametrize(
    ("ask", "kind", "code"),
    [
        (lambda admin: admin.create_topic("t"), CreateTopicsRequest, ErrorCode.TOPIC_ALREADY_EXISTS),
        (lambda admin: admin.delete_topic("no"), DeleteTopicsRequest, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
    ids=["create", "delete"],
)
def test_an_error_without_a_lost_try_stays_an_error(first: Any, ask: Ask, kind: type, code: ErrorCode) -> None:
    cluster = FakeCluster()
    cluster.fault(kind, lambda _: first)
    with pytest.raises(RequestFailed) as caught:
        asked(cluster, ask)
    assert caught.value.code is code


def test_an_existing_topic_stays_an_error_with_validate_only() -> None:
    cluster = FakeCluster()
    cluster.fault(CreateTopicsRequest, lambda _: OutcomeUnknown("broke"))
    with pytest.raises(RequestFailed, match="TOPIC_ALREADY_EXISTS"):
        asked(cluster, lambda admin: admin.create_topic("t", validate_only=True))


@pytest.mark.parametrize("silent", [False, True])
def test_settings_of_a_broker_go_to_that_broker_first(silent: bool) -> None:
    """It alone knows its file, and refuses what does not fit."""
    cluster = FakeCluster()
    done = AlterConfigsResult(resource_type=BROKER_RESOURCE, resource_name="3")
    answer = IncrementalAlterConfigsResponse(results=(done,))
    answers: list[Any] = [NotDelivered("refused"), answer] if silent else [answer]
    for one in answers:
        cluster.fault(IncrementalAlterConfigsRequest, lambda _, one=one: one)
    asked(cluster, lambda admin: admin.alter_configs("3", {"a": "b"}, resource_type=BROKER_RESOURCE))
    nodes = [node for node, request in cluster.requests if isinstance(request, IncrementalAlterConfigsRequest)]
    assert nodes[0] == 3 and len(nodes) == len(answers) and 3 not in nodes[1:]


REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def refused(*names: str) -> CreateTopicsResponse:
    """By the quota, but what is named "good"."""
    results = [CreateTopicResult(name=name, error_code=0 if name == "good" else REFUSED) for name in names]
    return CreateTopicsResponse(topics=tuple(results), throttle_time_ms=20)


@pytest.mark.parametrize("again", [True, False])
def test_what_a_quota_refuses_is_asked_for_again_once_it_may(again: bool) -> None:
    """Alone, and the results stay in their order (KIP-599)."""
    cluster = FakeCluster()
    cluster.fault(CreateTopicsRequest, lambda request: refused(*(topic.name for topic in request.topics)))
    wanted = [NewTopic(name="a"), NewTopic(name="good"), NewTopic(name="b")]
    results = asked(cluster, lambda admin: admin.create_topics(wanted, retry_on_quota_violation=again))
    asked_for = [
        [topic.name for topic in request.topics]
        for _, request in cluster.requests
        if isinstance(request, CreateTopicsRequest)
    ]
    assert [result.name for result in results] == ["a", "good", "b"]
    assert asked_for == ([["a", "good", "b"], ["a", "b"]] if again else [["a", "good", "b"]])
    assert [result.error_code for result in results] == ([0, 0, 0] if again else [REFUSED, 0, REFUSED])


def test_a_quota_that_lets_nobody_in_before_the_deadline_is_the_result() -> None:
    cluster = FakeCluster()
    late = CreateTopicsResponse(topics=(CreateTopicResult(name="a", error_code=REFUSED),), throttle_time_ms=3_600_000)
    cluster.fault(CreateTopicsRequest, lambda _: late)
    (result,) = asked(cluster, lambda admin: admin.create_topics([NewTopic(name="a")]))
    assert result.error_code == REFUSED


def test_a_refusal_that_names_no_time_is_not_asked_for_again_at_once() -> None:
    """A broker of another make may name none: the client makes no storm of it."""
    cluster = FakeCluster()
    answer = CreateTopicsResponse(topics=(CreateTopicResult(name="a", error_code=REFUSED),))
    times: list[float] = []

    def note(_request: Any) -> CreateTopicsResponse:
        times.append(asyncio.get_running_loop().time())
        return answer

    cluster.fault(CreateTopicsRequest, note, note, note)
    asked(cluster, lambda admin: admin.create_topics([NewTopic(name="a")]))
    assert len(times) == 3 and min(later - earlier for earlier, later in pairwise(times)) >= 0.05


def test_answers_are_known_by_their_names() -> None:
    """Kafka answers what it denies, or is asked for twice, behind all others, and once."""
    cluster = FakeCluster()
    denied = CreateTopicResult(name="a", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    first = (CreateTopicResult(name="b", error_code=REFUSED), denied)
    cluster.fault(CreateTopicsRequest, lambda _: CreateTopicsResponse(topics=first, throttle_time_ms=20))
    wanted = [NewTopic(name="a"), NewTopic(name="a"), NewTopic(name="b")]
    results = asked(cluster, lambda admin: admin.create_topics(wanted))
    assert [(one.name, one.error_code) for one in results] == [("b", 0), ("a", denied.error_code)]
    assert cluster.created == ["b"]

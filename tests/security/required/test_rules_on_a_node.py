"""A whole node with access rules of its own metadata, from the first question of a stranger to a revocation."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.messages import admin, brokers, cluster, fetch, groups, produce, quorum, quotas
from quorumlog.messages.common import QuotaEntity
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.serving.dispatch import PeerContext
from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.authorizer import Operation, ResourceType
from quorumlog.settings.rights import AUTHORIZER
from quorumlog_cli.offline.metadata_log import find_metadata_log, read_log
from tests.scenarios.asking import errors_in
from tests.scenarios.one_node import CALL_MS, GRPC, LANE, RealNode
from tests.security.required.cases import CASES, Names

E = ErrorCode
RULES_ON = {"authorizer.class.name": AUTHORIZER, "super.users": "User:root", "auto.create.topics.enable": "true"}
LITERAL, PREFIXED, ALLOW, DENY = 3, 4, 3, 2
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
NAMES = Names("mine-1", b"", "g", "x")


@pytest.fixture
def at(tmp_path: Any) -> Iterator[RealNode]:
    node = RealNode(tmp_path, RULES_ON)
    yield node
    node.close()
    assert not node.crashes


def ask(at: RealNode, wire: str, request: Any) -> Any:
    async def call() -> Any:
        connection = at.connect(wire)
        try:
            return await connection.call(request, CALL_MS)
        finally:
            await connection.close()

    return at.do(call())


def as_node(at: RealNode, request: Any) -> Any:
    """The rules need a first hand: there is no super user without a login."""
    listener = Listener(name="INTERNAL", address=Address("h", 1), internal=True)

    async def call() -> Any:
        return await at.node._handle_internal(PeerContext(listener, Caller("broker-1")), request)

    return at.do(call())


def rule(kind: int, name: str, operation: int, pattern: int = LITERAL, permission: int = ALLOW) -> brokers.AclCreation:
    return brokers.AclCreation(
        resource_type=kind, resource_name=name, resource_pattern_type=pattern, principal="User:ANONYMOUS", host="*",
        operation=operation, permission_type=permission,
    )  # fmt: skip


def add(at: RealNode, *rules: brokers.AclCreation) -> None:
    before = at.node._rights.rules.generation  # type: ignore[union-attr]
    answer = as_node(at, brokers.CreateAclsRequest(creations=rules))
    assert not errors_in(answer)

    async def applied() -> None:
        while at.node._rights.rules.generation == before:  # type: ignore[union-attr]  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    at.do(applied())


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_from_nothing_to_a_right_and_back(
    at: RealNode, wire: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO, "quorumlog.audit")
    create = cluster.CreateTopicsRequest(
        topics=(cluster.CreatableTopic(name="mine-1", num_partitions=1, replication_factor=1),), timeout_ms=CALL_MS
    )
    assert errors_in(ask(at, wire, create)) == [E.TOPIC_AUTHORIZATION_FAILED]
    assert errors_in(ask(at, wire, brokers.CreateAclsRequest(creations=(rule(TOPIC, "*", Operation.ALL),)))) == [
        E.CLUSTER_AUTHORIZATION_FAILED
    ]
    assert errors_in(ask(at, wire, quorum.DescribeQuorumRequest())) == [E.CLUSTER_AUTHORIZATION_FAILED]
    add(at, rule(TOPIC, "mine-", Operation.CREATE, PREFIXED), rule(TOPIC, "mine-", Operation.WRITE, PREFIXED))
    assert not errors_in(ask(at, wire, create))
    request: produce.ProduceRequest = CASES[produce.ProduceRequest].make(NAMES)
    assert not errors_in(ask(at, wire, request))
    read = CASES[fetch.FetchRequest].make(NAMES)
    assert errors_in(ask(at, wire, read)) == [E.TOPIC_AUTHORIZATION_FAILED], "WRITE implies DESCRIBE, and no READ"
    assert not errors_in(ask(at, wire, CASES[fetch.ListOffsetsRequest].make(NAMES)))
    add(at, rule(TOPIC, "mine-", Operation.READ, PREFIXED))
    assert not errors_in(ask(at, wire, read))
    add(at, rule(TOPIC, "mine-1", Operation.READ, LITERAL, DENY))
    assert errors_in(ask(at, wire, read)) == [E.TOPIC_AUTHORIZATION_FAILED]
    assert ask(at, wire, admin.ListGroupsRequest()).groups == ()
    at.do(at.node.stop())
    lines = [json.loads(record.message) for record in caplog.records if record.name == "quorumlog.audit"]
    made = [line for line in lines if line["result"] == "done"]
    assert [(line["api"], line["resources"]) for line in made] == [("CreateTopics", ["mine-1"])]
    assert made[0]["rule"] == "User:ANONYMOUS may CREATE topic mine-* from anywhere", made
    assert re.fullmatch(r"1:\d+:\d+", made[0]["request"])
    offset = made[0]["metadata_offset"]
    (by,) = [one.meaning for one in read_log(find_metadata_log(tmp_path / "a"), offset, offset + 1)]
    assert by["type"] == "ChangedByRecord" and by["principal"] == "User:ANONYMOUS", by
    lines = [line for line in lines if line["result"] == "denied"]
    of_topic = [line for line in lines if line["resource"] == "mine-1" and line["operation"] == "READ"]
    assert [(line["api"], line["count"]) for line in of_topic] == [("Fetch", 2)]
    assert {line["principal"] for line in lines} == {"User:ANONYMOUS"}
    assert all(re.fullmatch(r"1:\d+:\d+", line["request"]) for line in lines)
    assert "no rule" in of_topic[0]["rule"], of_topic


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_an_expression_of_a_group_finds_no_topic_that_may_not_be_described(at: RealNode, wire: str) -> None:
    names = ("mine-1", "theirs-1")
    topics = tuple(cluster.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    made = as_node(at, cluster.CreateTopicsRequest(topics=topics, timeout_ms=CALL_MS))
    ids = {one.topic_id: one.name for one in made.topics}
    add(at, rule(GROUP, "g", Operation.READ), rule(TOPIC, "mine-", Operation.READ, PREFIXED))
    epoch, found = 0, None
    for _ in range(200):
        ask(at, wire, CASES[admin.FindCoordinatorRequest].make(NAMES))
        beat = groups.ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", member_epoch=epoch, rebalance_timeout_ms=CALL_MS if not epoch else -1,
            subscribed_topic_regex=".*-1", topic_partitions=None if epoch else groups.MemberTopicPartitions(),
        )  # fmt: skip
        answer = ask(at, wire, beat)
        if not answer.error_code:
            epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                found = [ids[one.topic_id] for one in answer.assignment.topic_partitions]
                break
        at.do(asyncio.sleep(0.02))
    assert found == ["mine-1"]


def test_a_request_that_names_a_resource_twice_ends_no_node(at: RealNode) -> None:
    """One part of it is denied, one is refused by the broker, and one names the refused one again."""
    add(at, rule(GROUP, "g", Operation.ALTER_CONFIGS), rule(GROUP, "g", Operation.DESCRIBE_CONFIGS))

    def resource(name: str, value: str) -> admin.AlterConfigsResource:
        setting = admin.AlterableConfig(name="consumer.session.timeout.ms", value=value)
        return admin.AlterConfigsResource(resource_type=32, resource_name=name, configs=(setting,))

    for asked in [("1", "45000"), ("45000", "1"), ("45000", "45000"), ("1", "1")]:
        parts = (resource("theirs", "45000"), *(resource("g", value) for value in asked))
        answer = ask(at, LANE, admin.IncrementalAlterConfigsRequest(resources=parts))
        codes = [one.error_code for one in answer.results]
        assert len(codes) == 3 and codes[0] == E.GROUP_AUTHORIZATION_FAILED and all(codes), answer
    described = tuple(cluster.ConfigResource(resource_type=32, resource_name=name) for name in ("theirs", "g", "g"))
    answer = ask(at, LANE, cluster.DescribeConfigsRequest(resources=described))
    assert [one.error_code for one in answer.results] == [E.GROUP_AUTHORIZATION_FAILED, 0, 0], answer


@pytest.mark.parametrize("wire", [GRPC, LANE])
def test_a_fetch_that_is_put_off_and_denied_in_part_ends_no_node(at: RealNode, wire: str) -> None:
    """A client above its quota is answered without a topic (KIP-219)."""
    topic = cluster.CreatableTopic(name="mine-1", num_partitions=1, replication_factor=1)
    as_node(at, cluster.CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS))
    add(at, rule(TOPIC, "mine-", Operation.READ, PREFIXED), rule(TOPIC, "mine-", Operation.WRITE, PREFIXED))
    ask(at, wire, CASES[produce.ProduceRequest].make(NAMES))
    entity = (QuotaEntity(entity_type="user", entity_name="ANONYMOUS"),)
    few = quotas.QuotaAlteration(entity=entity, ops=(quotas.QuotaOp(key="consumer_byte_rate", value=1.0),))
    assert not errors_in(as_node(at, quotas.AlterClientQuotasRequest(entries=(few,))))
    mine, theirs = (CASES[fetch.FetchRequest].make(NAMES._replace(topic=name)) for name in ("mine-1", "theirs-1"))
    both = replace(mine, topics=(*mine.topics, *theirs.topics))

    async def held_back() -> Any:
        """Ends once a fetch hears nothing but how long it has to wait."""
        while True:
            connection = at.connect(wire)
            answer = await connection.call(both, CALL_MS)
            await connection.close()
            if not answer.topics or at.crashes:
                return answer

    answer = at.do(held_back())
    assert answer.throttle_time_ms and not answer.topics

"""Access rules on a whole node, over both wires: made, described, removed, in force in its authorizer, and after a
restart still there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from one_node import CALL_MS, GRPC, LANE, RealNode

from quorumlog.errors import ErrorCode
from quorumlog.messages.brokers import (
    AclCreation,
    AclDescription,
    AclResource,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeAclsResponse,
    MatchingAcl,
)
from quorumlog.rpc.transport import Connection
from quorumlog.security.acl.authorizer import RuleAuthorizer
from quorumlog.security.acl.report_only import ReportOnly
from quorumlog.security.authorizer import AllowAll, Operation, ResourceType
from quorumlog.security.principal import Principal
from quorumlog.settings.rights import AUTHORIZER
from quorumlog.wire.protocol.apis import BY_REQUEST

ON = {"authorizer.class.name": AUTHORIZER, "super.users": "User:root;User:ANONYMOUS"}
ALICE = Principal("User", "alice")
ALL = DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1)


def reading(name: str, **changes: Any) -> AclCreation:
    fields = {
        "resource_type": 2,
        "resource_name": name,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return AclCreation(**fields | changes)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("acls"), ON)
    yield made
    made.close()
    assert made.crashes == []


Call = Callable[[Any], Any]


@pytest.fixture(params=[GRPC, LANE], ids=["grpc", "lane"])
def call(node: RealNode, request: pytest.FixtureRequest) -> Iterator[Call]:
    connection = node.connect(request.param)
    yield caller(node, connection)
    node.do(connection.close())


def caller(node: RealNode, connection: Connection) -> Call:
    async def ask(what: Any) -> Any:
        return await connection.call(what, CALL_MS)

    return lambda what: node.do(ask(what))


def may_read(node: RealNode, name: str) -> bool:
    return node.node.authorizer.authorize(ALICE, "10.0.0.1", Operation.READ, ResourceType.TOPIC, name)


def test_rules_come_and_go(node: RealNode, call: Call) -> None:
    assert not may_read(node, "orders")
    made = (reading("orders"), reading("or", resource_pattern_type=4, permission_type=2), reading(""))
    response = call(CreateAclsRequest(creations=made))
    codes = [ErrorCode(one.error_code) for one in response.results]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert response.results[2].error_message == "Invalid empty resource name"
    assert not may_read(node, "orders"), "denied by the prefix"

    described = call(replace(ALL, resource_name_filter="orders", pattern_type_filter=2))
    rule = AclDescription(principal="User:alice", host="*", operation=3, permission_type=3)
    assert described.resources == (
        AclResource(resource_type=2, resource_name="or", pattern_type=4, acls=(replace(rule, permission_type=2),)),
        AclResource(resource_type=2, resource_name="orders", pattern_type=3, acls=(rule,)),
    )

    removed = call(DeleteAclsRequest(filters=(replace(ALL, permission_type=2), replace(ALL, operation=0))))
    gone = MatchingAcl(
        resource_type=2,
        resource_name="or",
        pattern_type=4,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=2,
    )
    assert removed.filter_results[0].matching_acls == (gone,)
    assert removed.filter_results[1].error_code == ErrorCode.INVALID_REQUEST
    assert may_read(node, "orders")
    call(DeleteAclsRequest(filters=(ALL,)))
    assert call(ALL).resources == ()
    assert not may_read(node, "orders")


def test_a_filter_of_what_nobody_knows_is_refused(call: Call) -> None:
    response: DescribeAclsResponse = call(replace(ALL, permission_type=0))
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_of_the_lane(node: RealNode, version: int) -> None:
    for request in (
        CreateAclsRequest(creations=(reading("v"), reading("v", resource_pattern_type=4))),
        replace(ALL, resource_name_filter="v"),
        replace(ALL, principal_filter="User:alice", host_filter="*"),
        DeleteAclsRequest(filters=(ALL,)),
    ):
        api = BY_REQUEST[type(request)]
        assert api.oldest <= version <= api.newest
        read = api.read_request(api.write_request(request, version), version)
        assert read == request


def test_rules_outlive_a_restart(tmp_path: Path) -> None:
    at = RealNode(tmp_path, ON)
    connection = at.connect(LANE)
    caller(at, connection)(CreateAclsRequest(creations=(reading("kept"),)))
    at.do(connection.close())
    at.restart()
    assert isinstance(at.node.authorizer, RuleAuthorizer)
    assert may_read(at, "kept") and not may_read(at, "other")
    at.close()
    assert at.crashes == []


def test_a_node_without_an_authorizer_has_no_rules(tmp_path: Path) -> None:
    at = RealNode(tmp_path)
    assert isinstance(at.node.authorizer, AllowAll)
    connection = at.connect(LANE)
    response = caller(at, connection)(ALL)
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert "set authorizer.class.name" in response.error_message
    at.do(connection.close())
    at.close()


def test_a_node_that_only_reports(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    at = RealNode(tmp_path, {**ON, "quorumlog.authorizer.report.only": "true"})
    assert isinstance(at.node.authorizer, ReportOnly)
    assert may_read(at, "a") and may_read(at, "a")
    assert "would be refused: User:alice from 10.0.0.1: READ topic a: no rule is about this name" in caplog.text
    assert caplog.text.count("would be refused") == 1
    at.close()

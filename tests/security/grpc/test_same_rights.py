"""The same call of the same client, denied and allowed, on both wires: the same principal, the same code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from protected_node import LOGINS, SECURE, USER, ProtectedNode, delivered

from quorumlog.client.real_edges import make_transport, security_of
from quorumlog.messages.admin import DescribeFeaturesRequest
from quorumlog.rpc.transport import Connection
from quorumlog.security.principal import Principal
from quorumlog.wire.protocol.apis import BY_REQUEST
from tests.scenarios.asking import errors_in
from tests.scenarios.one_node import LANE, make_topic
from tests.security.required.cases import CASES, DENIALS, Names
from tests.security.required.scripted_rules import ScriptedRules

# The lane answers DescribeFeatures by ApiVersions, which asks nobody for a right
ASKED = [request_type for request_type in CASES if request_type is not DescribeFeaturesRequest]
each = pytest.mark.parametrize("request_type", ASKED, ids=lambda one: one.__name__)
AUTO, GRPC = "auto", "grpc"


@dataclass
class World:
    node: ProtectedNode
    rules: ScriptedRules
    connections: dict[str, Connection]
    names: Names

    def ask(self, transport: str, request: Any) -> set[int]:
        """Its errors."""
        self.node.came.clear()
        answer = self.node.do(delivered(self.connections[transport], request))
        (came,) = self.node.came
        by_grpc = transport == GRPC or type(request) not in BY_REQUEST
        assert (came.listener, came.principal) == (LOGINS if by_grpc else SECURE, f"User:{USER}")
        return set(errors_in(answer))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    rules = ScriptedRules()
    node = ProtectedNode(tmp_path_factory.mktemp("node"), rules=rules)
    plain = node.connect(LANE)
    topic_id = node.do(make_topic(plain, "there"))
    node.do(plain.close())
    security = security_of(node.by_login())

    async def connect(kind: str) -> Connection:
        return make_transport(kind, security).connect(node.address(SECURE), internal=False)

    connections = {kind: node.do(connect(kind)) for kind in (AUTO, GRPC)}
    yield World(node, rules, connections, Names("there", topic_id, "group-there", "id-there"))
    for connection in connections.values():
        node.do(connection.close())
    node.close()
    assert not node.crashes


@each
def test_a_denial_has_the_same_code(world: World, request_type: type) -> None:
    """Invariant 11."""
    case = CASES[request_type]
    world.rules.deny(lambda _need, _name: True)
    request = case.make(world.names)
    world.rules.askers.clear()
    errors = {transport: world.ask(transport, request) for transport in (AUTO, GRPC)}
    assert errors[AUTO] == errors[GRPC] == ({case.denied} if case.denied is not None else set())
    assert world.rules.askers <= {(Principal("User", USER), "127.0.0.1")}


@each
def test_what_is_allowed_is_denied_on_neither(world: World, request_type: type) -> None:
    world.rules.allow_all()
    request = CASES[request_type].make(world.names)
    for transport in (AUTO, GRPC):
        assert not DENIALS & world.ask(transport, request)

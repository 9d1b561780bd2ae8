"""Which part answers which request on the internal listener."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import EnvelopeRequest, GetReplicaLogInfoRequest, ProbeRequest, RegisterBrokerRequest
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.services import METHODS
from quorumlog.rpc.transport import Handler
from quorumlog.security.required.nodes_only import INTERNAL_SERVICES
from quorumlog_quorum.controller.requests.requests import RULES
from quorumlog_server.process.internal_requests import TO_QUORUM, internal_handler


def named(name: str) -> Handler:
    async def handle(_context: Any, _request: Any) -> str:
        return name

    return handle


def ask(request: Any, controller: bool = True, broker: bool = True) -> Any:
    handler = internal_handler(
        node_id=7,
        incarnation_id=b"i" * 16,
        quorum=named("quorum"),
        controller=named("controller") if controller else None,
        broker=named("broker") if broker else None,
    )

    async def run() -> Any:
        return await handler(None, request)  # type: ignore[arg-type]

    return asyncio.run(run())


def blank(kind: type) -> Any:
    """A request of which only the type is used."""
    return object.__new__(kind)


def test_each_request_is_routed() -> None:
    assert [ask(blank(kind)) for kind in TO_QUORUM] == ["quorum"] * len(TO_QUORUM)
    assert [ask(blank(kind)) for kind in RULES] == ["controller"] * len(RULES)
    assert ask(blank(FetchRequest)) == "broker"


def test_every_internal_method_is_routed_to_the_quorum_or_controller() -> None:
    internal = {method.request for method in METHODS if method.service in INTERNAL_SERVICES}
    assert internal - {ProbeRequest, GetReplicaLogInfoRequest, EnvelopeRequest} <= {*TO_QUORUM, *RULES}
    assert ask(blank(GetReplicaLogInfoRequest)) == "broker"


def test_a_probe_returns_the_incarnation() -> None:
    answer = ask(ProbeRequest())
    assert (answer.node_id, answer.incarnation_id) == (7, b"i" * 16)


@pytest.mark.parametrize(
    ("kind", "code"), [(RegisterBrokerRequest, ErrorCode.NOT_CONTROLLER), (FetchRequest, ErrorCode.INVALID_REQUEST)]
)
def test_a_missing_role_is_refused(kind: type, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        ask(blank(kind), controller=False, broker=False)
    assert caught.value.code is code

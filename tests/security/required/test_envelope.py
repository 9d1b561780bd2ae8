"""A client's request that a broker passes on to the controller."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from quorumlog.messages.cluster import CreateTopicsResponse
from quorumlog.messages.controller import EnvelopeRequest, EnvelopeResponse
from quorumlog.rpc.caller import Caller
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.envelope import read_answer, read_envelope, seal, seal_answer
from quorumlog.rpc.serving.dispatch import PeerContext
from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.principal import Principal
from quorumlog.security.required.nodes_only import NODES_ONLY
from tests.rules import rule
from tests.security.required.cases import CASES, Names

NODE = PeerContext(Listener(name="INTERNAL", address=Address("h", 1), internal=True), Caller("broker-1"))
NAMES = Names("t", b"i" * 16, "g", "x")
text = st.text(max_size=20)


def client(principal: Principal, host: str = "10.0.0.7", client_id: str = "c") -> PeerContext:
    listener = Listener(name="CLIENT", address=Address("h", 1), internal=False)
    return PeerContext(listener, Caller(client_id, principal=principal), host)


@given(st.sampled_from(list(CASES)), text, text, text)
@rule("security 1.12")
def test_a_request_arrives_as_it_was_for_whom_it_was(kind: type, name: str, host: str, client_id: str) -> None:
    request = CASES[kind].make(NAMES)
    who = client(Principal("User", name), host, client_id)
    behalf, method, opened = read_envelope(NODE, seal(request, who))
    assert (behalf.principal, behalf.client_host, behalf.client_id) == (who.principal, host, client_id)
    assert opened == request and method.request is kind
    assert behalf.peer is None, "a client is no node, whoever brings its request"


@pytest.mark.parametrize("response", [CreateTopicsResponse(), CreateTopicsResponse(error_code=41, error_message="why")])
def test_an_answer_comes_back(response: Any) -> None:
    request = CASES_CREATE
    sealed = seal_answer(response)
    assert sealed.error_code == response.error_code
    assert read_answer(request, sealed) == response


CASES_CREATE = next(CASES[kind].make(NAMES) for kind in CASES if kind.__name__ == "CreateTopicsRequest")


def test_a_refused_envelope_is_an_answer_of_the_request() -> None:
    refused = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message="ask another")
    answer = read_answer(UpdateFeaturesRequest(timeout_ms=1), refused)
    assert answer == UpdateFeaturesResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message="ask another")


def refusal(envelope: EnvelopeRequest) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        read_envelope(NODE, envelope)
    return refused.value.code


def sealed_as(**fields: Any) -> EnvelopeRequest:
    known = {
        "principal_type": "User", "principal_name": "a", "client_host": "", "client_id": "",
        "method": "/quorumlog.v1.Broker/CreateTopics", "request": b"",
    }  # fmt: skip
    return EnvelopeRequest(**{**known, **fields})


@pytest.mark.parametrize("kind", sorted(NODES_ONLY, key=lambda one: one.__name__))
def test_no_call_of_nodes_is_passed_on(kind: type) -> None:
    path = BY_REQUEST[kind].method.path
    assert refusal(sealed_as(method=path)) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@rule("security 1.13")
def test_nobody_is_passed_on_as_a_node() -> None:
    assert refusal(sealed_as(principal_type="Node")) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_what_cannot_be_read_is_refused() -> None:
    assert refusal(sealed_as(method="/quorumlog.v1.Broker/Strange")) is ErrorCode.UNSUPPORTED_VERSION
    assert refusal(sealed_as(request=b"\xff\xff\xff")) is ErrorCode.INVALID_REQUEST
    with pytest.raises(ApiError):
        read_answer(CASES_CREATE, EnvelopeResponse(response=b"\xff\xff\xff"))

"""Any bytes at the gate of an internal listener: it answers, refuses, and holds no more than its limits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transport_worlds import identity

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.proof.caller_session import CallerSession
from quorumlog.proof.scram_client import ScramClient
from quorumlog.proof.scram_text import NONCE_BYTES, new_nonce
from quorumlog.proof.server_sessions import StaleProof
from quorumlog.rpc import prove_method
from quorumlog.rpc.caller import Shown
from quorumlog.rpc.proof_log import ProofLog
from quorumlog.rpc.serving.certified import Certified
from quorumlog.rpc.serving.dispatch import Dispatch
from quorumlog.rpc.serving.gate import Gate
from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.tls.peer import ClusterNode
from tests.parts import few
from tests.rules import rule

PATH = "/quorumlog.v1.Quorum/Vote"
WHERE = "ipv4:10.0.0.7:5555"


async def no_handler(_context: Any, _request: Any) -> Any:
    raise AssertionError("nothing is carried out here")


def numbers() -> Callable[[int], bytes]:
    counter = count(1)
    return lambda size: next(counter).to_bytes(size, "big")


def gate(*, internal: bool = True, auth: NodeAuth = NodeAuth.SECRET) -> Gate:
    listener = Listener(name="I", address=Address("h", 1), internal=internal)
    dispatch = Dispatch(listener=listener, identity=identity(1), handler=no_handler, on_crash=lambda *_: None)
    return Gate(dispatch, numbers(), ProofLog(), auth)


def prove(one: Gate, node_id: NodeId) -> CallerSession:
    """A session of a node that has proven that it knows the secret."""
    own = identity(node_id)
    scram = ScramClient(own.keys, own.peer, new_nonce(b"n" * NONCE_BYTES))
    final = scram.final(one.prove(scram.first(), WHERE, 0))
    return CallerSession(scram.verify(one.prove(final, WHERE, 0)))


def certificate(node_id: NodeId, cluster_id: str = "c1") -> Certified:
    return Certified(None, ClusterNode(cluster_id, node_id), "f" * 64, 0)


@pytest.mark.parametrize(
    ("auth", "shows", "certified", "claims", "served"),
    [
        (NodeAuth.SECRET, True, None, None, True),
        (NodeAuth.SECRET, False, certificate(2), 2, False),
        (NodeAuth.BOTH, True, None, None, True),
        (NodeAuth.BOTH, True, certificate(2), None, True),
        (NodeAuth.BOTH, True, certificate(3), None, False),
        (NodeAuth.BOTH, True, certificate(3), 3, False),
        (NodeAuth.BOTH, False, certificate(2), 2, True),
        (NodeAuth.BOTH, False, certificate(2), 3, False),
        (NodeAuth.BOTH, False, certificate(2), None, False),
        (NodeAuth.BOTH, False, None, 2, False),
        (NodeAuth.MTLS, True, None, None, False),
        (NodeAuth.MTLS, True, None, 2, False),
        (NodeAuth.MTLS, True, certificate(2), None, False),
        (NodeAuth.MTLS, True, certificate(2), 2, True),
        (NodeAuth.MTLS, False, certificate(2), 2, True),
        (NodeAuth.MTLS, False, certificate(2, "c2"), 2, False),
    ],
)
@rule("security 1.14")
def test_who_is_let_in_by_what_it_shows(
    auth: NodeAuth, shows: bool, certified: Certified | None, claims: NodeId | None, served: bool
) -> None:
    """shows: a proof of the secret, as node 2. claims: which node it says it is beside its certificate."""
    one = gate(auth=auth)
    proof = prove(one, NodeId(2)).sign(PATH, b"data") if shows else None
    node = identity(claims).peer if claims is not None else None
    caller = one.enter(Shown("me", proof, None, node), PATH, b"data", WHERE, 0, certified).caller
    assert (caller.peer is not None) is served, caller.refusal
    assert caller.peer is None or caller.peer.node_id == 2


@settings(max_examples=few(300))
@given(st.sampled_from([b"", b"n,,", b"n,,n=c1/2/AgICAgICAgICAgICAgICAg,r=", b"c=biws,r="]), st.binary(max_size=1_500))
def test_any_message_of_a_proof_is_answered(start: bytes, rest: bytes) -> None:
    answer = gate().prove(start + rest, WHERE, 0)
    assert answer.startswith((b"r=", b"e="))


@settings(max_examples=few(200))
@given(st.none() | st.binary(max_size=100) | st.binary(min_size=64, max_size=64), st.binary(max_size=50))
def test_no_call_passes_without_a_proof(proof: bytes | None, data: bytes) -> None:
    try:
        entry = gate().enter(Shown("me", proof), PATH, data, WHERE, 0)
    except StaleProof:
        return
    assert entry.caller.peer is None and entry.stream is None
    assert entry.caller.refusal is not None
    assert entry.caller.refusal.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@given(st.none() | st.binary(max_size=100))
def test_a_client_listener_looks_at_no_proof(proof: bytes | None) -> None:
    entry = gate(internal=False).enter(Shown("me", proof), PATH, b"", WHERE, 0)
    assert (entry.caller.client_id, entry.caller.peer, entry.caller.refusal) == ("me", None, None)


@pytest.mark.parametrize("code", [31, 34, 104, 9999, "x", ""])
def test_a_refusal_is_read_as_what_it_says(code: object) -> None:
    with pytest.raises(prove_method.ApiError) as refused:
        prove_method.read_answer(f"e={code} the reason".encode())
    assert refused.value.message == "the reason"
    known = {31: "CLUSTER_AUTHORIZATION_FAILED", 34: "ILLEGAL_SASL_STATE", 104: "INCONSISTENT_CLUSTER_ID"}
    assert refused.value.code.name == known.get(code, "CLUSTER_AUTHORIZATION_FAILED")  # type: ignore[call-overload]


def test_a_stranger_is_named_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "quorumlog.rpc.proof_log")
    one = gate()
    for second in range(70):
        one.enter(Shown("", None), PATH, b"", f"ipv4:10.0.0.7:{5_000 + second}", second)
    first, second_line = (record.getMessage() for record in caplog.records)
    assert first.startswith("refused ipv4:10.0.0.7:5000 at I h:1: listener I serves nodes only")
    assert "(59 more" in second_line

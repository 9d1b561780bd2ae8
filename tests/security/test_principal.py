"""Principals as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.security.authorizer import AllowAll, Operation, ResourceType
from quorumlog.security.principal import ANONYMOUS, Principal, node_principal, parse_principal
from quorumlog.security.protocol import SecurityProtocol


@given(kind=st.text(min_size=1).filter(lambda text: ":" not in text), name=st.text(min_size=1))
def test_a_principal_reads_back(kind: str, name: str) -> None:
    principal = Principal(kind, name)
    assert parse_principal(str(principal)) == principal


@pytest.mark.parametrize("text", ["", "alice", ":alice", "User:", ":"])
def test_half_a_principal_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not TYPE:NAME; write User:NAME"):
        parse_principal(text)


def test_names_may_hold_colons() -> None:
    assert parse_principal("User:a:b") == Principal("User", "a:b")
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert str(node_principal(3)) == "Node:3"


def test_what_each_protocol_does() -> None:
    assert {p.name: (p.tls, p.sasl) for p in SecurityProtocol} == {
        "PLAINTEXT": (False, False),
        "SSL": (True, False),
        "SASL_PLAINTEXT": (False, True),
        "SASL_SSL": (True, True),
    }


def test_without_rules_everything_is_allowed() -> None:
    everybody = AllowAll()
    assert everybody.authorize(ANONYMOUS, "", Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")
    assert everybody.authorize_any(ANONYMOUS, "", Operation.WRITE, ResourceType.TOPIC)

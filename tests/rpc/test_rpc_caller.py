"""Call metadata: reading returns what was sent, and any other metadata is read without an error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.rpc.caller import CLIENT_ID, PROOF, Shown, host_of, read_metadata, to_metadata
from quorumlog.rpc.transport import Identity
from tests.parts import few

KEYS = st.sampled_from([CLIENT_ID, PROOF, "ql-other", "user-agent"])


@settings(max_examples=few(80))
@given(st.text(max_size=30), st.none() | st.binary(max_size=80))
def test_round_trip(client_id: str, proof: bytes | None) -> None:
    assert read_metadata(to_metadata(client_id, proof)) == Shown(client_id, proof)


@settings(max_examples=few(80))
@given(st.lists(st.tuples(KEYS, st.text() | st.binary(max_size=20))))
def test_reading_never_raises(pairs: list[tuple[str, str | bytes]]) -> None:
    shown = read_metadata(pairs)
    assert isinstance(shown.client_id, str) and isinstance(shown.proof, bytes | None)


@given(st.binary(min_size=4, max_size=64))
@settings(max_examples=few(30))
def test_a_secret_is_never_printed(secret: bytes) -> None:
    identity = Identity(cluster_id="c", node_id=1, incarnation_id=bytes(16), secret=secret)
    shown = repr(identity) + str(identity) + repr(identity.peer)
    assert repr(secret) not in shown and secret.hex() not in shown


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.7:5000", "10.0.0.7"),
        ("ipv6:%5B::1%5D:5000", "::1"),
        ("ipv6:[fe80::1%25eth0]:5000", "fe80::1%eth0"),
        ("unix:/tmp/socket", ""),
        ("", ""),
    ],
)
def test_the_host_of_a_grpc_peer(peer: str, host: str) -> None:
    assert host_of(peer) == host

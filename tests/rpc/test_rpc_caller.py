"""Call metadata: reading returns what was sent, and any other metadata is read without an error."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorumlog.rpc.caller import (
    CLIENT_ID,
    CLUSTER_ID,
    INCARNATION_ID,
    NODE_ID,
    SECRET,
    Caller,
    read_metadata,
    to_metadata,
)
from quorumlog.rpc.transport import Identity

IDENTITIES = st.builds(
    Identity,
    cluster_id=st.text(max_size=30),
    node_id=st.integers(0, 2**31 - 1),
    incarnation_id=st.binary(min_size=16, max_size=16),
    secret=st.binary(max_size=64),
)
KEYS = st.sampled_from([CLIENT_ID, CLUSTER_ID, INCARNATION_ID, NODE_ID, SECRET, "ql-other", "user-agent"])


@settings(max_examples=80)
@given(st.none() | IDENTITIES, st.text(max_size=30))
def test_round_trip(identity: Identity | None, client_id: str) -> None:
    assert read_metadata(to_metadata(identity, client_id)) == Caller(client_id, identity)


@settings(max_examples=80)
@given(st.lists(st.tuples(KEYS, st.text() | st.binary(max_size=20))))
def test_reading_never_raises(pairs: list[tuple[str, str | bytes]]) -> None:
    caller = read_metadata(pairs)
    assert caller.claimed is None or caller.claimed.node_id >= 0


@given(IDENTITIES.filter(lambda identity: len(identity.secret) > 3))
@settings(max_examples=30)
def test_a_secret_is_never_printed(identity: Identity) -> None:
    shown = repr(Caller("", identity)) + str(identity)
    assert repr(identity.secret) not in shown and identity.secret.hex() not in shown

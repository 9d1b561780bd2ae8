"""Nodes of another life of the cluster are refused: by name, by text, and by the salt where a server does not look."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_scram import CLIENT_NONCE, KEYS, PEER, SECRET, SERVER_NONCE

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation, next_incarnation, parse_incarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.proof.keys import keys_of
from quorumlog.proof.peer import Peer, name_of, peer_of
from quorumlog.proof.same_cluster import check_same_cluster
from quorumlog.proof.scram_client import NotProven, ScramClient
from quorumlog.proof.scram_server import ScramServer
from tests.rules import rule

ONE, OTHER = next_incarnation(FIRST, b"\1" * 16), next_incarnation(FIRST, b"\2" * 16)
TWO = next_incarnation(ONE, b"\3" * 16)


def of(incarnation: ClusterIncarnation, cluster_id: str = "c1") -> Peer:
    return replace(PEER, cluster_id=cluster_id, cluster_incarnation=incarnation)


def exchange(calling: ClusterIncarnation, serving: ClusterIncarnation) -> None:
    """Raises ApiError, NotProven."""
    client = ScramClient(keys_of(SECRET, "c1", calling), of(calling), CLIENT_NONCE)
    server = ScramServer(keys_of(SECRET, "c1", serving), "c1", SERVER_NONCE, serving)
    client.verify(server.final(client.final(server.first(client.first()))))


@rule("kraft 13.1")
@pytest.mark.parametrize("incarnation", [FIRST, ONE, TWO, ClusterIncarnation(2**31 - 1, b"\xff" * 16)])
@pytest.mark.parametrize("cluster_id", ["c1", "a/b", "a.b/c"])
def test_a_name_carries_the_incarnation(incarnation: ClusterIncarnation, cluster_id: str) -> None:
    peer = of(incarnation, cluster_id)
    assert peer_of(name_of(peer)) == peer
    assert parse_incarnation(str(incarnation)) == incarnation


@rule("kraft 13.2")
def test_a_cluster_that_was_never_recovered_has_the_names_and_keys_of_older_software() -> None:
    assert name_of(PEER).count("/") == 2
    assert keys_of(SECRET, "c1", FIRST).client_key == KEYS.client_key


@pytest.mark.parametrize(
    "text", ["", "1", "x.", "0.AQEBAQEBAQEBAQEBAQEBAQ", "1.AAAAAAAAAAAAAAAAAAAAAA", "-1.a", "01." + "A" * 22]
)
def test_what_is_no_incarnation(text: str) -> None:
    with pytest.raises(ValueError):
        parse_incarnation(text)


@pytest.mark.parametrize("incarnation", [FIRST, ONE, TWO])
def test_nodes_of_one_incarnation_prove_themselves(incarnation: ClusterIncarnation) -> None:
    exchange(incarnation, incarnation)


FORMAT = "quorumlog storage format -c FILE -t c1 --cluster-incarnation "
REFUSED = [
    ("an earlier caller", FIRST, ONE, f"node 2 is of an earlier cluster incarnation, 0; .*{FORMAT}{ONE}"),
    ("an earlier server", ONE, FIRST, f"the node at this address is of an earlier .*, 0; .*{FORMAT}{ONE}"),
    ("two recoveries ago", ONE, TWO, f"node 2 is of an earlier cluster incarnation, {ONE}; .*{FORMAT}{TWO}"),
    (
        "recovered twice",
        ONE,
        OTHER,
        f"cluster c1 was recovered twice: .*{FORMAT}INCARNATION on every node of the other",
    ),
]


@rule("kraft 13.1")
@pytest.mark.parametrize(("calling", "serving", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_another_incarnation_is_refused(calling: ClusterIncarnation, serving: ClusterIncarnation, says: str) -> None:
    with pytest.raises(ApiError, match=says) as refusal:
        exchange(calling, serving)
    assert refusal.value.code is ErrorCode.INCONSISTENT_CLUSTER_ID


def test_another_cluster_is_named_first() -> None:
    with pytest.raises(ApiError, match="this is cluster c2, not c1"):
        check_same_cluster(of(ONE), "c2", TWO)


@pytest.mark.parametrize(("calling", "serving"), [(FIRST, ONE), (ONE, FIRST), (ONE, OTHER)])
def test_a_server_that_does_not_look_cannot_prove_itself(
    calling: ClusterIncarnation, serving: ClusterIncarnation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorumlog.proof.scram_server.check_same_cluster", lambda *_: None)
    with pytest.raises(NotProven, match="another salt"):
        exchange(calling, serving)

"""In which order nodes are restarted, what that takes, and what is in the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rolling_clusters import THREE, WHOLE, node, partition, picture

from quorumlog.ids import NodeId
from quorumlog.rolling.obstacles import Limits, obstacles
from quorumlog.rolling.picture import Picture, Voter
from quorumlog.rolling.plan import make_plan

CONTROLLER = {"is_broker": False, "epoch": -1}
BROKER = {"voter": None}


@pytest.mark.parametrize(
    ("found", "want"),
    [
        pytest.param(WHOLE, (2, 3, 1), id="the active controller is the last"),
        pytest.param(replace(WHOLE, leader=3), (1, 2, 3), id="whichever it is"),
        pytest.param(
            picture([node(1, **BROKER), node(2, **BROKER), node(11, **CONTROLLER), node(12, **CONTROLLER)], leader=11),
            (12, 1, 2, 11),
            id="controllers only before brokers, the active one after all",
        ),
        pytest.param(
            picture(THREE, [partition(0, (2, 3)), partition(1, (2, 1)), partition(2, (3, 2))], leader=1),
            (3, 2, 1),
            id="of brokers first who leads least",
        ),
    ],
)
def test_order(found: Picture, want: tuple[NodeId, ...]) -> None:
    assert make_plan(found, list(found.nodes)).nodes == want


@pytest.mark.parametrize(
    ("replicas", "min_isr", "left"),
    [
        ((1, 2, 3), 2, None),
        ((1, 2, 3), 3, 2),
        ((1, 2), 2, 1),
        ((1, 2), 1, None),
        ((1,), 1, 0),
        ((2, 3), 2, None),
    ],
    ids=["kept", "all of three", "both of two", "one of two", "the only one", "not on the node"],
)
def test_partitions_that_cannot_keep_their_minimum(
    replicas: tuple[NodeId, ...], min_isr: int, left: int | None
) -> None:
    plan = make_plan(picture(THREE, [partition(0, replicas, min_isr=min_isr)]), [1])
    assert [(one.node_id, one.partition.name, one.left) for one in plan.costs] == (
        [] if left is None else [(1, "t-0", left)]
    )
    assert plan.is_harmless is (left is None)


def test_what_is_short_now_is_counted_as_if_it_were_whole() -> None:
    """It is in the way; but it is no reason to add replicas."""
    assert make_plan(picture(THREE, [partition(0, (1, 2, 3), isr=(1, 2))]), [1, 2, 3]).is_harmless


@pytest.mark.parametrize(("voters", "lost"), [(1, (1,)), (2, (2, 1)), (3, ()), (4, ()), (5, ())])
def test_the_majority_of_the_quorum(voters: int, lost: tuple[NodeId, ...]) -> None:
    nodes = [node(node_id, voter=Voter() if node_id <= voters else None) for node_id in range(1, 6)]
    assert make_plan(picture(nodes), [1, 2, 3, 4, 5]).majority_lost == lost


LIMITS = Limits(max_lag=10)


@pytest.mark.parametrize(
    ("found", "want"),
    [
        pytest.param(WHOLE, "", id="nothing"),
        pytest.param(replace(WHOLE, leader=-1), "the quorum has no leader", id="no leader"),
        pytest.param(replace(WHOLE, is_changing_voters=True), "voters of the quorum are being changed", id="voters"),
        pytest.param(picture([node(1), node(2, is_serving=False)]), "node 2 does not serve", id="fenced"),
        pytest.param(
            picture([node(1), node(2, voter=Voter(lag=-1))]), "controller 2 has not fetched", id="never fetched"
        ),
        pytest.param(picture([node(1), node(2, voter=Voter(lag=11))]), "controller 2 is 11 records behind", id="lag"),
        pytest.param(picture([node(1), node(2, voter=Voter(lag=10))]), "", id="a lag that is allowed"),
        pytest.param(
            picture([node(1), node(2, voter=Voter(since_fetch_ms=6_000))]),
            "controller 2 has been silent for 6 s",
            id="silent",
        ),
        pytest.param(
            picture(THREE, [partition(0, (1, 2, 3), isr=(1, 2))]), "t-0 lacks node 3 in the ISR", id="out of sync"
        ),
        pytest.param(
            picture(THREE, [partition(0, (1, 2), isr=())]), "t-0 has no leader", id="no leader of a partition"
        ),
        pytest.param(replace(WHOLE, moving=("t-0", "t-1")), "t-0, t-1 are being moved", id="reassignment"),
        pytest.param(replace(WHOLE, topics_offset=99), "a broker is behind", id="partitions of an older image"),
        pytest.param(replace(WHOLE, topics_offset=101), "", id="partitions of a newer image"),
    ],
)
def test_obstacles(found: Picture, want: str) -> None:
    said = obstacles(found, LIMITS)
    assert (said == []) if want == "" else (len(said) == 1 and want in said[0])


def test_many_partitions_are_counted() -> None:
    found = obstacles(picture(THREE, [partition(n, (1, 2, 3), isr=(1, 3)) for n in range(9)]), LIMITS)
    assert found == ["t-0, t-1, t-2, t-3, t-4 and 4 more lack node 2 in the ISR"]

"""A follower whose log parted from its leader's at a place where the leader has deleted its records by now.

The leader no longer knows the epochs of what it deleted, so nothing tells whether the follower's records there are the
same. They may never have been committed; the follower must not keep them.
"""

from __future__ import annotations

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster, batch

from quorumlog.errors import ApiError, ErrorCode
from tests.rules import rule

ISOLATED, LEADER = 1, 2
PATH = "/d0/t-0"


def delete(cluster: ReplicaCluster, before: int) -> None:
    """At the leader, which waits in vain for the replica that it cannot reach."""
    node = cluster.nodes[LEADER]

    async def ask() -> None:
        await node.data_plane.delete_path.delete(TOPIC_ID, 0, before, 1_000)

    with pytest.raises(ApiError) as caught:
        node.run(ask())
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT and node.log().start_offset == before


def parted(*, common: tuple[str, ...] = (), unreplicated: int, in_one_batch: bool = False) -> ReplicaCluster:
    """Broker 1 has records that nobody else has; broker 2 leads without it, from the end of the common ones on."""
    cluster = ReplicaCluster()
    cluster.create_topic((1, 2, 3))
    cluster.wait_led(ISOLATED)
    for value in common:
        cluster.produce(ISOLATED, value)
    for other in ("n2", "n3"):
        cluster.network.cut_both("n1", other)
    for _ in range(unreplicated):
        cluster.produce(ISOLATED, "only at 1", acks=1)
    cluster.elect(LEADER, (2, 3))
    cluster.wait_led(LEADER)
    if in_one_batch:
        cluster.produce_batch(LEADER, batch("a", "b", "c", "d"))
    else:
        for value in "abcd":
            cluster.produce(LEADER, value)
    return cluster


def segments(node: Node) -> list[int]:
    """Base offsets, in order."""
    return [int(name.removesuffix(".log")) for name in sorted(node.disk.list(PATH)) if name.endswith(".log")]


def heal(cluster: ReplicaCluster) -> None:
    cluster.network.heal_all()
    cluster.run_until(lambda: set(cluster.image.partition(TOPIC_ID, 0).isr) == {1, 2, 3})  # type: ignore[union-attr]


@rule("storage 6.5")
@pytest.mark.parametrize("in_one_batch", [False, True])
@pytest.mark.parametrize("unreplicated", [1, 2, 3])
@pytest.mark.parametrize("deleted", [1, 2, 3])
def test_records_that_parted_below_the_leaders_start_are_dropped(
    unreplicated: int, deleted: int, in_one_batch: bool
) -> None:
    cluster = parted(unreplicated=unreplicated, in_one_batch=in_one_batch)
    delete(cluster, deleted)
    heal(cluster)
    follower, leader = cluster.nodes[ISOLATED], cluster.nodes[LEADER]
    assert segments(follower) == [deleted if not in_one_batch else 0], "nothing older is on the disk"
    assert b"only at 1" not in b"".join(
        follower.disk.read_bytes(f"{PATH}/{base:020}.log") for base in segments(follower)
    )
    assert follower.log().start_offset == deleted and follower.log().end_offset == leader.log().end_offset
    assert follower.log_values() == leader.log_values()[-len(follower.log_values()) :]
    assert follower.data_plane.follower.logs_set_aside == 0, "no committed record is lost: nothing to alarm of"


def test_a_common_prefix_is_kept_where_the_leader_still_has_a_record_of_it() -> None:
    cluster = parted(common=("p", "q"), unreplicated=2)
    delete(cluster, 1)
    heal(cluster)
    follower = cluster.nodes[ISOLATED]
    assert follower.log_values() == ["q", "a", "b", "c", "d"] and segments(follower) == [0]

"""Voters that change, under faults. `VoterCluster` checks the invariants; a test is a seed and a history."""

from __future__ import annotations

import pytest
from raft_cluster import Faults
from voter_cluster import VoterCluster

from quorumlog.errors import ErrorCode
from quorumlog_quorum.raft.voters import VoterKey
from tests.rules import rule

SWARM_SEEDS = range(120)
ACTIONS = ("kill", "start", "start", "cut", "isolate", "join", "join", "add", "add", "add", "remove", "remove", "wipe")


@pytest.mark.parametrize("seed", range(10))
def test_a_quorum_grows_and_shrinks_under_load(seed: int) -> None:
    cluster = VoterCluster(seed, nodes=5, voters=1)
    cluster.start_all()
    assert cluster.run(5_000, until=cluster.everyone_agrees)
    for node_id in range(1, 5):
        assert cluster.append(3) and cluster.add(node_id)
        assert answer(cluster, node_id) == ("AddRaftVoterRequest", 0)
    assert len(cluster.committed_set) == 5
    for node_id in range(4):
        assert cluster.run(5_000, until=lambda: cluster.leader is not None)
        assert cluster.append(3) and cluster.remove(cluster.nodes[node_id].key)
        assert answer(cluster, 5 + node_id) == ("RemoveRaftVoterRequest", 0)
    assert list(cluster.committed_set) == [4]
    assert cluster.run(5_000, until=cluster.everyone_agrees)


@pytest.mark.parametrize("seed", range(10))
def test_a_dead_voter_is_replaced_by_itself_on_a_new_directory(seed: int) -> None:
    cluster = VoterCluster(seed, nodes=3)
    cluster.start_all()
    assert cluster.run(5_000, until=cluster.everyone_agrees)
    leader = cluster.leader
    assert leader is not None
    lost = (leader.key.node_id + 1) % 3
    former = cluster.nodes[lost].key
    cluster.wipe(lost)
    cluster.start(lost)
    cluster.run(1_000)
    cluster.add(lost)
    assert cluster.run(2_000, until=lambda: bool(cluster.answers))
    assert cluster.answers[-1][1] == ErrorCode.DUPLICATE_VOTER
    cluster.remove(former)
    assert cluster.run(2_000, until=lambda: len(cluster.answers) == 2) and cluster.answers[-1][1] == 0
    cluster.add(lost)
    assert cluster.run(3_000, until=lambda: len(cluster.answers) == 3) and cluster.answers[-1][1] == 0
    assert cluster.committed_set.names(cluster.nodes[lost].key)
    assert cluster.run(3_000, until=cluster.everyone_agrees)


@pytest.mark.parametrize("seed", range(5))
def test_a_dead_voter_on_a_new_directory_joins_by_itself(seed: int) -> None:
    cluster = VoterCluster(seed, nodes=3)
    cluster.start_all()
    assert cluster.run(5_000, until=cluster.everyone_agrees)
    cluster.auto_join = True
    cluster.wipe(2)
    cluster.start(2)
    new = cluster.nodes[2].key
    assert cluster.run(20_000, until=lambda: cluster.committed_set.names(new))
    assert len(cluster.committed_set) == 3


@rule("kraft 6.3", "kraft 6.14")
@pytest.mark.parametrize("block", range(6))
def test_swarm(block: int) -> None:
    """Random faults and changes; then the faults end, and the quorum must make progress."""
    confirmed = 0
    for seed in SWARM_SEEDS[block::6]:
        cluster = VoterCluster(seed, nodes=3 + seed % 3, voters=1 + seed % 3)
        hurt(cluster)
        cluster.heal()
        cluster.start_all()
        assert cluster.run(20_000, until=lambda c=cluster: c.leader is not None), f"seed {seed}: no leader"  # type: ignore[misc]
        cluster.append(1)
        assert cluster.run(20_000, until=cluster.everyone_agrees), f"seed {seed}: no agreement"
        confirmed += sum(code == 0 for _, code in cluster.answers)
    assert confirmed > 20, f"only {confirmed} changes were made"


def answer(cluster: VoterCluster, number: int) -> tuple[str, int]:
    """The answer to the request of this number, counted from 1."""
    assert cluster.run(3_000, until=lambda: len(cluster.answers) == number)
    return cluster.answers[-1]


def hurt(cluster: VoterCluster) -> None:
    rng = cluster.rng
    cluster.faults = Faults(
        loss=rng.choice([0.0, 0.05, 0.2]),
        max_delay_ms=rng.choice([3, 30, 300]),
        max_sync_ms=rng.choice([1, 20, 200]),
        wrong_refusal=rng.choice([0.0, 0.5]),
        max_truncation_ms=rng.choice([0, 4_000]),
    )
    cluster.start_all()
    lost: VoterKey | None = None  # a voter whose disk is gone
    for _ in range(40):
        if lost is not None and not cluster.committed_set.names(lost) and cluster.is_settled:
            lost = None
        action = rng.choice(ACTIONS)
        node = rng.choice(cluster.nodes)
        if action == "kill" and node.raft is not None:
            cluster.kill(node.key.node_id)
        elif action == "start":
            cluster.start_all()
        elif action == "cut":
            cluster.faults.cut = {frozenset(rng.sample(range(len(cluster.nodes)), 2))}
        elif action == "isolate":
            cluster.isolate(node.key.node_id)
        elif action == "join":
            cluster.faults.cut = set()
        elif action == "add":
            cluster.add(node.key.node_id)
        elif action == "remove" and (lost is not None or len(cluster.committed_set) > 1):
            cluster.remove(lost or rng.choice(cluster.committed_set.voters).key)
        elif action == "wipe" and lost is None and may_lose(cluster, node.key):
            lost = node.key if cluster.committed_set.names(node.key) else None
            cluster.wipe(node.key.node_id)
        cluster.append(rng.randrange(4))
        cluster.run(rng.randrange(1_500))
    if lost is not None:
        cluster.heal()
        cluster.start_all()
        assert cluster.run(60_000, until=lambda: removed(cluster, lost)), "a lost voter cannot be removed"


def may_lose(cluster: VoterCluster, key: VoterKey) -> bool:
    """Whether the quorum still has a majority if this directory is gone for good."""
    changing = [n for n in cluster.nodes if n.raft is not None and getattr(n.raft.core.role, "change", None)]
    voters = cluster.committed_set
    return cluster.is_settled and not changing and (len(voters) >= 3 or not voters.names(key))


def removed(cluster: VoterCluster, lost: VoterKey) -> bool:
    if cluster.now % 100 == 0 and cluster.committed_set.names(lost):
        cluster.remove(lost)
    return not cluster.committed_set.names(lost)

"""Small quorums under faults. `Cluster` checks the invariants; a test is a seed and a history."""

from __future__ import annotations

import pytest
from raft_cluster import Cluster, Faults

from quorumlog_quorum.raft.quorum_state import QuorumState
from quorumlog_quorum.raft.roles import RaftRole
from tests.rules import rule

SWARM_SEEDS = range(240)


@pytest.mark.parametrize("voters", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("observers", [0, 2])
def test_a_fresh_quorum_elects_and_commits(voters: int, observers: int) -> None:
    cluster = Cluster(seed=voters * 10 + observers, voters=voters, observers=observers)
    cluster.start_all()
    assert cluster.run(5_000, until=lambda: cluster.leader is not None)
    assert cluster.append(3)
    assert cluster.run(2_000, until=cluster.everyone_agrees)
    assert len(cluster.committed) == 4


@pytest.mark.parametrize("seed", range(20))
def test_a_fresh_quorum_has_a_leader_within_its_first_moments(seed: int) -> None:
    """Voters start one after another, as processes do. None waits for a leader, because there was never one."""
    cluster = Cluster(seed)
    for node_id in cluster.rng.sample(range(3), 3):
        cluster.start(node_id)
        cluster.run(cluster.rng.randint(0, 50))
    assert cluster.run(300, until=lambda: cluster.leader is not None)
    assert cluster.run(1_000, until=cluster.everyone_agrees)


@pytest.mark.parametrize("seed", range(20))
def test_a_voter_that_starts_empty_beside_a_leader_raises_no_epoch(seed: int) -> None:
    """The empty voter may ask for pre-votes before it learns of the leader; the leader's followers refuse."""
    cluster = Cluster(seed)
    late = cluster.rng.randrange(3)
    for node_id in range(3):
        if node_id != late:
            cluster.start(node_id)
    cluster.run(3_000)
    assert cluster.leader is not None and cluster.leader.raft is not None
    epoch = cluster.leader.raft.core.epoch
    cluster.start(late)
    assert cluster.run(2_000, until=cluster.everyone_agrees)
    assert cluster.leader.raft.core.epoch == epoch


@rule("kraft 1.11")
def test_a_single_voter_leads_at_once() -> None:
    cluster = Cluster(seed=1, voters=1)
    cluster.start_all()
    assert cluster.run(60, until=lambda: cluster.leader is not None)
    cluster.kill(0)
    cluster.start(0)
    assert cluster.run(60, until=lambda: cluster.leader is not None)
    cluster.run(10_000)
    assert cluster.leader is not None, "a single voter never resigns for silence"


@pytest.mark.parametrize("seed", range(20))
def test_a_killed_leader_is_replaced_within_half_a_second(seed: int) -> None:
    cluster = elected(seed)
    old = cluster.leader
    assert old is not None
    cluster.kill(old.key.node_id)
    assert cluster.run(500, until=lambda: cluster.leader is not None)
    cluster.start(old.key.node_id)
    assert cluster.run(2_000, until=cluster.everyone_agrees)


@pytest.mark.parametrize("seed", range(10))
def test_a_leader_that_shuts_down_hands_over_without_waiting(seed: int) -> None:
    cluster = elected(seed)
    old = cluster.leader
    assert old is not None
    cluster.ask_shutdown(old.key.node_id)
    assert cluster.run(150, until=lambda: cluster.leader is not None and cluster.leader is not old)
    assert old.shutdown_finished


@pytest.mark.parametrize("seed", range(10))
def test_an_isolated_leader_resigns_and_returns_as_a_follower(seed: int) -> None:
    cluster = elected(seed)
    old = cluster.leader
    assert old is not None and old.raft is not None
    cluster.isolate(old.key.node_id)
    cluster.append(2)
    assert cluster.run(4_000, until=lambda: cluster.leader is not None and cluster.leader is not old)
    cluster.run(2_000)
    assert old.raft.core.role.role is not RaftRole.LEADER
    cluster.heal()
    assert cluster.run(4_000, until=cluster.everyone_agrees)


@rule("kraft 1.4")
@pytest.mark.parametrize("seed", range(10))
def test_a_voter_that_flaps_raises_no_epoch(seed: int) -> None:
    cluster = elected(seed)
    leader = cluster.leader
    assert leader is not None and leader.raft is not None
    epoch = leader.raft.core.epoch
    flapping = next(node for node in cluster.nodes if node is not leader)
    for _ in range(10):
        cluster.isolate(flapping.key.node_id)
        cluster.run(3_000)
        cluster.heal()
        cluster.run(500)
    assert cluster.leader is leader and leader.raft.core.epoch == epoch


@pytest.mark.parametrize("seed", range(10))
def test_a_voter_that_is_alone_in_a_larger_epoch_comes_back(seed: int) -> None:
    """Nobody adopts the epoch of its pre-votes. The leader learns of it from the answer to its BeginQuorumEpoch."""
    cluster = elected(seed)
    leader = cluster.leader
    assert leader is not None and leader.raft is not None
    epoch = leader.raft.core.epoch
    stranded = next(node for node in cluster.nodes if node is not leader)
    cluster.kill(stranded.key.node_id)
    stranded.state = QuorumState(epoch=epoch + 1)
    cluster.faults.cut = {frozenset((leader.key.node_id, stranded.key.node_id))}
    cluster.start(stranded.key.node_id)
    cluster.run(5_000)
    assert cluster.leader is leader and leader.raft.core.epoch == epoch, "its pre-votes reach a follower only"
    cluster.heal()
    assert cluster.run(4_000, until=cluster.everyone_agrees)


@rule("kraft 1.5")
def test_no_majority_no_leader() -> None:
    cluster = elected(3, voters=5)
    for node_id in range(3):
        cluster.kill(node_id)
    cluster.run(5_000)
    assert cluster.leader is None
    cluster.start_all()
    assert cluster.run(5_000, until=cluster.everyone_agrees)


def test_all_killed_and_started_again() -> None:
    cluster = elected(4)
    cluster.append(10)
    cluster.run(200)
    for node_id in range(3):
        cluster.kill(node_id)
    cluster.start_all()
    assert cluster.run(5_000, until=cluster.everyone_agrees)
    assert len(cluster.committed) >= 12


@pytest.mark.parametrize("block", range(8))
def test_swarm(block: int) -> None:
    """Random faults; then the faults end, and the quorum must make progress."""
    for seed in SWARM_SEEDS[block::8]:
        cluster = Cluster(seed, voters=1 + seed % 5, observers=seed % 3)
        hurt(cluster)
        cluster.heal()
        cluster.start_all()
        assert cluster.run(20_000, until=lambda c=cluster: c.leader is not None), f"seed {seed}: no leader"  # type: ignore[misc]
        cluster.append(1)
        assert cluster.run(20_000, until=cluster.everyone_agrees), f"seed {seed}: no agreement"


def hurt(cluster: Cluster) -> None:
    rng = cluster.rng
    cluster.faults = Faults(
        loss=rng.choice([0.0, 0.05, 0.3]),
        max_delay_ms=rng.choice([3, 30, 300]),
        max_sync_ms=rng.choice([1, 20, 200]),
        wrong_refusal=rng.choice([0.0, 0.5]),
        max_probe_ms=rng.choice([55, 3_000]),
        max_truncation_ms=rng.choice([0, 4_000]),
    )
    cluster.start_all()
    for _ in range(25):
        action = rng.randrange(6)
        node = rng.choice(cluster.nodes)
        if action == 0 and node.raft is not None:
            cluster.kill(node.key.node_id)
        elif action == 1:
            cluster.start_all()
        elif action == 2:
            cluster.faults.cut = (
                {frozenset(rng.sample(range(len(cluster.nodes)), 2))} if len(cluster.nodes) > 1 else set()
            )
        elif action == 3:
            cluster.isolate(node.key.node_id)
        elif action == 4:
            cluster.faults.cut = set()
        cluster.append(rng.randrange(4))
        cluster.run(rng.randrange(1_000))


def elected(seed: int, voters: int = 3) -> Cluster:
    cluster = Cluster(seed, voters=voters)
    cluster.start_all()
    assert cluster.run(5_000, until=cluster.everyone_agrees)
    return cluster

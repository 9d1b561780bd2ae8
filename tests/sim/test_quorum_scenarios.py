"""Scripted histories of the quorum: each step is fixed, and so is what must be seen.

The first of them is tests/jepsen/test_deposed_controller.py; here the deposed leader also resigns in time.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from quorum_world import FETCH_TIMEOUT_MS, QuorumWorld, quorum_world

from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.errors import ApiError
from quorumlog.messages.admin import IncrementalAlterConfigsRequest
from quorumlog.rpc.calls import BY_REQUEST

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # killed coroutines
SEEDS = (1, 2, 3)
_ALTER = BY_REQUEST[IncrementalAlterConfigsRequest].method.path
CHECK_QUORUM_MS = FETCH_TIMEOUT_MS * 3 // 2


@pytest.mark.parametrize("seed", SEEDS)
def test_s10_a_leader_without_its_majority_resigns_in_time(seed: int) -> None:
    """Clients still reach it; what they ask it either fails or is never answered."""
    with quorum_world(seed) as world:
        old = world.leader
        for other in world.others:
            world.cluster.network.cut_both(old.host, other.host)
        assert old.node is not None and old.node.driver is not None
        driver = old.node.driver
        waited_ms = world.until(lambda: not driver.is_leader, CHECK_QUORUM_MS + 100)
        assert waited_ms > FETCH_TIMEOUT_MS / 2, "it resigned because of the silence, not at once"
        world.until(lambda: world.cluster.active_controller() not in (None, old), 5_000)
        world.run(2_000)
        world.cluster.network.heal_all()
        world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_s11_a_voter_that_flaps_a_hundred_times_raises_the_epoch_once_at_most(seed: int) -> None:
    with quorum_world(seed) as world:
        leader, epoch, flapping = world.leader, world.epoch(world.leader), world.others[0]
        for _ in range(100):
            for other in world.cluster.controllers:
                if other is not flapping:
                    world.cluster.network.cut_both(flapping.host, other.host)
            world.run(300)
            world.cluster.network.heal_all()
            world.run(100)
        assert world.leader is leader and world.epoch(leader) <= epoch + 1
        assert sum(not one.is_open for one in world.settle()) > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_s12_two_voters_that_lose_each_other_change_the_leader_once_at_most(seed: int) -> None:
    """The leader and one voter do not hear each other; the third voter hears both."""
    with quorum_world(seed) as world:
        world.cluster.network.cut_both(world.leader.host, world.others[0].host)
        leaders, committed = world.leaders, world.cluster.committed
        for _ in range(10):
            world.run(1_000)
            assert world.cluster.committed > committed, "changes go on"
            committed = world.cluster.committed
        assert world.leaders <= leaders + 1
        world.cluster.network.heal_all()
        world.settle()


@pytest.mark.parametrize("seed", SEEDS)
def test_s13_a_voter_that_lost_its_disk_commits_no_second_history(seed: int) -> None:
    """Two of three voters hold what is committed. One loses its disk, the other is cut off, and the third lags."""
    with quorum_world(seed) as world:
        cluster, leader = world.cluster, world.leader
        world.until(lambda: upgraded(world), 5_000)
        world.until(cluster.agrees, 5_000)
        wiped, lagging = world.others
        for other in (leader, wiped):
            cluster.network.cut_both(lagging.host, other.host)
        world.run(3_000)
        assert world.leader is leader
        wiped.kill()
        cluster.forget_disk(wiped)
        cluster.network.cut_both(leader.host, wiped.host)
        wiped.start()
        for one, other in ((wiped, lagging), (lagging, wiped)):
            cluster.network.heal(one.host, other.host)
        committed = cluster.committed
        world.run(10_000)
        assert cluster.committed == committed, "the disk that was lost and the one that lags are no majority"
        cluster.network.heal_all()
        world.settle()
        assert cluster.committed > committed


def upgraded(world: QuorumWorld) -> bool:
    """Whether kraft.version 1 is in force; if not, the leader is asked again."""
    loop, node = world.leader.loop, world.leader.node
    assert loop is not None and node is not None and node.driver is not None
    driver = node.driver
    if driver.core is not None and driver.core.history.level == 1:
        return True

    async def upgrade() -> None:
        with suppress(ApiError):
            await driver.upgrade_kraft_version()

    loop.deliver(lambda: loop.create_task(upgrade()))
    return False


@pytest.mark.parametrize("seed", SEEDS)
def test_s26_a_leader_that_stood_still_acknowledges_nothing_late(seed: int) -> None:
    """SIGSTOP for 30 s with changes under way, another leader, SIGCONT."""
    with quorum_world(seed) as world:
        old, epoch = world.leader, world.epoch(world.leader)
        stop_inside_a_change(world, old)
        stopped_ns = world.cluster.scheduler.now_ns
        world.until(lambda: world.cluster.active_controller() not in (None, old), 5_000)
        world.run(30_000)
        old.resume()
        world.until(lambda: world.epoch(old) > epoch, 2_000)
        assert old.node is not None and old.node.driver is not None and not old.node.driver.is_leader
        waited = [one for one in world.settle() if one.invoked_ns < stopped_ns]
        assert any(one.is_open for one in waited), "the change that it had taken was never answered"
        assert all(one.is_open or one.returned_ns <= stopped_ns for one in waited), "nothing was acknowledged late"


def stop_inside_a_change(world: QuorumWorld, leader: Machine) -> None:
    """SIGSTOP as soon as the leader has taken a client's change, before it is committed."""
    taken: list[Message] = []

    class Taken(Invariant):
        def on_admitted(self, message: Message) -> None:
            if message.path == _ALTER and message.destination == leader.host:
                taken.append(message)

    hooks = world.cluster.hooks
    hooks.listen(*hooks.everyone, Taken())
    assert leader.node is not None and leader.node.driver is not None and leader.node.driver.core is not None
    raft = leader.node.driver.core
    until_ns = world.cluster.scheduler.now_ns + 10_000 * NS_PER_MS
    world.cluster.scheduler.run_while(lambda: not (taken and raft.log.accepted_end > raft.high_watermark), until_ns)
    assert taken
    leader.pause()

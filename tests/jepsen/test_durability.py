"""When the promise of `durability=replicated` holds, and what is left of the truth when it does not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import pytest
from calm_cluster import calm_cluster

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.sizes import Sizes
from jepsen.sim.time.scheduler import NS_PER_S, Scheduler
from jepsen.sim.truth.durability import Durability
from jepsen.sim.truth.mirrors import log_id
from quorumlog.messages.metadata_records import ConfigRecord, UnregisterBrokerRecord
from quorumlog_quorum.metadata.delta import Delta

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

T = TypeVar("T")

SEED = 2  # flushes nothing
SIZES = Sizes().with_durability(Scheduler(SEED).rng("durability"), share=1.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SimCluster]:
    """With unsynced records in every partition."""
    with calm_cluster(8, seed=SEED, sizes=SIZES) as cluster:
        yield cluster


class _LosesAll(random.Random):
    """Of the ways in which a power cut may go, always the first: nothing that is unsynced survives."""

    def choice(self, seq: SupportsLenAndGetItem[T]) -> T:
        return seq[0]


def a_log(cluster: SimCluster) -> str:
    """The log with most committed records."""
    logs = [
        log_id(f"{topic.name}-{index}", topic.id)
        for topic in cluster.image.sorted_topics()
        for index, _ in topic.sorted_partitions()
    ]
    return max(logs, key=lambda log: cluster.invariants.mirrors.truth(log).end)


def test_the_promise_and_its_end(cluster: SimCluster) -> None:
    invariants, log = cluster.invariants, a_log(cluster)
    durability: Durability = invariants.durability
    one, other, third = cluster.brokers
    truth = invariants.mirrors.truth(log)
    assert not durability.is_synced(log) and truth.end > 3

    def cut(machine: Machine) -> None:
        durability.on_power_cut(machine)

    assert all(durability.holds(log, machine) for machine in cluster.brokers)
    cut(one)
    assert durability.has_lost(log, one) and durability.count_lost(log) == 1
    assert not durability.may_lead(log, invariants.mirrors.of(one, log)), "one machine of three loses nothing"
    cut(other)
    assert durability.broken and not durability.has_lost(log, third)
    one.disk.crash(_LosesAll())
    left = invariants.mirrors.of(one, log)
    left.forget()
    assert left.end < truth.end, "nothing was unsynced"
    assert durability.may_lead(log, left)
    assert truth.end == left.end and durability.has_losses(log)
    assert durability.losses[-1].log == log and durability.losses[-1].end == left.end
    assert truth.is_held_by(left, left.end)
    durability.on_image(cluster.image)
    assert durability.has_lost(log, one), "its next process has not joined the ISR"


@pytest.fixture
def fresh() -> Iterator[SimCluster]:
    with calm_cluster(8, seed=SEED, sizes=SIZES) as cluster:
        yield cluster


def come_back(cluster: SimCluster, machine: Machine, *, clean: bool) -> None:
    """As another process, of which no metadata is committed yet."""
    if clean:
        machine.stop()
        cluster.scheduler.run_for(10 * NS_PER_S)
        assert not machine.alive
    machine.kill()
    machine.start()
    cluster.invariants.durability.on_image(cluster.image)


def test_a_log_that_is_read_anew_at_the_cut_has_lost_what_it_held_before(fresh: SimCluster) -> None:
    """Its files changed just before the power went, so that nobody had read it since."""
    invariants, log = fresh.invariants, a_log(fresh)
    one = fresh.brokers[0]
    assert invariants.durability.holds(log, one)
    invariants.mirrors.of(one, log).forget()
    one._crash_rng = _LosesAll()
    one.power_cut()
    assert invariants.mirrors.of(one, log).end < invariants.mirrors.truth(log).end, "nothing was unsynced"
    assert invariants.durability.has_lost(log, one) and not fresh.findings.found


@pytest.mark.parametrize("power_first", [True, False])
def test_a_killed_process_counts_beside_a_power_cut(fresh: SimCluster, power_first: bool) -> None:
    """The controller trusts neither of the two any more, and takes the last known leader, whichever that is."""
    durability, log = fresh.invariants.durability, a_log(fresh)
    one, other, _third = fresh.brokers
    left = fresh.invariants.mirrors.of(one, log)
    if power_first:
        durability.on_power_cut(one)
        assert not durability.broken
    come_back(fresh, other, clean=False)
    if not power_first:
        assert not durability.broken
        durability.on_power_cut(one)
    assert durability.broken and durability.may_lead(log, left)
    assert durability.holds(log, other) and not durability.has_lost(log, other), "it must still have everything"


def test_an_unregistered_broker_counts_beside_a_power_cut(fresh: SimCluster) -> None:
    """The controller forgets what it holds, because an operator says so."""
    durability, log = fresh.invariants.durability, a_log(fresh)
    one, other, _third = fresh.brokers
    delta = Delta(fresh.image)
    epoch = fresh.image.brokers[other.node_id].broker_epoch
    delta.replay(UnregisterBrokerRecord(broker_id=other.node_id, broker_epoch=epoch))
    durability.on_image(delta.apply(fresh.image.offset + 1, fresh.image.epoch))
    assert durability.broken == 0
    durability.on_power_cut(one)
    assert durability.broken and durability.may_lead(log, fresh.invariants.mirrors.of(one, log))


def test_kills_alone_break_no_promise(fresh: SimCluster) -> None:
    durability, log = fresh.invariants.durability, a_log(fresh)
    for machine in fresh.brokers:
        come_back(fresh, machine, clean=False)
    assert not durability.broken and not durability.may_lead(log, fresh.invariants.mirrors.of(fresh.brokers[0], log))


def test_a_clean_stop_beside_a_power_cut_breaks_no_promise(fresh: SimCluster) -> None:
    durability, log = fresh.invariants.durability, a_log(fresh)
    one, other, _third = fresh.brokers
    come_back(fresh, other, clean=True)
    durability.on_power_cut(one)
    assert not durability.broken and not durability.may_lead(log, fresh.invariants.mirrors.of(one, log))


def test_a_machine_comes_back_also_after_durability_was_raised(cluster: SimCluster) -> None:
    """What was acknowledged before the raise has the weaker promise still."""
    log, one = a_log(cluster), cluster.brokers[2]
    durability = Durability(cluster.brokers, cluster.invariants.mirrors, lambda: 0)
    durability.on_image(cluster.image)
    durability._lost[log] = {one.node_id: one.life - 1}  # its process of now is in the ISR
    delta = Delta(cluster.image)
    topic = log.partition("@")[0].rpartition("-")[0]
    delta.replay(ConfigRecord(resource_type=2, resource_name=topic, name="durability", value="synced"))
    durability.on_image(delta.apply(cluster.image.offset + 1, cluster.image.epoch))
    assert not durability.has_lost(log, one) and not durability.is_synced(log)

"""The invariants of a simulated quorum bite: each is shown a sound quorum, then one mistake made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.metadata.quorum_contact import QuorumContact
from jepsen.sim.machine.machine import Machine
from jepsen.sim.quorum.clients import QuorumClients
from jepsen.sim.quorum.cluster import QuorumCluster
from jepsen.sim.quorum.layout import Layout
from jepsen.sim.quorum.plan import QuorumPlan
from jepsen.sim.settings import METADATA_LOG
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.scheduler import NS_PER_S
from jepsen.sim.truth.mirrors import METADATA
from quorumlog.messages.common import Endpoint
from quorumlog_quorum.raft import QuorumState, RaftRole, VoterSet
from quorumlog_quorum.raft.voters import Voter

SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "1000",
    "metadata.max.retention.bytes": "1000",
    "metadata.retention.check.interval.ms": "300",
    "metadata.log.segment.bytes": "1024",
}

ENDPOINT = Endpoint(name="INTERNAL", host="h", port=1)
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # killed coroutines


@pytest.fixture
def cluster() -> Iterator[QuorumCluster]:
    """Three voters that have committed changes and taken snapshots, without a finding."""
    layout = Layout(voters=3, combined=0, brokers=0, settings=SNAPSHOTS)
    made = QuorumCluster(4711, layout)
    clients = QuorumClients(made, QuorumPlan(layout=layout, blows=(), clients=2, operations=500, operations_per_s=20.0))
    made.start()
    made.scheduler.run_until(NS_PER_S)
    clients.start()
    made.scheduler.run_until(6 * NS_PER_S)
    assert not made.findings and made.hooks.snapshots.written > 2 and made.hooks.log.changes > 20
    yield made
    for machine in made.machines.values():
        if machine.loop is not None:
            machine.loop.kill()
    clients.loop.kill()
    killed_coroutines.empty()


def leader_of(cluster: QuorumCluster) -> Machine:
    leader = cluster.active_controller()
    assert leader is not None
    return leader


def seen_as(cluster: QuorumCluster, machine: Machine, **changes: object) -> None:
    """Let the invariants see this node's core with some other values."""
    assert machine.node is not None and machine.node.driver is not None
    core = machine.node.driver.core
    assert core is not None
    log, role = core.log, changes.pop("role", core.role.role)
    end_offset = changes.pop("end_offset", log.accepted_end)
    names = ("epoch", "leader_id", "high_watermark", "node_id", "voters", "history")
    shown = SimpleNamespace(
        **{**{name: getattr(core, name) for name in names}, **changes},
        role=SimpleNamespace(role=role),
        log=SimpleNamespace(accepted_end=end_offset, start=log.start, snapshots=log.snapshots),
    )
    node = SimpleNamespace(driver=SimpleNamespace(core=shown), loader=machine.node.loader)
    double = SimpleNamespace(
        host=machine.host,
        node=node,
        life=machine.life,
        disk=machine.disk,
        node_id=machine.node_id,
        resumed_ns=-1,
        config=machine.config,
    )
    cluster.hooks.quorum.on_touch(double)  # type: ignore[arg-type]


def other_leader_on_disk(cluster: QuorumCluster) -> None:
    leader = leader_of(cluster)
    state = QuorumState(epoch=max(cluster.hooks.quorum.leaders), leader_id=leader.node_id % 3 + 1)
    cluster.hooks.quorum.on_state_file(leader, state)


def leader_goes_back(cluster: QuorumCluster) -> None:
    leader = leader_of(cluster)
    seen_as(cluster, leader, end_offset=cluster.committed - 1)


def below_the_high_watermark(cluster: QuorumCluster) -> None:
    follower = next(machine for machine in cluster.controllers if machine is not leader_of(cluster))
    seen_as(cluster, follower, end_offset=cluster.committed - 2)


def majority_wiped(cluster: QuorumCluster) -> None:
    for machine in cluster.controllers[:2]:
        machine.kill()
        machine.disk.put_back(METADATA_LOG, {})
        cluster.hooks.on_disk(machine, "crash", "/")


def incomplete_leader(cluster: QuorumCluster) -> None:
    follower = next(machine for machine in cluster.controllers if machine is not leader_of(cluster))
    epoch = max(cluster.hooks.quorum.leaders) + 1
    seen_as(cluster, follower, role=RaftRole.LEADER, epoch=epoch, leader_id=follower.node_id, end_offset=1)


def image_differs(cluster: QuorumCluster) -> None:
    image = cluster.hooks.log.image
    cluster.hooks.log.on_published("c1", replace(image, state_hash=image.state_hash ^ 1))


def image_inside_a_batch(cluster: QuorumCluster) -> None:
    cluster.hooks.log.on_published("c1", replace(cluster.hooks.log.image, offset=cluster.committed + 1))


def snapshots_lost(cluster: QuorumCluster) -> None:
    machine = next(one for one in cluster.controllers if cluster.hooks.mirrors.of(one, METADATA).base)
    files = machine.disk.copy_of(METADATA_LOG)
    machine.kill()
    machine.disk.put_back(METADATA_LOG, {name: files[name] for name in files if not name.endswith(".checkpoint")})
    cluster.hooks.on_disk(machine, "crash", "/")


MISTAKES: list[tuple[str, Callable[[QuorumCluster], None]]] = [
    ("election-safety", other_leader_on_disk),
    ("leader-append-only", leader_goes_back),
    ("committed-is-kept", below_the_high_watermark),
    ("committed-stays-durable", majority_wiped),
    ("leader-completeness", incomplete_leader),
    ("image-equals-replay", image_differs),
    ("image-at-a-batch", image_inside_a_batch),
    ("snapshot-at-log-start", snapshots_lost),
]


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[name for name, _ in MISTAKES])
def test_a_mistake_is_found(cluster: QuorumCluster, name: str, mistake: Callable[[QuorumCluster], None]) -> None:
    mistake(cluster)
    assert name in {finding.name for finding in cluster.findings.found}


@pytest.mark.parametrize(
    ("silence_ms", "resumed", "is_found"), [(1_400, False, False), (1_600, False, True), (1_600, True, False)]
)
def test_a_write_needs_a_majority_that_was_heard(silence_ms: int, resumed: bool, is_found: bool) -> None:
    """The fetch time-out is 1 s. What arrived while the process stood still may be taken."""
    now_ns = 0
    findings = Findings(lambda: now_ns)
    voters = VoterSet(Voter(node_id=number, endpoint=ENDPOINT) for number in range(3))
    log = SimpleNamespace(accepted_end=5)
    core = SimpleNamespace(
        role=SimpleNamespace(role=RaftRole.LEADER),
        epoch=1,
        log=log,
        voters=voters,
        history=SimpleNamespace(offset=None),
    )
    node = SimpleNamespace(driver=SimpleNamespace(core=core))
    config = SimpleNamespace(quorum=SimpleNamespace(fetch_timeout_ms=1_000))
    machines = [
        SimpleNamespace(host=f"c{number}", node_id=number, node=node, config=config, resumed_ns=-1)
        for number in range(3)
    ]
    contact = QuorumContact(machines, findings)  # type: ignore[arg-type]
    contact.after_controller(machines[0])  # type: ignore[arg-type]
    now_ns = silence_ms * NS_PER_S // 1_000
    log.accepted_end = 6
    machines[0].resumed_ns = now_ns if resumed else -1
    contact.after_controller(machines[0])  # type: ignore[arg-type]
    assert bool(findings) == is_found and contact.writes == 1


def test_a_damaged_snapshot_file_is_found(cluster: QuorumCluster) -> None:
    """A finished file whose records are not those of the log."""
    machine, hooks = leader_of(cluster), cluster.hooks
    name = max(name for name in machine.disk.copy_of(METADATA_LOG) if name.endswith(".checkpoint"))
    hooks.log._hashes[int(name.partition("-")[0])] ^= 1
    part = name.replace(".checkpoint", "-x.checkpoint.part")
    hooks.snapshots.on_disk(machine, "rename", f"{METADATA_LOG}/{part}")
    assert {finding.name for finding in cluster.findings.found} == {"snapshot-equals-replay"}

"""A controller that is cut off, while others elect and go on, answers no read from its own state."""

from __future__ import annotations

from typing import Any

import pytest
from calm_cluster import calm_cluster

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import BROKERS, CONTROLLERS, INTERNAL_PORT
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import IncrementalAlterConfigsRequest
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.quorum import DescribeQuorumRequest
from quorumlog.rpc.transport import Address, RpcError
from tests.rules import rule

CUT_OFF_MS = 1_500  # check-quorum: so long the old controller believes that it is active
STEP_MS = 20
ELECTS_EARLY = 5  # a seed by which the others elect before the old controller gives up: their votes are not split
READS: dict[str, Any] = {
    "describe": DescribeQuorumRequest(),
    "known topic": CreateTopicsRequest(
        topics=(CreatableTopic(name="t0", num_partitions=1, replication_factor=3),), timeout_ms=3_000
    ),
    "only validated": CreateTopicsRequest(
        topics=(CreatableTopic(name="new", num_partitions=1, replication_factor=3),),
        timeout_ms=3_000,
        validate_only=True,
    ),
    "nothing to change": IncrementalAlterConfigsRequest(resources=()),
}


@rule("kraft 3.27", "kraft 3.34")
@pytest.mark.parametrize("what", READS)
def test_it_answers_only_that_it_does_not_know(what: str) -> None:
    with calm_cluster(8, seed=ELECTS_EARLY) as cluster:
        old = cluster.active_controller()
        assert old is not None
        broker = cluster.machines[next(iter(BROKERS))]
        answers: list[Any] = []
        ask(broker, old, READS["describe"], [])  # all voters fetch now, so check-quorum ends after their time-outs
        cluster.scheduler.run_for(STEP_MS * NS_PER_MS)
        cut_off(cluster, old, broker)
        for _ in range((CUT_OFF_MS + 2_000) // STEP_MS):
            ask(broker, old, READS[what], answers)
            cluster.scheduler.run_for(STEP_MS * NS_PER_MS)
        new = cluster.active_controller()
        assert new is not None and new is not old, "nobody else was elected"
        assert cluster.invariants.controller_answers.asked_when_deposed > 5
        assert [str(finding) for finding in cluster.findings.found] == []
        codes = [ErrorCode(answer.error_code) for answer in answers]
        assert ErrorCode.NOT_CONTROLLER in codes or ErrorCode.NOT_LEADER_OR_FOLLOWER in codes


@rule("kraft 3.34")
def test_a_controller_that_is_followed_answers_within_one_round_trip() -> None:
    with calm_cluster(8, seed=3) as cluster:
        controller = cluster.active_controller()
        assert controller is not None and controller.node is not None and controller.node.driver is not None
        assert controller.node.driver.is_leader
        answers: list[Any] = []
        ask(cluster.machines["b1"], controller, READS["describe"], answers)
        cluster.scheduler.run_for(50 * NS_PER_MS)
        assert len(answers) == 1 and answers[0].leader_id == controller.node_id


def cut_off(cluster: SimCluster, controller: Machine, broker: Machine) -> None:
    """The controller and one broker hear nobody else."""
    apart = {controller.host, broker.host}
    for host in (*CONTROLLERS, *BROKERS):
        for inside in apart:
            if host not in apart:
                cluster.network.cut_both(inside, host)


def ask(broker: Machine, controller: Machine, request: Any, answers: list[Any]) -> None:
    """From the broker, straight to this controller. A call that failed is not noted."""
    assert broker.node is not None and broker.node.broker is not None and broker.loop is not None
    transport = broker.node.broker.channel._transport

    async def call() -> None:
        connection = transport.connect(Address(controller.host, INTERNAL_PORT), internal=True, client_id="reader")
        try:
            answers.append(await connection.call(request, 3_000))
        except RpcError:
            pass
        finally:
            await connection.close()

    loop = broker.loop
    loop.deliver(lambda: loop.create_task(call()))

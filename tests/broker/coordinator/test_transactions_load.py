"""`__transaction_state` is loaded in turns of the loop that are short, however many transactional ids it has."""

from __future__ import annotations

from typing import Any, cast

import pytest
from coordinator_cluster import CALLER
from replica_cluster import Node, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.produce import InitProducerIdRequest
from quorumlog.settings.transactions import TransactionConfig
from quorumlog.topic_name import TRANSACTION_STATE
from quorumlog.turn import Turn
from quorumlog_broker.coordinator.runtime.coordinator import State
from quorumlog_broker.coordinator.runtime.peers import Peers
from quorumlog_broker.coordinator.runtime.transaction_coordinator import TransactionCoordinator
from quorumlog_broker.coordinator.runtime.transaction_coordinators import TransactionCoordinators
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.partition.events import HighWatermarkMoved
from quorumlog_broker.produce.own_appends import OwnAppends

IDS = 2_000
LONGEST_LOAD_TURN = 256  # records: 4 ms


class TransactionsCluster(ReplicaCluster):
    """One partition of `__transaction_state`, leader 1. Producer ids are numbers in their order."""

    def __init__(self, **more: Any) -> None:
        self.of_node: dict[NodeId, TransactionCoordinators] = {}
        self._last_id = 1_000
        super().__init__(**more)

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def boot(self, node_id: NodeId, clean: bool = False) -> Node:
        node = super().boot(node_id, clean)
        found = self.of_node[node_id] = TransactionCoordinators(
            node_id=node_id,
            config=TransactionConfig(),
            image=lambda: self.image,
            appends=OwnAppends(node.data_plane.produce_path.advance),
            peers=cast(Peers, None),
            new_producer_id=self._new_id,
            clock=node.clock,
            turn=Turn(),
            nursery=node.nursery,
        )
        node.data_plane.leadership_listeners.add(found)
        node.data_plane.stepper.on(HighWatermarkMoved, found.high_watermark_moved)
        return node

    def coordinator(self, node_id: NodeId = 1) -> TransactionCoordinator | None:
        led = self.of_node[node_id].all
        return led[0] if led else None

    def state(self, node_id: NodeId = 1) -> State | None:
        found = self.coordinator(node_id)
        return None if found is None else found.state

    def init(self, transactional_id: str, node_id: NodeId = 1) -> Any:
        async def ask() -> Any:
            coordinator = self.of_node[node_id].of(transactional_id)
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
            return await coordinator.call(TransactionShard.init_producer_id, CALLER, request)

        return self.nodes[node_id].run(ask())


def test_ids_are_loaded_in_short_turns_and_calls_are_refused_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = TransactionsCluster()
    cluster.create_topic(name=TRANSACTION_STATE)
    cluster.run_until(lambda: cluster.state() is State.ACTIVE)

    async def fill() -> None:
        coordinator = cluster.coordinator()
        assert coordinator is not None
        for number in range(IDS):
            request = InitProducerIdRequest(transactional_id=f"x{number}", transaction_timeout_ms=60_000)
            coordinator.call(TransactionShard.init_producer_id, CALLER, request)

    cluster.nodes[1].run(fill())
    cluster.run_for(1_000)
    assert cluster.nodes[2].log().end_offset == IDS
    in_step: dict[int, int] = {}
    replay = TransactionShard.replay_bytes

    def counted(shard: TransactionShard, offset: Offset, key: bytes, value: bytes | None) -> None:
        step = cluster.scheduler.steps
        in_step[step] = in_step.get(step, 0) + 1
        replay(shard, offset, key, value)

    monkeypatch.setattr(TransactionShard, "replay_bytes", counted)
    cluster.elect(2, (1, 2, 3))
    cluster.run_until(lambda: cluster.state(2) is State.LOADING)
    with pytest.raises(ApiError) as refusal:
        cluster.init("x7", 2)
    assert refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    cluster.run_until(lambda: cluster.state(2) is State.ACTIVE)
    assert sum(in_step.values()) == IDS
    assert max(in_step.values()) <= LONGEST_LOAD_TURN
    found = cluster.init("x7", 2)
    assert (found.error_code, found.producer_id, found.producer_epoch) == (0, 1_008, 1)

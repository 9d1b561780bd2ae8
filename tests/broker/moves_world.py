"""Brokers with two log directories each, whose controller takes what they say about directories."""

from __future__ import annotations

from typing import Any

from replica_cluster import TOPIC_ID, ReplicaCluster

from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.metadata_records import DirectoryList, PartitionChangeRecord
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.registration import UNASSIGNED

KEY: PartitionKey = (TOPIC_ID, 0)


class MovingCluster(ReplicaCluster):
    """As the assigner and the controller do it: pending assignments become records, after a delay."""

    def __init__(self, nodes: tuple[NodeId, ...] = (1, 2, 3), seed: int = 4711, **settings: Any) -> None:
        super().__init__(seed, nodes, directories=2, **settings)
        self.tells_controller = True
        self._ask()

    def _ask(self) -> None:
        for node_id, node in self.nodes.items():
            if self.tells_controller and node.loop.alive:
                for one in node.data_plane.placements.pending_assignments():
                    self._assign(node_id, (one.topic_id, one.index), one.directory_id)
        self.scheduler.call_later(50_000_000, self._ask)

    def _assign(self, node_id: NodeId, key: PartitionKey, directory: Uuid) -> None:
        now = self.image.partition(*key)
        if now is None or node_id not in now.replicas:
            return
        directories = tuple(
            directory if replica == node_id else now.directory(replica) or UNASSIGNED for replica in now.replicas
        )
        self.commit(
            PartitionChangeRecord(partition=key[1], topic_id=key[0], directories=DirectoryList(directories=directories))
        )

    def replica(self, node_id: NodeId) -> Replica:
        return self.nodes[node_id].replicas[KEY]

    def path_of(self, node_id: NodeId) -> str:
        queue = self.replica(node_id).queue
        assert queue is not None
        return queue.directory.path

    def other(self, node_id: NodeId) -> str:
        (path,) = [path for path in self.nodes[node_id].paths if path != self.path_of(node_id)]
        return path

    def move(self, node_id: NodeId, path: str) -> None:
        node = self.nodes[node_id]
        node.run(node.data_plane.moves.alter("t", 0, path))

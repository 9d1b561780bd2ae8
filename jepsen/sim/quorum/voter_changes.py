"""An operator changes the voters of a simulated quorum: kraft.version first, then one controller at a time.

A voter is removed, an observer is added. What a request has done while its answer was lost is seen next time. A voter
whose disk was lost is removed before anything else, and its successor, with another directory, is added: without it,
the others must still be a majority.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from jepsen.sim.quorum.cluster import QuorumCluster, metadata_directory_id
from jepsen.sim.settings import INTERNAL_PORT
from jepsen.sim.workload.operator.voter_chore import upgrade_kraft_version
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Uuid
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
)

ADD_MS = 3_000
CHANGED = "voters changed"

Call = Callable[[object], Awaitable[Any]]  # a request to the active controller -> its response; None: none came


class VoterChanges:
    def __init__(self, cluster: QuorumCluster, rng: random.Random, call: Call) -> None:
        self._cluster, self._rng, self._call = cluster, rng, call
        self._hosts = {node_id: host for host, node_id in cluster.layout.controllers.items()}

    async def change(self) -> None:
        """One change, if one is possible."""
        found = await self._call(DescribeQuorumRequest())
        if found is None or found.error_code:
            return
        if found.kraft_version == 0:
            upgrade_kraft_version(self._cluster.active_controller())
            return
        request = self._request(found)
        if request is not None:
            self._cluster.voters_asked_ns = self._cluster.scheduler.now_ns
            response = await self._call(request)
            if response is not None and response.error_code == ErrorCode.NONE:
                self._cluster.count(CHANGED)

    def _request(self, found: DescribeQuorumResponse) -> object | None:
        voters = {row.replica_id: row.directory_id for row in found.voters}
        seen = [row for row in found.observers if row.replica_id in self._hosts]
        gone = [node_id for node_id in voters if not self._has_its_disk(node_id, voters[node_id])]
        if gone:
            return RemoveRaftVoterRequest(voter_id=gone[0], voter_directory_id=voters[gone[0]])
        if seen and (len(voters) == 1 or self._rng.random() < 0.6):
            row = self._rng.choice(seen)
            endpoint = Endpoint(name="INTERNAL", host=self._hosts[row.replica_id], port=INTERNAL_PORT)
            return AddRaftVoterRequest(
                timeout_ms=ADD_MS,
                voter_id=row.replica_id,
                voter_directory_id=row.directory_id,
                listeners=(endpoint,),
            )
        if len(voters) == 1:
            return None
        leads = found.leader_id in voters and self._rng.random() < 0.4
        leaver = found.leader_id if leads else self._rng.choice(sorted(voters))
        return RemoveRaftVoterRequest(voter_id=leaver, voter_directory_id=voters[leaver])

    def _has_its_disk(self, node_id: NodeId, directory_id: Uuid) -> bool:
        """Whoever replaced a disk knows that."""
        return metadata_directory_id(self._cluster.machines[self._hosts[node_id]]) == directory_id

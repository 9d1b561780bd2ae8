"""An operator changes the voters: kraft.version first, then controllers are removed and added again, one at a time.

At least two voters stay, so that one of them may always be down. Requests go the way of every client: to any broker,
which forwards them to the active controller. What a request has done while its answer was lost is seen next time.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import CONTROLLERS, INTERNAL_PORT
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.errors import QuorumlogError
from quorumlog.errors import ApiError
from quorumlog.ids import NodeId
from quorumlog.messages.common import Endpoint
from quorumlog.messages.quorum import DescribeQuorumResponse
from quorumlog.rpc.transport import RpcError

MIN_VOTERS = 2
_ADD_TIMEOUT_MS = 5_000
_HOSTS = {node_id: host for host, node_id in CONTROLLERS.items()}


class VoterChore:
    def __init__(self, cluster: SimCluster, rng: random.Random, admin: Callable[[], AsyncAdmin]) -> None:
        self._cluster, self._rng, self._admin = cluster, rng, admin

    async def change(self) -> bool:
        """One change. Returns whether it was acknowledged."""
        async with self._admin() as admin:
            try:
                return await self._change(admin)
            except (QuorumlogError, RpcError):
                return False

    async def _change(self, admin: AsyncAdmin) -> bool:
        found = await admin.describe_quorum()
        if found.kraft_version == 0:
            upgrade_kraft_version(self._cluster.active_controller())
            return False
        voters = [row.replica_id for row in found.voters]
        absent = [row for row in found.observers if row.replica_id in _HOSTS and row.replica_id not in voters]
        if absent and (len(voters) <= MIN_VOTERS or self._rng.random() < 0.5):
            row = self._rng.choice(absent)
            await admin.add_voter(row.replica_id, row.directory_id, [_endpoint(row.replica_id)], _ADD_TIMEOUT_MS)
        elif len(voters) > MIN_VOTERS:
            await self._remove(admin, found)
        else:
            return False
        return True

    async def _remove(self, admin: AsyncAdmin, found: DescribeQuorumResponse) -> None:
        """Often the leader itself."""
        leaders = [row for row in found.voters if row.replica_id == found.leader_id]
        row = self._rng.choice(leaders if leaders and self._rng.random() < 0.4 else found.voters)
        await admin.remove_voter(row.replica_id, row.directory_id)


def _endpoint(node_id: NodeId) -> Endpoint:
    return Endpoint(name="INTERNAL", host=_HOSTS[node_id], port=INTERNAL_PORT)


def upgrade_kraft_version(machine: Machine | None) -> None:
    """machine: of the active controller, which refuses until all voters have told it about themselves; None: none."""
    if machine is None or machine.loop is None or machine.node is None or machine.node.driver is None:
        return
    loop, driver = machine.loop, machine.node.driver

    async def upgrade() -> None:
        with suppress(ApiError):
            await driver.upgrade_kraft_version()

    loop.deliver(lambda: loop.create_task(upgrade()))

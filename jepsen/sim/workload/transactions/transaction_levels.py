"""The level of transaction.version falls and rises while transactions are open, up to the one that all clients speak.

It is asked of the active controller, as a broker would: past the coordinators, whose open transactions would be in the
way nearly always. So every coordinator meets a level that its clients do not go by, as it does for a moment whenever
its metadata is late. What clients are told must not depend on it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.sim.settings import CONTROLLERS, INTERNAL_PORT
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FeatureUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from quorumlog.rpc.transport import Address, RpcError, Transport
from quorumlog_quorum.metadata.features import JOINT_BEGINS, JOINT_VERSION, TRANSACTION_VERSION

NEWEST = 2
UPGRADE, SAFE_DOWNGRADE = 1, 2
RAISED, LOWERED = "transaction levels raised", "transaction levels lowered"
_CALL_MS = 2_000
_FIRST_S = (1.0, 3.0)
_BETWEEN_S = (0.5, 2.5)


async def change_levels(
    transport: Transport, rng: random.Random, stopped: Callable[[], bool], counts: dict[str, int]
) -> None:
    """transport: with the cluster's secret. counts: how often each happened."""
    addresses = [Address(host, INTERNAL_PORT) for host in CONTROLLERS]
    connections = [transport.connect(address, internal=True) for address in addresses]
    level = NEWEST
    await asyncio.sleep(rng.uniform(*_FIRST_S))
    while not stopped():
        wanted = rng.choice([one for one in range(NEWEST + 1) if one != level])
        kind = UPGRADE if wanted > level else SAFE_DOWNGRADE
        levels = {TRANSACTION_VERSION: wanted, **_joint(level, wanted)}
        updates = tuple(FeatureUpdate(name=name, level=to, upgrade_type=kind) for name, to in levels.items())
        request = UpdateFeaturesRequest(updates=updates, timeout_ms=_CALL_MS)
        for connection in rng.sample(connections, len(connections)):
            try:
                response: UpdateFeaturesResponse = await connection.call(request, _CALL_MS)
            except RpcError:
                continue
            if response.error_code == ErrorCode.NONE:
                counts[RAISED if wanted > level else LOWERED] += 1
                level = wanted
                break
        await asyncio.sleep(rng.uniform(*_BETWEEN_S))
    for connection in connections:
        await connection.close()


def _joint(level: int, wanted: int) -> dict[str, int]:
    """joint.version stands on the newest level, and on no other."""
    if wanted == NEWEST:
        return {JOINT_VERSION: JOINT_BEGINS}
    return {JOINT_VERSION: 0} if level == NEWEST else {}

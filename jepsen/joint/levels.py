"""joint.version falls and rises while batches are written: from 2 to 1, at rest to 0, and back to 2.

It is asked of brokers, which ask all coordinators before the last step: a level of 0 is refused while anything is open.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from jepsen.transactions.calls import Calls
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import FeatureUpdate, UpdateFeaturesRequest, UpdateFeaturesResponse
from quorumlog.rpc.transport import RpcError
from quorumlog_quorum.metadata.features import JOINT_BEGINS, JOINT_ENDS, JOINT_VERSION

UPGRADE, SAFE_DOWNGRADE = 1, 2
LOWERED, LEFT, KEPT = "joint level lowered", "joint level left", "joint level kept by what is open"
_CALL_MS = 2_000
_AT_2_S, _AT_1_S = (2.0, 6.0), (0.1, 1.0)
_LEAVES, _TRIES, _BETWEEN_S = 0.6, 30, 0.25


async def change_levels(calls: Calls, rng: random.Random, stopped: Callable[[], bool], counts: dict[str, int]) -> None:
    """Ends at level 2. counts: how often each happened."""
    while not stopped():
        await asyncio.sleep(rng.uniform(*_AT_2_S))
        await _set(calls, 0)  # in one step, which is refused
        if stopped() or await _set(calls, JOINT_ENDS) != ErrorCode.NONE:
            continue
        counts[LOWERED] += 1
        await asyncio.sleep(rng.uniform(*_AT_1_S))
        if rng.random() < _LEAVES:
            await _leave(calls, stopped, counts)
        await _raise(calls)
    await _raise(calls)
    await calls.close()


async def _leave(calls: Calls, stopped: Callable[[], bool], counts: dict[str, int]) -> None:
    for _ in range(_TRIES):
        code = await _set(calls, 0)
        counts[LEFT] += code == ErrorCode.NONE
        counts[KEPT] += code == ErrorCode.INVALID_UPDATE_VERSION
        if code == ErrorCode.NONE or stopped():
            return
        await asyncio.sleep(_BETWEEN_S)


async def _raise(calls: Calls) -> None:
    while True:
        if await _set(calls, JOINT_BEGINS) == ErrorCode.NONE:
            return
        await asyncio.sleep(_BETWEEN_S)


async def _set(calls: Calls, level: int) -> ErrorCode:
    """REQUEST_TIMED_OUT where nobody has answered."""
    kind = UPGRADE if level == JOINT_BEGINS else SAFE_DOWNGRADE
    request = UpdateFeaturesRequest(
        updates=(FeatureUpdate(name=JOINT_VERSION, level=level, upgrade_type=kind),), timeout_ms=_CALL_MS
    )
    try:
        response: UpdateFeaturesResponse = await calls.to_any(request)
    except RpcError:
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode(response.error_code)

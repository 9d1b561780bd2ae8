"""Whether a gRPC channel is connected. This proves whether a call can have reached the network.

A status such as UNAVAILABLE does not say how far the request got. So a call is given to gRPC only
while its channel is connected; a call that fails before that has certainly not been delivered.
"""

from __future__ import annotations

import asyncio

import grpc

from quorumlog.rpc.transport import Address

READY = grpc.ChannelConnectivity.READY
_HOPELESS = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


def target_of(address: Address) -> str:
    return f"dns:///{address}"


async def connected(channel: grpc.aio.Channel, timeout_ms: int) -> bool:
    """True once the channel is connected; False after a failed attempt or at the timeout.

    After a failed attempt gRPC waits before the next one. During that wait this returns False at once; callers have
    their own back-off.
    """
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await _next_outcome(channel)
    except TimeoutError:
        return False


async def _next_outcome(channel: grpc.aio.Channel) -> bool:
    while True:
        state = channel.get_state(try_to_connect=True)
        if state is READY:
            return True
        if state in _HOPELESS:
            return False
        await channel.wait_for_state_change(state)

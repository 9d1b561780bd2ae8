"""Whether a gRPC channel is connected: the proof that a call has, or has not, been handed to the network.

A status such as UNAVAILABLE says nothing about where the request got to (RELIABILITY 6.4, 36). So a call is given to
gRPC only while its channel is connected; what fails before that has certainly not been delivered.
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
    """True as soon as the channel is connected, False once an attempt has failed or the time is up.

    After a failed attempt gRPC waits before the next one, and during that wait the answer is False at once: callers
    retry with a delay of their own.
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

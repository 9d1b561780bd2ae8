"""A process that sends one heartbeat and then waits to be killed: `beating_client.py PORT`."""

from __future__ import annotations

import asyncio
import sys

from transport_worlds import identity

from quorumlog.ids import ZERO_UUID
from quorumlog.messages.controller import BrokerHeartbeatRequest
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address


async def main(port: int) -> None:
    beat = BrokerHeartbeatRequest(
        broker_id=2,
        broker_epoch=1,
        current_metadata_offset=0,
        want_fence=False,
        want_shutdown=False,
        incarnation_id=ZERO_UUID,
    )
    connection = GrpcTransport(identity(2)).connect(Address("127.0.0.1", port), internal=True)
    await connection.call(beat, 10_000)
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1])))

"""The second half of a probe, the same for every wire: ask who is there, and believe only a plain answer."""

from __future__ import annotations

from quorumlog.ids import UUID_BYTES
from quorumlog.messages.controller import ProbeRequest, ProbeResponse
from quorumlog.rpc.transport import Answered, Connection, NoProof, RpcError


async def ask_who(connection: Connection, timeout_ms: int) -> Answered | NoProof:
    """Closes the connection, which must be a fresh one that shows this node's identity."""
    try:
        response: ProbeResponse = await connection.call(ProbeRequest(), timeout_ms)
    except RpcError as error:
        return NoProof(str(error))
    finally:
        await connection.close()
    if response.error_code != 0:
        return NoProof(f"answered with error {response.error_code}: {response.error_message}")
    if len(response.incarnation_id) != UUID_BYTES:
        return NoProof("the answer names no incarnation")
    return Answered(response.node_id, response.incarnation_id)

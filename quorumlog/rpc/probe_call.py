"""The second half of a probe, the same for every transport: ask for the incarnation, and accept only a clear answer."""

from __future__ import annotations

from quorumlog.ids import UUID_BYTES
from quorumlog.messages.controller import ProbeRequest, ProbeResponse
from quorumlog.rpc.transport import Answered, Connection, NoProof, RpcError


async def ask_who(connection: Connection, timeout_ms: int) -> Answered | NoProof:
    """connection: a fresh one that shows this node's identity. It is closed."""
    try:
        response: ProbeResponse = await connection.call(ProbeRequest(), timeout_ms)
    except RpcError as error:
        return NoProof(str(error))
    finally:
        await connection.close()
    if response.error_code != 0:
        return NoProof(f"answered with error {response.error_code}: {response.error_message}")
    if len(response.incarnation_id) != UUID_BYTES:
        return NoProof("the answer contains no incarnation")
    return Answered(
        response.node_id,
        response.incarnation_id,
        response.directory_id,
        response.is_controller,
        response.min_kraft_version,
        response.max_kraft_version,
    )

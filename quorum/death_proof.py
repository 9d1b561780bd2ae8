"""Proof that a leader's process has ended (DESIGN 5), so that an election after kill -9 waits for no time-out.

The proof is a refused connection on every resolved address, twice, 50 ms apart, at an address where this node has
reached that same process before; or an answer from another process at that address. Silence, a missing route or a
paused process prove nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorum.peers import Peers
from quorumlog.ids import NodeId, Uuid
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Answered, ProbeResult, Refused, Transport

PROBE_TIMEOUT_MS = 500
BETWEEN_REFUSALS_MS = 50


class DeathProof:
    """At most one probe per node is in flight."""

    def __init__(
        self, *, transport: Transport, peers: Peers, nursery: Nursery, on_dead: Callable[[NodeId], None]
    ) -> None:
        self._transport, self._peers, self._nursery, self._on_dead = transport, peers, nursery, on_dead
        self._incarnations: dict[NodeId, Uuid] = {}  # of the processes that this node has reached
        self._probing: dict[NodeId, None] = {}

    def learn_incarnation(self, node_id: NodeId) -> None:
        """This node follows a new leader: find out which process runs it, for a later proof."""
        self._begin(node_id, suspected=False)

    def suspect(self, node_id: NodeId) -> None:
        """A request to this node failed: find out whether its process has ended."""
        self._begin(node_id, suspected=True)

    def _begin(self, node_id: NodeId, *, suspected: bool) -> None:
        if node_id not in self._probing:
            self._probing[node_id] = None
            self._nursery.start(self._find_out(node_id, suspected), f"probe of {node_id}")

    async def _find_out(self, node_id: NodeId, suspected: bool) -> None:
        known = self._incarnations.get(node_id)
        try:
            found = await self._probe(node_id)
            if isinstance(found, Refused) and suspected and known is not None:
                await asyncio.sleep(BETWEEN_REFUSALS_MS / 1000)
                found = await self._probe(node_id)
        finally:
            self._probing.pop(node_id, None)
        if isinstance(found, Answered) and found.node_id == node_id:
            self._incarnations[node_id] = found.incarnation_id
        if suspected and known is not None and _is_proof(found, known):
            self._on_dead(node_id)

    async def _probe(self, node_id: NodeId) -> ProbeResult:
        return await self._transport.probe(self._peers.address_of(node_id), PROBE_TIMEOUT_MS)


def _is_proof(found: ProbeResult, known: Uuid) -> bool:
    """found: of the second probe, if the first one was refused. known: the incarnation that was reached before."""
    return isinstance(found, Refused) or (isinstance(found, Answered) and found.incarnation_id != known)

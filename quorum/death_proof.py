"""Proof that a leader's process is gone (DESIGN 5), so that nobody waits for a timeout after kill -9.

Proof is a refusal on every resolved address, twice, 50 ms apart, where this node has reached that very process before;
or an answer from another process in its place. Silence, no route, a paused process prove nothing.
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
    """At most one probe per node is under way."""

    def __init__(
        self, *, transport: Transport, peers: Peers, nursery: Nursery, on_dead: Callable[[NodeId], None]
    ) -> None:
        self._transport, self._peers, self._nursery, self._on_dead = transport, peers, nursery, on_dead
        self._incarnations: dict[NodeId, Uuid] = {}  # as this node has reached them itself
        self._under_way: dict[NodeId, None] = {}

    def meet(self, node_id: NodeId) -> None:
        """This node follows a leader now: find out which process that is."""
        self._begin(node_id, suspected=False)

    def suspect(self, node_id: NodeId) -> None:
        """The way to it broke."""
        self._begin(node_id, suspected=True)

    def _begin(self, node_id: NodeId, *, suspected: bool) -> None:
        if node_id not in self._under_way:
            self._under_way[node_id] = None
            self._nursery.start(self._look(node_id, suspected), f"probe of {node_id}")

    async def _look(self, node_id: NodeId, suspected: bool) -> None:
        known = self._incarnations.get(node_id)
        try:
            found = await self._probe(node_id)
            if isinstance(found, Refused) and suspected and known is not None:
                await asyncio.sleep(BETWEEN_REFUSALS_MS / 1000)
                found = await self._probe(node_id)
        finally:
            self._under_way.pop(node_id, None)
        if isinstance(found, Answered) and found.node_id == node_id:
            self._incarnations[node_id] = found.incarnation_id
        if suspected and known is not None and _is_proof(found, known):
            self._on_dead(node_id)

    async def _probe(self, node_id: NodeId) -> ProbeResult:
        return await self._transport.probe(self._peers.address_of(node_id), PROBE_TIMEOUT_MS)


def _is_proof(found: ProbeResult, known: Uuid) -> bool:
    """`Refused` is the second one in a row here."""
    return isinstance(found, Refused) or (isinstance(found, Answered) and found.incarnation_id != known)

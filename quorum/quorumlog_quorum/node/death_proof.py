"""Proof that a leader's process has ended, so that an election after kill -9 waits for no time-out.

The proof is a refused connection on every resolved address, twice, 50 ms apart, at an address where this node has
reached that same process before; or an answer from another process at that address. Silence, a missing route or a
paused process prove nothing.

A proof is about the process that led one epoch. "Reached before" means since that epoch began here: then the process
that was reached is the leader's, or one that came after it. A process that was reached in an earlier epoch can have
ended before the same node was elected again, so its end proves nothing about the leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from quorumlog.ids import Epoch, NodeId, Uuid
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Answered, NoProof, ProbeResult, Refused, Transport
from quorumlog_quorum.node.peers import Peers

PROBE_TIMEOUT_MS = 500
BETWEEN_REFUSALS_MS = 50


@dataclass(frozen=True, slots=True)
class _Reached:
    """A process that answered a probe, and the epoch that its node led when the probe began."""

    incarnation_id: Uuid
    epoch: Epoch


class DeathProof:
    """At most one probe per node is in flight. Meanwhile a suspicion is dropped: the next failed request repeats it."""

    def __init__(
        self, *, transport: Transport, peers: Peers, nursery: Nursery, on_dead: Callable[[NodeId, Epoch], None]
    ) -> None:
        """on_dead: told a node and the epoch that its ended process led."""
        self._transport, self._peers, self._nursery, self._on_dead = transport, peers, nursery, on_dead
        self._reached: dict[NodeId, _Reached] = {}  # the newest of each node
        self._probing: dict[NodeId, Epoch] = {}  # nodes with a probe in flight -> the newest epoch that was asked about

    def learn_incarnation(self, node_id: NodeId, epoch: Epoch) -> None:
        """This node follows the new leader of `epoch`: find out which process runs it, for a later proof."""
        self._begin(node_id, epoch, suspected=False)

    def suspect(self, node_id: NodeId, epoch: Epoch) -> None:
        """A request to the leader of `epoch` failed: find out whether its process has ended."""
        self._begin(node_id, epoch, suspected=True)

    def _begin(self, node_id: NodeId, epoch: Epoch, *, suspected: bool) -> None:
        under_way = node_id in self._probing
        self._probing[node_id] = max(epoch, self._probing.get(node_id, epoch))
        if not under_way:
            self._nursery.start(self._find_out(node_id, epoch, suspected), f"probe of {node_id}")

    async def _find_out(self, node_id: NodeId, epoch: Epoch, suspected: bool) -> None:
        known = self._incarnation_in(epoch, node_id)
        try:
            found = await self._probe(node_id)
            if isinstance(found, Refused) and suspected and known is not None:
                await asyncio.sleep(BETWEEN_REFUSALS_MS / 1000)
                found = await self._probe(node_id)
        finally:
            newest = self._probing.pop(node_id)
        if isinstance(found, Answered) and found.node_id == node_id:
            self._reached[node_id] = _Reached(found.incarnation_id, epoch)
        if suspected and known is not None and _is_proof(found, known):
            self._on_dead(node_id, epoch)
        if newest > epoch:  # the node was elected again during this probe
            self.learn_incarnation(node_id, newest)

    def _incarnation_in(self, epoch: Epoch, node_id: NodeId) -> Uuid | None:
        """The process of the node that was reached since it leads `epoch`; None if none was."""
        reached = self._reached.get(node_id)
        return reached.incarnation_id if reached is not None and reached.epoch == epoch else None

    async def _probe(self, node_id: NodeId) -> ProbeResult:
        address = self._peers.address_of(node_id)
        if address is None:
            return NoProof(f"the address of node {node_id} is not known")
        return await self._transport.probe(address, PROBE_TIMEOUT_MS)


def _is_proof(found: ProbeResult, known: Uuid) -> bool:
    """found: of the second probe, if the first one was refused. known: the incarnation that was reached before."""
    return isinstance(found, Refused) or (isinstance(found, Answered) and found.incarnation_id != known)

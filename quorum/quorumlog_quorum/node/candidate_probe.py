"""Asks a node who it is, before the quorum makes it a voter: the node with the right id and the right directory."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Address, Answered, Transport
from quorumlog_quorum.raft import CandidateProbed, FoundCandidate, ProbeCandidate, VoterKey

PROBE_TIMEOUT_MS = 1_000


class CandidateProbe:
    def __init__(self, transport: Transport, nursery: Nursery) -> None:
        self._transport, self._nursery = transport, nursery

    def ask(self, probe: ProbeCandidate, on_answer: Callable[[CandidateProbed], None]) -> None:
        self._nursery.start(self._ask(probe, on_answer), f"probe of {probe.endpoint.host}:{probe.endpoint.port}")

    async def _ask(self, probe: ProbeCandidate, on_answer: Callable[[CandidateProbed], None]) -> None:
        found = await self._transport.probe(Address(probe.endpoint.host, probe.endpoint.port), PROBE_TIMEOUT_MS)
        on_answer(CandidateProbed(probe.number, _candidate(found) if isinstance(found, Answered) else None))


def _candidate(found: Answered) -> FoundCandidate:
    return FoundCandidate(
        VoterKey(found.node_id, found.directory_id),
        found.is_controller,
        found.min_kraft_version,
        found.max_kraft_version,
    )

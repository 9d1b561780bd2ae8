"""Followers that serve consumers in their rack (KIP-392), checked when a broker answers a fetch.

- near-in-isr: a follower that gives records to a consumer is in the ISR, as far as its own metadata says.
- near-below-stable: what it gives to a reader of committed records ends at its last stable offset.
- near-holds: a leader sends a reader to a broker only that is in the ISR it knows, and in the reader's rack.

That no answer passes the high watermark, and that its bytes are those of the log, FetchInvariants look at, of leaders
and followers alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.machine.machine import Machine
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.buffer import whole
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse
from quorumlog.records.format.batch import headers
from quorumlog_broker.fetch.isolation import READ_COMMITTED
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica


class NearReadInvariants(Invariant):
    """sent: answers that sent a reader to a follower. served: answers of followers with records."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.sent = self.served = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"readers sent near": self.sent, "near answers": self.served}

    def on_fetched(self, machine: Machine, request: FetchRequest, response: FetchResponse) -> None:
        plane = data_plane_of(machine) if request.rack and request.replica is None else None
        if plane is None:
            return
        for topic in response.topics:
            topic_id = topic.topic_id or plane.registry.image.topic_ids.get(topic.name, b"")
            for answer in topic.partitions:
                replica = plane.registry.replicas.get((topic_id, answer.index))
                if replica is not None and answer.error_code == ErrorCode.NONE:
                    self._on_answer(machine, plane.registry, replica, request, answer)

    def _on_answer(
        self,
        machine: Machine,
        registry: Registry,
        replica: Replica,
        request: FetchRequest,
        answer: FetchPartitionResponse,
    ) -> None:
        core, what = replica.core, f"{machine.host}, life {machine.life}, answers a near fetch of {replica.name}"
        if answer.preferred_read_replica != NO_NODE:
            self.sent += 1
            broker = registry.image.brokers.get(answer.preferred_read_replica)
            is_there = broker is not None and broker.rack == request.rack
            if answer.preferred_read_replica not in core.isr_state.isr or not is_there:
                told = f"with broker {answer.preferred_read_replica}; its ISR is {core.isr_state.isr}"
                self._findings.broken("near-holds", f"{what} from {request.rack} {told}")
        if core.is_leader or not answer.records:
            return
        self.served += 1
        if core.node_id not in core.isr_state.isr:
            self._findings.broken("near-in-isr", f"{what} with records; its ISR is {core.isr_state.isr}")
        end = headers(whole(answer.records))[-1].next_offset
        if request.isolation_level == READ_COMMITTED and end > answer.last_stable_offset:
            stable = answer.last_stable_offset
            self._findings.broken("near-below-stable", f"{what} up to {end}, above the last stable offset {stable}")

"""What a produce answer promises, checked when the broker answers.

- acknowledged-without-leading: a life acknowledges only in partitions that it has led itself.
- ack-below-high-watermark: with acks=all, the records lie below a high watermark that this life had as leader.
- leader-ack-on-disk: with acks=1, the leader had the records on its disk while it led (written, where the topic leaves
  durability to the page cache).
- leader-ack-is-kept: the promise of acks=1. **A record that a leader acknowledged with acks=1 stays in its log as long
  as it leads without interruption.** It may be lost with that leadership: by a kill of its process, a power cut, or the
  election of another replica. Once the high watermark has passed it, it is committed like any other.

An acknowledgement with acks=0 promises nothing and is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant, serving_brokers
from jepsen.sim.invariants.replica_watch import data_plane_of
from jepsen.sim.invariants.replicas.leaderships import Leadership, Leaderships
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import COMPACTED_TOPIC
from jepsen.sim.truth.mirrors import Mirrors, log_of
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.produce import ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopicResponse
from quorumlog.records.format.batch import headers
from quorumlog_broker.replicas.replica import Replica
from quorumlog_quorum.metadata.image import Image

_ACKS_ALL, _ACKS_LEADER = -1, 1


class AnswerInvariants(Invariant):
    """acked_by_leaders: answers with acks=1 that were checked."""

    def __init__(self, leaderships: Leaderships, mirrors: Mirrors, findings: Findings) -> None:
        self._leaderships, self._mirrors, self._findings = leaderships, mirrors, findings
        self.acked_by_leaders = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"acks=1 checked": self.acked_by_leaders}

    def on_produced(self, machine: Machine, request: ProduceRequest, response: ProduceResponse) -> None:
        for topic, asked in zip(response.topics, request.topics, strict=True):
            for answer, partition in zip(topic.partitions, asked.partitions, strict=True):
                replica = _replica_of(machine, topic, answer)
                if replica is None or replica.topic == COMPACTED_TOPIC:
                    continue
                if answer.error_code == ErrorCode.NONE:
                    count = sum(header.last_offset_delta + 1 for header in headers(partition.records))
                    end = answer.base_offset + count
                    self._on_acked(machine, replica, request.acks, end, by_name=not topic.topic_id)

    def on_cut(self, machine: Machine, log: str) -> None:
        """The log may have become shorter on this machine."""
        plane = data_plane_of(machine)
        for replica in plane.registry.replicas.values() if plane is not None else ():
            if log_of(replica) == log:
                self._check_kept(machine, replica)

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        for machine in serving_brokers(machines):
            self.check_kept(machine)

    def check_kept(self, machine: Machine) -> None:
        plane = data_plane_of(machine)
        for replica in plane.registry.replicas.values() if plane is not None else ():
            self._check_kept(machine, replica)

    def _on_acked(self, machine: Machine, replica: Replica, acks: int, end: Offset, *, by_name: bool) -> None:
        """end: exclusive, of the records that are acknowledged.

        by_name: the topic may have been made anew before the answer; this life has led the one before.
        """
        self._leaderships.after(machine, [replica])  # what this step has changed so far
        named = self._leaderships.named(machine, replica.name)
        led = self._leaderships.of(machine, replica.key) or (named if by_name else [])
        what = f"{machine.host}, life {machine.life}, acknowledges {replica.name} up to {end} with acks={acks}"
        if not led:
            self._findings.broken("acknowledged-without-leading", what)
        elif acks == _ACKS_ALL:
            reached = max(leadership.high_watermark for leadership in named)
            if end > reached:
                self._findings.broken("ack-below-high-watermark", f"{what}; its high watermark was {reached} at most")
        elif acks == _ACKS_LEADER:
            self._on_leader_ack(machine, replica, led, end, what)

    def _on_leader_ack(self, machine: Machine, replica: Replica, led: list[Leadership], end: Offset, what: str) -> None:
        self.acked_by_leaders += 1
        current = self._leaderships.current(machine, replica.key)
        on_disk = max(leadership.on_disk for leadership in led)
        if current is not None:
            on_disk = max(on_disk, self._leaderships.end_on_disk(machine, replica))
        if end > on_disk:
            self._findings.broken("leader-ack-on-disk", f"{what}; as leader it had {on_disk} on its disk")
        elif current is not None and end > current.acked:
            chain = self._mirrors.of_replica(machine, replica).chain_at(end)
            if chain is not None:  # otherwise the answer is of an earlier leadership, whose records were cut
                current.acked, current.chain = end, chain

    def _check_kept(self, machine: Machine, replica: Replica) -> None:
        current = self._leaderships.current(machine, replica.key)
        if current is None or not current.acked:
            return
        mirror = self._mirrors.of_replica(machine, replica)
        if not mirror.agrees_at(current.acked, current.chain):
            what = f"{machine.host} leads {replica.name} in epoch {current.epoch} without interruption"
            lost = f"the log up to {current.acked}, acknowledged with acks=1, is not there any more"
            self._findings.broken("leader-ack-is-kept", f"{what}, but {lost}; it ends at {mirror.end}")


def _replica_of(machine: Machine, topic: ProduceTopicResponse, answer: ProducePartitionResponse) -> Replica | None:
    """None if the replica was taken from the broker meanwhile."""
    plane = data_plane_of(machine)
    if plane is None:
        return None
    topic_id = topic.topic_id or plane.registry.image.topic_ids.get(topic.name, b"")
    return plane.registry.replicas.get((topic_id, answer.index))

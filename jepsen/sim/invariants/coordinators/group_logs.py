"""The records of groups when everything has ended, read from a disk (jepsen.checkers.group_log)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jepsen.checkers.findings import Findings
from jepsen.checkers.group_log import Generation, Step, check_log
from jepsen.sim.invariants.coordinators.transaction_logs import logs_of
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.settings import BROKERS
from jepsen.sim.truth.mirrors import Mirrors
from quorumlog.records import iter_batch, iter_headers
from quorumlog.records.coordinator import GROUP_TYPES, decode
from quorumlog.records.coordinator.consumer_groups import ConsumerGroupMetadataKey
from quorumlog.records.coordinator.offsets import GroupMetadataKey, GroupMetadataValue
from quorumlog.topic_name import CONSUMER_OFFSETS
from quorumlog_quorum.metadata.image import Image


class GroupLogs(Invariant):
    """counts: what was looked at."""

    def __init__(self, mirrors: Mirrors, findings: Findings) -> None:
        self._mirrors, self._findings = mirrors, findings
        self.counts = {"group records checked": 0}

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def at_the_end(self, image: Image, machines: dict[str, Machine]) -> None:
        """All replicas are equal, and nothing was compacted."""
        any_broker = machines[next(iter(BROKERS))]
        for data in logs_of(self._mirrors, CONSUMER_OFFSETS, image, any_broker).values():
            batches = list(steps_of(data))
            self.counts["group records checked"] += sum(map(len, batches))
            for finding in check_log(batches):
                self._findings.broken(finding.name, finding.text)


def steps_of(data: bytes) -> Iterator[list[Step]]:
    """By batch."""
    for header in iter_headers(data):
        if header.is_control:
            continue
        found: list[Step] = []
        for record in iter_batch(data, header):
            one = decode(GROUP_TYPES, record.key, record.value)
            if isinstance(one.key, GroupMetadataKey):
                found.append(_classic(one.key.group, one.value))
            elif isinstance(one.key, ConsumerGroupMetadataKey):
                found.append(Step(one.key.group_id, False, None if one.value is None else one.value.epoch))
        yield found


def _classic(group: str, value: GroupMetadataValue | None) -> Step:
    if value is None:
        return Step(group, True, None)
    instances = {one.member_id: one.group_instance_id or one.member_id for one in value.members}
    leader = None if value.leader is None else instances.get(value.leader, value.leader)
    generation = Generation(leader, value.protocol, frozenset(instances.values()))
    return Step(group, True, value.generation, generation if value.members else None)

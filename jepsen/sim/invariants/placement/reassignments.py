"""What must hold where partitions move between brokers.

- copies-kept: a change of the replicas takes no copy of committed records away if fewer than min.insync.replicas of
  them are left then. A copy is a member of the ISR or of the ELR. Where durability is, or was, left to the page cache
  an unclean end takes a replica out of the ELR, so there every replica counts as a copy that goes.
- reassignments-end: once nothing strikes and nobody asks, every reassignment ends. `run.py` waits for it.

For all other invariants, a replica that left is none, and one that came is like any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.truth.mirrors import log_id
from quorumlog.configs.topic import TopicConfig
from quorumlog.ids import NodeId
from quorumlog_quorum.metadata.check import effective_min_isr
from quorumlog_quorum.metadata.image import CLUSTER_DEFAULT, RAISED_RESOURCE, Image
from quorumlog_quorum.metadata.registration import PartitionRegistration

CAME, WENT = "replicas added", "replicas removed"
HELD_UP = "reassignments held up by copies that ISR and ELR do not name"


class ReassignmentInvariants(Invariant):
    """counts: replicas that partitions gained and gave up, as committed images show them, and changes of partitions
    that left a reassignment under way for the sake of a copy whose process was killed."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._known: dict[str, PartitionRegistration] = {}  # by log, as in the newest image
        self.counts = {CAME: 0, WENT: 0, HELD_UP: 0}

    @property
    def exercised(self) -> Mapping[str, int]:
        return self.counts

    def on_image(self, image: Image) -> None:
        """The newest committed one."""
        for topic in image.sorted_topics():
            rules: TopicConfig | None = None
            was_raised = any((RAISED_RESOURCE, name) in image.configs for name in (topic.name, CLUSTER_DEFAULT))
            for index, after in topic.sorted_partitions():
                log = log_id(f"{topic.name}-{index}", topic.id)
                before = self._known.get(log)
                self._known[log] = after
                if before is None or before is after:
                    continue
                if before.replicas == after.replicas and not after.removing_replicas:
                    continue
                if rules is None:
                    rules = TopicConfig.from_map(image.topic_config(topic.name))
                names_all = rules.synced and not was_raised
                if before.replicas != after.replicas:
                    self._on_change(log, before, after, rules, names_all=names_all)
                if not names_all:
                    self.counts[HELD_UP] += _waits_for_unnamed(after, rules)

    def _on_change(
        self,
        log: str,
        before: PartitionRegistration,
        after: PartitionRegistration,
        rules: TopicConfig,
        *,
        names_all: bool,
    ) -> None:
        """names_all: ISR and ELR name every copy."""
        self.counts[CAME] += len({*after.replicas} - {*before.replicas})
        self.counts[WENT] += len({*before.replicas} - {*after.replicas})
        copies = {*after.isr, *after.eligible_leader_replicas}
        held = {*before.isr, *before.eligible_leader_replicas}
        if not names_all:
            held |= {*before.replicas}
        gone = held - {*after.replicas}
        needed = effective_min_isr(rules.min_insync_replicas, after.replicas)
        if gone and len(copies) < needed:
            what = f"{log}: {sorted(gone)} went, and only {sorted(copies)} hold what is committed; {needed} are needed"
            self._findings.broken("copies-kept", what)

    def replicas_of(self, log: str) -> tuple[NodeId, ...]:
        return self._known[log].replicas

    @staticmethod
    def left(image: Image) -> list[str]:
        """Partitions that are being reassigned now."""
        return [
            f"{topic.name}-{index}"
            for topic in image.sorted_topics()
            for index, partition in topic.sorted_partitions()
            if partition.adding_replicas or partition.removing_replicas
        ]


def _waits_for_unnamed(now: PartitionRegistration, rules: TopicConfig) -> bool:
    """It would end if only those held what is committed that ISR and ELR name."""
    stay = {*now.isr} - {*now.removing_replicas}
    named = {*now.isr, *now.eligible_leader_replicas}
    if not stay or not {*now.adding_replicas} - {*now.removing_replicas} <= stay or named & {*now.removing_replicas}:
        return False
    target = tuple(one for one in now.replicas if one not in now.removing_replicas)
    return bool(now.removing_replicas) and len(stay) < effective_min_isr(rules.min_insync_replicas, target)

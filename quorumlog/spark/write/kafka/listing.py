"""What people ask of the writers of an Apache Kafka: which groups there are, and what each has open."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.client.blocking import Cluster
from quorumlog.messages.joint import JointFact, ListedJointGroup, OpenJointChild
from quorumlog.messages.transactions import DescribedTransaction
from quorumlog.spark.write.kafka import core
from quorumlog.spark.write.kafka.calls import Calls, DecisionTopic
from quorumlog.spark.write.kafka.core import Limits, Overrides
from quorumlog.spark.write.kafka.decisions import ATTEMPTS, NOTHING, AttemptName, Decision, read_attempt

OPEN = ["Ongoing", "PrepareCommit", "PrepareAbort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttempt:
    """run: as `run_tag` says it. started_at_ms: since 1970. partitions: whose last stable offset it may hold back."""

    transactional_id: str
    run: str
    sequence: int
    state: str
    started_at_ms: int
    timeout_ms: int
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSink:
    """decision: None before the group's first record. written_at_ms: of that record, since 1970."""

    group: str
    decision: Decision | None
    written_at_ms: int = -1
    open: list[OpenAttempt] = field(default_factory=list)


def list_sinks(cluster: Cluster) -> list[ListedSink]:
    """By name: from the decisions, and from what is open. Makes no topic. Raises DecisionsRefused, and what the clients
    raise."""
    topic = DecisionTopic(cluster)
    written = topic.all_written() if topic.exists() else {}
    found = {
        group: ListedSink(group=group, decision=one.decision, written_at_ms=one.at_ms) for group, one in written.items()
    }
    listed = cluster.admin.list_transactions(states=OPEN)
    ids = [one.transaction.transactional_id for one in listed if one.transaction.transactional_id.startswith(ATTEMPTS)]
    for name, told in sorted(cluster.admin.describe_transactions(ids).items()):
        attempt = read_attempt(name)
        if attempt is not None:
            sink = found.setdefault(attempt.group, ListedSink(group=attempt.group, decision=None))
            sink.open.append(_open_attempt(name, attempt, told))
    return [found[group] for group in sorted(found)]


def joint_group_of(sink: ListedSink) -> ListedJointGroup:
    """The same, as a coordinator of joint transactions tells it. The place of an attempt's checkpoint is not known."""
    decision = sink.decision
    children = tuple(
        [
            OpenJointChild(
                transactional_id=one.transactional_id,
                run=one.run,
                sequence=one.sequence,
                started_at_ms=one.started_at_ms,
                timeout_ms=one.timeout_ms,
                location="",
            )
            for one in sink.open
            if one.state == core.OPEN
        ]
    )
    ending = len(sink.open) - len(children)
    if decision is None or decision.sequence == NOTHING:
        return ListedJointGroup(group_id=sink.group, open=children, ending=ending)
    return ListedJointGroup(
        group_id=sink.group,
        sequence=decision.sequence,
        kind=decision.kind,
        run=decision.run,
        location=decision.location,
        decided_at_ms=sink.written_at_ms,
        facts=tuple([JointFact(name=name, value=rows) for name, rows in sorted(decision.totals.items())]),
        open=children,
        ending=ending,
    )


def abort_sink(cluster: Cluster, group: str) -> int:
    """Finish what is decided, and abort what else is open; how many. The group's driver is fenced by it, so that its
    query ends. Takes over the cluster's clients, and closes them. Raises RunOver, NotEnded, DecidedTransactionLost."""
    calls = Calls(cluster)
    try:
        return calls.carry_out(core.abort_open(core.Run(), group, Overrides(), Limits()))
    finally:
        calls.close()


def forget_sink(cluster: Cluster, group: str) -> bool:
    """False: nothing is known of it. Its next run begins anew, so a stream needs firstBatch then. Takes over the
    cluster's clients, and closes them. Raises RequestFailed: JOINT_GROUP_OPEN."""
    calls = Calls(cluster)
    try:
        return calls.carry_out(core.forget(core.Run(), group))
    finally:
        calls.close()


def _open_attempt(name: str, attempt: AttemptName, told: DescribedTransaction) -> OpenAttempt:
    return OpenAttempt(
        transactional_id=name,
        run=attempt.run,
        sequence=attempt.sequence,
        state=told.state,
        started_at_ms=told.transaction_start_time_ms,
        timeout_ms=told.transaction_timeout_ms,
        partitions=tuple([(topic.name, index) for topic in told.topics for index in topic.partitions]),
    )

"""What people ask of the writers of an Apache Kafka: which groups there are, and what each has open."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.client.blocking import Cluster
from quorumlog.messages.transactions import DescribedTransaction
from quorumlog.spark.write.kafka import core
from quorumlog.spark.write.kafka.calls import Calls
from quorumlog.spark.write.kafka.decisions import Decision
from quorumlog.spark.write.kafka.names import ATTEMPTS, read_attempt
from quorumlog.spark.write.kafka.topic import DecisionTopic

OPEN = ["Ongoing", "PrepareCommit", "PrepareAbort"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttempt:
    """started_at_ms: since 1970. partitions: whose last stable offset it may hold back."""

    transactional_id: str
    sequence: int
    state: str
    started_at_ms: int
    timeout_ms: int
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSink:
    """decision: None before the group's first one."""

    group: str
    decision: Decision | None
    open: list[OpenAttempt] = field(default_factory=list)


def list_sinks(cluster: Cluster) -> list[ListedSink]:
    """By name: from the decisions, and from what is open. Makes no topic. Raises DecisionsRefused, and what the clients
    raise."""
    topic = DecisionTopic(cluster)
    decisions = topic.all() if topic.exists() else {}
    found = {group: ListedSink(group=group, decision=decision) for group, decision in decisions.items()}
    listed = cluster.admin.list_transactions(states=OPEN)
    ids = [one.transaction.transactional_id for one in listed if one.transaction.transactional_id.startswith(ATTEMPTS)]
    for name, told in sorted(cluster.admin.describe_transactions(ids).items()):
        attempt = read_attempt(name)
        if attempt is not None:
            sink = found.setdefault(attempt.group, ListedSink(group=attempt.group, decision=None))
            sink.open.append(_open_attempt(name, attempt.sequence, told))
    return [found[group] for group in sorted(found)]


def forget_sink(cluster: Cluster, group: str) -> bool:
    """False: nothing is known of it. Its next run begins anew, so a stream needs firstBatch then. Takes over the
    cluster's clients, and closes them. Raises RequestFailed: JOINT_GROUP_OPEN."""
    calls = Calls(cluster)
    try:
        return calls.carry_out(core.forget(core.Run(), group))
    finally:
        calls.close()


def _open_attempt(name: str, sequence: int, told: DescribedTransaction) -> OpenAttempt:
    return OpenAttempt(
        transactional_id=name,
        sequence=sequence,
        state=told.state,
        started_at_ms=told.transaction_start_time_ms,
        timeout_ms=told.transaction_timeout_ms,
        partitions=tuple([(topic.name, index) for topic in told.topics for index in topic.partitions]),
    )

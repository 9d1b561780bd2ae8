"""Which brokers keep a partition, and which of them leads it: changes of many at once (KIP-455, KIP-460).

Requests go to any broker, which forwards them to the controller, with at most PARTITIONS_PER_REQUEST partitions each.
All three may be carried out twice: a target that is set again changes nothing, and a cancellation that finds its own
work counts as done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, TopicPartition
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectionTopic,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    ReassignmentsOfTopic,
)

PARTITIONS_PER_REQUEST = 1_000


class ElectionType(IntEnum):
    """Kafka's numbers. UNCLEAN: any live replica, where no other one can lead; records may be lost."""

    PREFERRED = 0
    UNCLEAN = 1


class PartitionOutcome(NamedTuple):
    """What became of one partition's change. error: NONE: done or begun."""

    error: ErrorCode
    message: str = ""


class Reassignment(NamedTuple):
    """A reassignment under way. replicas: all that keep the partition now: the target, then those to be removed."""

    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]

    @property
    def target(self) -> tuple[NodeId, ...]:
        return tuple(one for one in self.replicas if one not in self.removing)


async def alter_partition_reassignments(
    link: Link, wanted: Mapping[TopicPartition, Sequence[NodeId] | None]
) -> dict[TopicPartition, PartitionOutcome]:
    """See `AsyncAdmin.alter_partition_reassignments`."""
    outcomes: dict[TopicPartition, PartitionOutcome] = {}
    for part in _portions(sorted(wanted)):
        request = AlterPartitionReassignmentsRequest(
            topics=tuple(
                ReassignableTopic(
                    name=topic, partitions=tuple(_reassignable(index, wanted[topic, index]) for index in indexes)
                )
                for topic, indexes in _by_topic(part)
            ),
            timeout_ms=_patience_ms(link),
        )
        response, in_doubt = await _ask_controller(link, request)
        found = _outcomes(response)
        if in_doubt:
            found = {key: _settled(outcome, wanted[key] is None) for key, outcome in found.items()}
        outcomes |= found
    return outcomes


async def list_partition_reassignments(
    link: Link, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Reassignment]:
    """See `AsyncAdmin.list_partition_reassignments`."""
    found: dict[TopicPartition, Reassignment] = {}
    for part in [None] if partitions is None else _portions(sorted(set(partitions))):
        request = ListPartitionReassignmentsRequest(
            all_topics=part is None,
            topics=tuple(ReassignmentsOfTopic(name=topic, partitions=those) for topic, those in _by_topic(part or ())),
            timeout_ms=_patience_ms(link),
        )
        response, _ = await _ask_controller(link, request)
        for topic in response.topics:
            for one in topic.partitions:
                changes = Reassignment(one.replicas, one.adding_replicas, one.removing_replicas)
                found[topic.name, one.index] = changes
    return found


async def elect_leaders(
    link: Link, election: ElectionType, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, PartitionOutcome]:
    """See `AsyncAdmin.elect_leaders`."""
    outcomes: dict[TopicPartition, PartitionOutcome] = {}
    for part in [None] if partitions is None else _portions(sorted(set(partitions))):
        request = ElectLeadersRequest(
            election_type=election,
            all_partitions=part is None,
            topics=tuple(ElectionTopic(name=topic, partitions=those) for topic, those in _by_topic(part or ())),
            timeout_ms=_patience_ms(link),
        )
        response, _ = await _ask_controller(link, request)
        outcomes |= _outcomes(response)
    return outcomes


async def _ask_controller(link: Link, request: Any) -> tuple[Any, bool]:
    """The answer, and whether an earlier try may have been carried out."""
    in_doubt = False

    def doubt() -> None:
        nonlocal in_doubt
        in_doubt = True

    async def ask() -> Any:
        response = await link.call_any(request, _patience_ms(link), doubt)
        if response.error_code == ErrorCode.REQUEST_TIMED_OUT:
            doubt()
        check(response)
        return response

    return await link.until(ask, link.options.default_api_timeout_ms), in_doubt


def _patience_ms(link: Link) -> int:
    """For one answer. A controller without a majority gives none, so who wants to know soon does not wait longer."""
    return min(link.options.request_timeout_ms, link.options.default_api_timeout_ms)


def failures(outcomes: Mapping[TopicPartition, PartitionOutcome]) -> dict[TopicPartition, PartitionOutcome]:
    return {key: outcome for key, outcome in outcomes.items() if outcome.error != ErrorCode.NONE}


def failure(key: TopicPartition, outcome: PartitionOutcome) -> RequestFailed:
    """The outcome as an exception that names its partition."""
    return RequestFailed(outcome.error, f"{key[0]}-{key[1]}: {outcome.message or outcome.error.name}")


def _reassignable(index: int, replicas: Sequence[NodeId] | None) -> ReassignablePartition:
    return ReassignablePartition(index=index, replicas=tuple(replicas or ()), cancel=replicas is None)


def _settled(outcome: PartitionOutcome, cancels: bool) -> PartitionOutcome:
    done = cancels and outcome.error == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    return PartitionOutcome(ErrorCode.NONE) if done else outcome


def _outcomes(response: Any) -> dict[TopicPartition, PartitionOutcome]:
    return {
        (topic.name, one.index): PartitionOutcome(ErrorCode(one.error_code), one.error_message)
        for topic in response.topics
        for one in topic.partitions
    }


def _portions(keys: Sequence[TopicPartition]) -> Iterator[Sequence[TopicPartition]]:
    for start in range(0, len(keys), PARTITIONS_PER_REQUEST):
        yield keys[start : start + PARTITIONS_PER_REQUEST]


def _by_topic(keys: Iterable[TopicPartition]) -> Iterator[tuple[str, tuple[int, ...]]]:
    topics: dict[str, list[int]] = {}
    for topic, index in keys:
        topics.setdefault(topic, []).append(index)
    return ((topic, tuple(indexes)) for topic, indexes in topics.items())

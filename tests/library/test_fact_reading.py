"""How far a group is behind, as the facts have it: by the same counts as `group lag`."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.client.administration.groups import GroupDescription
from quorumlog.client.errors import NoProtocol, RequestFailed
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.group.protocol import write_assignment
from quorumlog.errors import ErrorCode
from quorumlog.explaining.facts import Facts
from quorumlog.explaining.judging import judge
from quorumlog.explaining.reading import read_facts
from quorumlog.explaining.thresholds import Thresholds
from quorumlog.ids import TopicPartition, Uuid
from quorumlog.messages.groups import DescribedGroup, DescribedMember

END = 10


class Cluster:
    """A broker that leads both partitions; the group `g`, whose member reads `t`, has committed what `committed` says,
    and nothing moves. The last offset of each is the marker of a transaction."""

    def __init__(
        self, committed: Mapping[TopicPartition, int | CommittedOffset], refuses: Exception | None = None
    ) -> None:
        self.committed, self.refuses, self.asked = committed, refuses, 0

    def describe_cluster(self) -> Any:
        return SimpleNamespace(brokers=())

    def list_topics(self) -> list[Any]:
        part = SimpleNamespace(
            index=0, leader_id=1, leader_epoch=0, replicas=(1,), isr=(1,), eligible_leader_replicas=(),
            last_known_elr=(), leader_recovery_state=0,
        )  # fmt: skip
        return [SimpleNamespace(name=name, topic_id=name.encode(), partitions=(part,)) for name in ("t", "former")]

    def describe_log_dirs(self, **_: Any) -> dict[int, Any]:
        return {}

    def list_partition_reassignments(self) -> dict[TopicPartition, Any]:
        return {}

    def describe_topics_configs(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}

    def list_groups(self) -> list[Any]:
        return [SimpleNamespace(group_id=name, group_type="") for name in ("g", "h")]

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        return {key: SimpleNamespace(offset=END) for key in wanted}

    def describe_group(self, name: str) -> GroupDescription:
        assigned = write_assignment({"t": (0,)})
        member = DescribedMember(
            member_id="m", client_id="c", client_host="/h", member_metadata=b"", member_assignment=assigned
        )
        return GroupDescription(
            1, DescribedGroup(group_id=name, group_state="Stable", protocol_type="consumer", members=(member,))
        )

    def group_offsets(self, _: str) -> dict[TopicPartition, CommittedOffset]:
        return {key: CommittedOffset(one) if isinstance(one, int) else one for key, one in self.committed.items()}

    def count_records(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        self.asked += 1
        if self.refuses is not None:
            raise self.refuses
        return {key: SimpleNamespace(records=max(0, END - 1 - start)) for key, start in wanted.items()}


def facts_of(cluster: Cluster) -> Facts:
    now_ms = [0]

    def sleep(seconds: float) -> None:
        now_ms[0] += round(seconds * 1000)

    admin: Any = cluster
    return read_facts(admin, wall_ms=lambda: now_ms[0], sleep_s=sleep, parts=("groups",))


def causes(facts: Facts) -> set[str]:
    return {one.cause for one in judge(facts, Thresholds()) if one.cause.startswith("group.")}


@pytest.mark.parametrize(
    ("committed", "want"),
    [
        ({("t", 0): END - 1}, set()),  # what is left is a marker: nobody reads that
        ({("t", 0): END - 2}, {"group.commits-nothing"}),
        ({("t", 0): END, ("former", 0): 0}, set()),  # which no member reads any more
        ({("t", 0): CommittedOffset(0, topic_id=Uuid(b"before"))}, set()),  # of a topic that had its name
    ],
)
def test_a_group_is_stuck_only_before_records_that_it_would_get(
    committed: dict[TopicPartition, int | CommittedOffset], want: set[str]
) -> None:
    assert causes(facts_of(Cluster(committed))) == want


@pytest.mark.parametrize(
    ("error", "unknown"),
    [(NoProtocol("no api of Kafka's"), set()), (RequestFailed(ErrorCode.REQUEST_TIMED_OUT, ""), {"records of groups"})],
)
def test_where_nobody_counts_records_there_is_the_distance_of_offsets(error: Exception, unknown: set[str]) -> None:
    """One refusal is enough: other groups are not asked for, each of which might wait as long."""
    cluster = Cluster({("t", 0): END - 1}, error)
    facts = facts_of(cluster)
    assert [one.samples[0].total for one in facts.groups] == [1, 1] and cluster.asked == 1
    assert set(facts.unknown) == unknown

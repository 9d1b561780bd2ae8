"""The lag that `check` and `explain` judge by is the one that `quorumlog group lag` shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from quorumlog.client.administration.group_lag import GroupLag, PartitionLag
from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.explaining.facts import GroupFact
from quorumlog.explaining.judging import judge
from quorumlog.explaining.reading import read_facts
from quorumlog.explaining.thresholds import Thresholds

STUCK_SECONDS = 10.0


class OneGroup:
    """The calls of an admin client that answer for a group with a member; all others fail."""

    def __init__(self, *parts: PartitionLag) -> None:
        member = SimpleNamespace(client_id="reader", client_host="/10.0.0.9")
        self._group = SimpleNamespace(group_state="Stable", members=(member,))
        self._lag = GroupLag("billing", "Stable", 1, {("orders", at): one for at, one in enumerate(parts)})

    def __getattr__(self, name: str) -> Any:
        answers = {
            "describe_cluster": SimpleNamespace(brokers=()),
            "list_topics": [],
            "list_groups": [SimpleNamespace(group_id="billing", group_type="consumer")],
            "describe_group": SimpleNamespace(group=self._group, coordinator=2),
            "group_lag": self._lag,
        }

        def call(*_args: object, **_options: object) -> Any:
            if name not in answers:
                raise RequestFailed(ErrorCode.UNSUPPORTED_VERSION, name)
            if isinstance(answers[name], Exception):
                raise answers[name]
            return answers[name]

        return call


def part(distance: int, records: int | None, *, is_read: bool = True) -> PartitionLag:
    return PartitionLag(100, 100 + distance, distance, records, False, None, is_read)


def test_a_lag_that_cannot_be_read_is_unknown_and_no_trouble_of_the_coordinator() -> None:
    admin: Any = OneGroup()
    admin._lag = RequestFailed(ErrorCode.REQUEST_TIMED_OUT, "group_lag")
    facts = read_facts(admin, wall_ms=lambda: 0, sleep_s=lambda _seconds: None, parts={"groups"})
    assert "lag of groups" in facts.unknown and facts.groups[0].coordinator_error == ""


def judged(*parts: PartitionLag) -> tuple[GroupFact, list[str]]:
    now = iter(range(0, 1_000_000, 10_000))
    facts = read_facts(
        OneGroup(*parts),  # type: ignore[arg-type]
        wall_ms=lambda: next(now),
        sleep_s=lambda _seconds: None,
        parts={"groups"},
        over_s=STUCK_SECONDS,
    )
    (group,) = facts.groups
    return group, [one.cause for one in judge(facts, Thresholds(), ["lag"])]


def test_a_marker_behind_the_last_record_is_no_lag() -> None:
    """Who commits one more than the offset of its last record is at the marker of the transaction."""
    group, causes = judged(part(1, 0), part(1, 0))
    assert group.samples[-1].total == 0 and causes == []


def test_a_topic_that_no_member_reads_is_no_stuck_group() -> None:
    group, causes = judged(part(80, 80, is_read=False), part(0, 0))
    assert group.samples[-1].total == 0 and causes == []


def test_records_that_wait_make_a_group_stuck() -> None:
    group, causes = judged(part(80, 70))
    assert group.samples[-1].total == 70 and causes == ["group.commits-nothing"]


def test_where_records_are_not_counted_the_distance_counts() -> None:
    """As of an Apache Kafka."""
    group, causes = judged(part(80, None), PartitionLag(5, None, None, None, False, None, True))
    assert group.samples[-1].total == 80 and causes == ["group.commits-nothing"]

"""A look at a real node by its protocol, and what becomes of parts that are refused."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from quorumlog.client.administration.group_lag import GroupLag
from quorumlog.client.asynchronous import AsyncAdmin
from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.real_edges import SystemClock
from quorumlog.errors import ErrorCode
from quorumlog.watch.past import Past
from quorumlog.watch.reading import Reader
from quorumlog.watch.sample import BrokerState, Part, Sample
from tests.scenarios.one_node import GRPC, LANE, RealNode, append, make_topic


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    made = RealNode(tmp_path_factory.mktemp("watched"))
    yield made
    made.close()
    assert made.crashes == []


def ask(at: RealNode, wire: str, work: Callable[[AsyncAdmin], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with AsyncAdmin(bootstrap_servers=str(at.node.addresses[wire])) as admin:
            return await work(admin)

    return at.do(run())


def prepare(at: RealNode, name: str) -> None:
    async def run() -> None:
        connection = at.connect(LANE)
        await make_topic(connection, name, 2)
        await append(connection, name, 1)
        await connection.close()

    at.do(run())


@pytest.mark.parametrize("wire", [LANE, GRPC])
def test_a_look_sees_the_whole_cluster(at: RealNode, wire: str) -> None:
    name = f"looked-{wire.lower()}"
    prepare(at, name)

    async def look(admin: AsyncAdmin) -> Sample:
        await admin.alter_group_offsets("<b>g</b>", {(name, 0): CommittedOffset(1), (name, 1): CommittedOffset(6)})
        return await Reader(admin, SystemClock()).look()

    seen: Sample = ask(at, wire, look)
    assert dict(seen.missing) == {}
    (broker,) = seen.brokers
    assert (broker.node_id, broker.state) == (1, BrokerState.SERVING)
    (directory,) = broker.directories
    assert directory.path == at.config.log_dirs[0] and not directory.error
    assert 0 < directory.usable_bytes <= directory.total_bytes and directory.size_bytes > 0
    assert seen.quorum is not None
    assert (seen.quorum.leader_id, [one.node_id for one in seen.quorum.voters]) == (1, [1])
    assert seen.quorum.lag_of(seen.quorum.voters[0]) == 0
    topic = seen.topics[name]
    assert [(one.first, one.end, one.isr, one.leader) for one in topic.partitions] == [(0, 3, (1,), 1), (0, 6, (1,), 1)]
    assert topic.size_bytes > 0 and topic.offsets == 9 and topic.replication == 1
    group = seen.groups["<b>g</b>"]
    assert {one.key: one.distance for one in group.offsets}[name, 0] == 2
    assert group.distance == sum(one.distance for one in group.offsets)
    assert group.state == "Empty" and not group.unread
    assert abs(seen.wall_ms / 1000 - time.time()) < 60


def test_offsets_of_a_deleted_topic_do_not_count_against_the_one_made_again(at: RealNode) -> None:
    """O1: a topic is deleted and made again under its name."""
    prepare(at, "again")

    async def look(admin: AsyncAdmin) -> Sample:
        reader = Reader(admin, SystemClock())
        await admin.alter_group_offsets("old", {("again", 1): CommittedOffset(2)})
        before = await reader.look()
        assert before.groups["old"].distance == 4
        await admin.delete_topic("again")
        gone = await reader.look()
        assert "old" not in gone.groups or gone.groups["old"].distance == 0
        return gone

    ask(at, LANE, look)
    prepare(at, "again")
    after = ask(at, LANE, lambda admin: Reader(admin, SystemClock()).look())
    old = after.groups.get("old")
    assert old is None or old.distance == 0


def test_the_lag_is_of_records_that_can_be_read_and_its_time_is_told(at: RealNode) -> None:
    """As `quorumlog group lag` has it: of six offsets, three were deleted before the group came to them."""
    prepare(at, "counted")

    async def look(admin: AsyncAdmin) -> tuple[Sample, GroupLag]:
        await admin.delete_records({("counted", 1): 3})
        await admin.alter_group_offsets("late", {("counted", 1): CommittedOffset(0)})
        return await Reader(admin, SystemClock()).look(), await admin.group_lag("late")

    seen, told = ask(at, LANE, look)
    group, past = seen.groups["late"], Past()
    past.add(seen)
    assert (group.lag, group.distance, group.counts_records) == (told.records, told.distance, True) == (3, 6, True)
    behind_ms = past.behind_ms(group)
    assert behind_ms is not None and told.behind_ms is not None and abs(behind_ms - told.behind_ms) < 5_000
    assert not past.is_older_than_past(group)


def test_groups_are_described_by_turns(at: RealNode) -> None:
    prepare(at, "turns")

    async def looks(admin: AsyncAdmin) -> list[int]:
        for number in range(4):
            await admin.alter_group_offsets(f"turn-{number}", {("turns", 1): CommittedOffset(number)})
        reader = Reader(admin, SystemClock(), groups_a_look=2)
        counts = []
        for _ in range(4):
            seen = await reader.look()
            known = [one for name, one in seen.groups.items() if name.startswith("turn-") and not one.unread]
            counts.append(len(known))
        assert {one.group_id: one.distance for one in known} == {f"turn-{number}": 6 - number for number in range(4)}
        return counts

    counts = ask(at, LANE, looks)
    assert counts == sorted(counts) and counts[-1] == 4


def test_what_is_refused_is_named_and_the_rest_is_there(at: RealNode, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise RequestFailed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")

    async def unknown(*_: Any, **__: Any) -> Any:
        raise RequestFailed(ErrorCode.UNSUPPORTED_VERSION, "no")

    async def look(admin: AsyncAdmin) -> Sample:
        monkeypatch.setattr(admin, "describe_log_dirs", refuse)
        monkeypatch.setattr(admin, "describe_quorum", unknown)
        return await Reader(admin, SystemClock()).look()

    prepare(at, "refused")
    seen: Sample = ask(at, LANE, look)
    assert dict(seen.missing) == {
        Part.DISKS: "it needs the right to Describe the cluster",
        Part.QUORUM: "this cluster's protocol does not have it",
    }
    assert seen.quorum is None and seen.brokers[0].directories == ()
    assert seen.topics["refused"].partitions[1].end == 6 and seen.topics["refused"].size_bytes < 0


def test_two_looks_make_a_rate(at: RealNode) -> None:
    prepare(at, "rated")

    async def looks(admin: AsyncAdmin) -> Past:
        past, reader = Past(), Reader(admin, SystemClock())
        past.add(await reader.look())
        connection = at.connect(LANE)
        assert await append(connection, "rated", 0) == 0
        await connection.close()
        past.add(await reader.look())
        return past

    past: Past = ask(at, LANE, looks)
    rate = past.topic_rate("rated")
    assert rate.records is not None and rate.records > 0
    assert rate.bytes is not None and rate.bytes > 0
    assert [one for one in past.changes if one.subject.startswith("partition/")] == []

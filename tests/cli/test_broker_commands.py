"""`quorumlog broker`: rows and JSON of a broker, what stands in the way of forgetting one, and the questions asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import show_uuid
from quorumlog.messages.admin import LogDirDescription, LogDirPartition, LogDirTopic
from quorumlog.messages.cluster import ClusterBroker, DescribeClusterResponse, PartitionMetadata, TopicMetadata
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.quorum import DescribeQuorumResponse
from quorumlog.rpc.transport import NotDelivered
from quorumlog_cli.commands.brokers import broker as command
from quorumlog_cli.commands.brokers import broker_unregister
from quorumlog_cli.commands.brokers.broker_unregister import check, holdings
from quorumlog_cli.commands.brokers.broker_view import (
    Directories,
    broker_row,
    directory_rows,
    listeners_of,
    shown_state,
)
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import CliError, Exit

TARGET = Target(bootstrap_servers="h:1", origin="-b")

ID = bytes(range(16))
ONE = ClusterBroker(
    node_id=1,
    host="h",
    port=9092,
    rack="r1",
    broker_epoch=7,
    endpoints=(Endpoint(name="CLIENT", host="h", port=9092), Endpoint(name="GRPC", host="h", port=9094)),
    log_directories=(ID,),
    features=(FeatureRange(name="metadata.version", min_level=1, max_level=4),),
    leaders=2,
    replicas=5,
)
PARTITIONS = tuple(LogDirPartition(index=n, size_bytes=10 * n, offset_lag=0, is_future=n == 3) for n in range(4))
GOOD = LogDirDescription(
    path="/d1", directory_id=ID, topics=(LogDirTopic(name="t", partitions=PARTITIONS),), usable_bytes=99
)
BAD = LogDirDescription(path="/d2", error_code=56, error_message="I/O error")


class FakeAdmin:
    def __init__(self, brokers: tuple[ClusterBroker, ...], topics: list[TopicMetadata] | None = None) -> None:
        self.brokers, self.topics = brokers, topics or []
        self.unregistered: list[tuple[int, int]] = []
        self.asked: list[int] = []
        self.quorum_leader: int | None = 1

    def describe_cluster(self, **_asked: Any) -> DescribeClusterResponse:
        return DescribeClusterResponse(brokers=self.brokers)

    def describe_broker_log_dirs(self, node_id: int, _timeout_ms: int) -> tuple[LogDirDescription, ...]:
        self.asked.append(node_id)
        if node_id == 9:
            raise NotDelivered("connection refused")
        return (GOOD, BAD)

    def describe_quorum(self, _timeout_ms: int) -> DescribeQuorumResponse:
        if self.quorum_leader is None:
            raise RequestFailed(ErrorCode.NOT_CONTROLLER, "no controller is known")
        return DescribeQuorumResponse(leader_id=self.quorum_leader)

    def list_topics(self) -> list[TopicMetadata]:
        return self.topics

    def unregister_broker(self, broker_id: int, broker_epoch: int) -> None:
        self.unregistered.append((broker_id, broker_epoch))


def use(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> FakeAdmin:
    class Cluster:
        pass

    @contextmanager
    def connected(_target: Any) -> Iterator[Any]:
        cluster: Any = Cluster()
        cluster.admin = admin
        yield cluster

    for module in (command, broker_unregister):
        monkeypatch.setattr(module, "connected", connected)
        monkeypatch.setattr(module, "find_target", lambda *_options: TARGET)
    return admin


# --- showing ---


def test_a_running_broker() -> None:
    row = broker_row(ONE, Directories((GOOD, BAD)))
    assert row["state"] == "running" and (row["leaders"], row["replicas"]) == (2, 5)
    assert row["bytes"] == 0 + 10 + 20, "a copy on the way does not count"
    assert listeners_of(row) == "CLIENT://h:9092, GRPC://h:9094"
    assert directory_rows(row)[1] == [
        [show_uuid(ID), "/d1", "online", "", 3, 30, 99],
        [None, "/d2", "I/O error", "", None, None, None],
    ]
    assert json.loads(json.dumps(row)) == row


STATES = [
    ("fenced", replace(ONE, fenced=True, in_controlled_shutdown=True), "fenced"),
    ("shutting down", replace(ONE, in_controlled_shutdown=True), "shutting down"),
    ("running", ONE, "running"),
]


@pytest.mark.parametrize(("broker", "state"), [case[1:] for case in STATES], ids=[case[0] for case in STATES])
def test_states(broker: ClusterBroker, state: str) -> None:
    assert broker_row(broker, Directories.skipped())["state"] == state


def test_a_cordoned_broker_is_shown_as_such() -> None:
    one = replace(ONE, log_directories=(ID, ID[::-1]), cordoned_directories=(ID,))
    half, full = (broker_row(each, Directories.skipped()) for each in (one, replace(one, log_directories=(ID,))))
    assert (half["cordoned"], full["cordoned"]) == (False, True)
    assert (shown_state(half), shown_state(full)) == ("running", "running, cordoned")
    assert [each["cordoned"] for each in half["directories"]] == [True, False], "its own words are not needed"
    told = broker_row(one, Directories((replace(GOOD, is_cordoned=True), BAD)))
    assert [cells[3] for cells in directory_rows(told)[1]] == ["yes", ""]


def test_what_kafkas_protocol_does_not_tell_is_not_a_figure() -> None:
    row = broker_row(ClusterBroker(node_id=1, host="h", port=9092), Directories((GOOD, BAD)))
    assert (row["leaders"], row["replicas"], row["broker_epoch"], row["directory_count"]) == (None, None, None, 2)
    assert listeners_of(row) == "h:9092"


@pytest.mark.parametrize(
    ("broker", "asked", "why"),
    [(replace(ONE, fenced=True), [], "is fenced"), (replace(ONE, node_id=9), [9], "connection refused")],
    ids=["fenced", "silent"],
)
def test_a_broker_that_does_not_answer_shows_the_ids_of_its_directories(
    broker: ClusterBroker, asked: list[int], why: str
) -> None:
    admin: Any = FakeAdmin(())
    found = Directories.ask(admin, broker)
    row = broker_row(broker, found)
    assert admin.asked == asked and why in found.why
    assert row["state"] == ("no answer" if asked else "fenced")
    assert row["bytes"] is None and directory_rows(row)[1] == [[show_uuid(ID), None, None, "", None, None, None]]


def test_list_ends_with_5_if_one_is_fenced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use(monkeypatch, FakeAdmin((ONE,)))
    assert main(["broker", "list"]) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split()[:3] == ["ID", "STATE", "RACK"] and row.split()[:3] == ["1", "running", "r1"]
    admin = use(monkeypatch, FakeAdmin((ONE, replace(ONE, node_id=2, fenced=True))))
    assert main(["broker", "list", "--no-bytes", "-o", "json"]) == Exit.UNHEALTHY
    assert [one["state"] for one in json.loads(capsys.readouterr().out)] == ["running", "fenced"]
    assert admin.asked == []


@pytest.mark.parametrize("leader_id", [-1, 1, None])
def test_list_tells_who_does_not_answer_and_whether_the_quorum_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], leader_id: int | None
) -> None:
    """leader_id: of the quorum; None: nobody answers who could know."""
    admin = use(monkeypatch, FakeAdmin((ONE, replace(ONE, node_id=9))))
    admin.quorum_leader = leader_id
    assert main(["broker", "list"]) == Exit.UNHEALTHY
    said = capsys.readouterr()
    assert [line.split()[1] for line in said.out.splitlines()[1:]] == ["running", "no"], "no answer"
    assert ("no leader of the quorum answers" in said.err) is (leader_id != 1)


def test_describe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use(monkeypatch, FakeAdmin((ONE,)))
    assert main(["broker", "describe", "1"]) == 0
    told = capsys.readouterr().out
    for text in ("running", "CLIENT://h:9092", "/d1", "I/O error", "metadata.version", "1 to 4"):
        assert text in told
    assert main(["broker", "describe", "4"]) == Exit.NOT_FOUND
    assert "broker 4 is not registered; the brokers are 1" in capsys.readouterr().err


# --- forgetting ---


def topic(name: str, *partitions: tuple[tuple[int, ...], tuple[int, ...]]) -> TopicMetadata:
    """(replicas, isr) of each partition."""
    made = [
        PartitionMetadata(index=index, replicas=replicas, isr=isr) for index, (replicas, isr) in enumerate(partitions)
    ]
    return TopicMetadata(name=name, partitions=tuple(made))


DEAD = replace(ONE, fenced=True)
SAFE = topic("a", ((1, 2), (2,)), ((2, 3), (2, 3)))
ALONE = topic("b", ((1,), ()), ((1, 2), ()), ((1, 2), (1,)))


def test_what_a_broker_holds_and_what_it_holds_alone() -> None:
    held = holdings(1, [SAFE, ALONE])
    assert held.replicas == ["a-0", "b-0", "b-1", "b-2"] and held.alone == ["b-0", "b-1", "b-2"]


REFUSED = [
    ("running", ONE, [SAFE], "is running"),
    ("shutting down", replace(ONE, in_controlled_shutdown=True), [SAFE], "is shutting down"),
    ("the only copy", DEAD, [SAFE, ALONE], "only copy that is in sync of b-0, b-1, b-2"),
]


@pytest.mark.parametrize(
    ("broker", "topics", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_refused_unless_forced(
    broker: ClusterBroker, topics: list[TopicMetadata], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CliError, match=says) as raised:
        check(broker, holdings(1, topics))
    assert raised.value.code is Exit.PRECONDITION and raised.value.hint
    admin = use(monkeypatch, FakeAdmin((broker,), topics))
    assert main(["broker", "unregister", "1", "--yes"]) == Exit.PRECONDITION and admin.unregistered == []
    assert main(["broker", "unregister", "1", "--yes", "--force"]) == 0 and admin.unregistered == [(1, 7)]


def test_many_partitions_are_counted() -> None:
    many = topic("m", *[((1,), ())] * 7)
    with pytest.raises(CliError, match=r"m-0, m-1, m-2, m-3, m-4 and 2 more"):
        check(DEAD, holdings(1, [many]))


def test_it_asks_and_a_dry_run_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = use(monkeypatch, FakeAdmin((DEAD,), [SAFE]))
    assert main(["broker", "unregister", "1", "--dry-run", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "dry_run": True,
        "broker_id": 1,
        "broker_epoch": 7,
        "state": "fenced",
        "replicas": ["a-0"],
        "without_other_copy": [],
    }
    answers = {"no": False, "yes": True}
    for answer, given in answers.items():
        monkeypatch.setattr("typer.confirm", lambda *_args, _given=given, **_more: _given)
        assert admin.unregistered == []
        assert main(["broker", "unregister", "1"]) == (0 if answer == "yes" else Exit.FAILED)
    assert admin.unregistered == [(1, 7)], "the registration that was shown, and no later one"
    assert "still assigned to it: 1 replica (a-0)" in capsys.readouterr().err


def test_an_unknown_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeAdmin((ONE,)))
    assert main(["broker", "unregister", "5", "--yes"]) == Exit.NOT_FOUND

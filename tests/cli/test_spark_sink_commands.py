"""`quorumlog spark sink` on both kinds of clusters: the same columns, documents and errors. The cluster is a fake."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.client.errors import RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import ListedJointGroup, OpenJointChild
from quorumlog.messages.transactions import DescribedTransaction, TransactionTopic
from quorumlog.records.coordinator.joint import JointKind
from quorumlog.spark.write.kafka import listing
from quorumlog.spark.write.kafka.calls import WrittenDecision
from quorumlog.spark.write.kafka.decisions import Decision, attempt_id, run_tag
from quorumlog_cli.commands.spark_jobs import spark_sink
from quorumlog_cli.main import main
from quorumlog_cli.terminal.errors import Exit

OURS, KAFKAS = "metadata.version", "kafka.metadata.version"
G, EMPTY = "spark/q", "spark/new"
AT_MS = 1_700_000_000_000
OF_KAFKA = {name: attempt_id(name, 8, "r2", b"t") for name in (G, EMPTY)}
ID_OF = {OURS: {G: "joint:spark/q:0:x", EMPTY: "joint:spark/new:0:y"}, KAFKAS: OF_KAFKA}
DECIDED = Decision(
    kind=JointKind.STREAM,
    location="/c",
    run="r1",
    sequence=7,
    totals={"t": 12},
    ended=True,
    before_totals={},
)


class FakeAdmin:
    """feature: by which the cluster says what it is. Both groups have one transaction open."""

    def __init__(self, feature: str) -> None:
        self.feature, self.aborted = feature, []  # type: ignore[var-annotated]

    def describe_features(self) -> Any:
        return SimpleNamespace(features=[SimpleNamespace(name=self.feature)])

    def describe_transactions(self, ids: Any) -> dict[str, DescribedTransaction]:
        return {
            name: DescribedTransaction(
                transactional_id=name,
                state="Ongoing",
                transaction_timeout_ms=60_000,
                transaction_start_time_ms=AT_MS,
                topics=(TransactionTopic(name="t", partitions=(1,)),),
            )
            for name in ids
        }

    # --- of an Apache Kafka ---

    def list_transactions(self, states: Any = None) -> list[Any]:
        ids = [*ID_OF[KAFKAS].values(), "somebody-else"]
        return [SimpleNamespace(transaction=SimpleNamespace(transactional_id=one)) for one in ids]

    # --- of ours ---

    def list_joint_groups(self) -> list[ListedJointGroup]:
        open_of = {
            name: OpenJointChild(
                transactional_id=one, run=run_tag("r2"), sequence=8, started_at_ms=AT_MS, timeout_ms=60_000, location=""
            )
            for name, one in ID_OF[OURS].items()
        }
        listed = listing.joint_group_of(listing.ListedSink(group=G, decision=DECIDED, written_at_ms=AT_MS))
        return [
            ListedJointGroup(group_id=EMPTY, open=(open_of[EMPTY],)),
            ListedJointGroup(**{name: getattr(listed, name) for name in SAME}, open=(open_of[G],)),
        ]

    def abort_joint_batch(self, group: str, location: str, sequence: int) -> Any:
        self.aborted.append((group, location, sequence))
        return SimpleNamespace(aborted=1)

    def forget_joint_group(self, name: str) -> None:
        known = {one.group_id for one in self.list_joint_groups()}
        code = ErrorCode.JOINT_GROUP_OPEN if name in known else ErrorCode.GROUP_ID_NOT_FOUND
        raise RequestFailed(code, f"{name}: so it is")


SAME = ("group_id", "sequence", "kind", "run", "location", "decided_at_ms", "facts")


@pytest.fixture(params=[OURS, KAFKAS], ids=["ours", "an Apache Kafka"])
def admin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    found = FakeAdmin(request.param)

    @contextmanager
    def connected(_target: Any) -> Iterator[Any]:
        yield SimpleNamespace(admin=found)

    def forget(_cluster: Any, name: str) -> bool:
        if name in ID_OF[KAFKAS]:
            raise RequestFailed(ErrorCode.JOINT_GROUP_OPEN, f"{name}: so it is")
        return False

    def abort(_cluster: Any, name: str) -> int:
        found.aborted.append((name, "", 8))
        return 1

    class Topic:
        def __init__(self, _cluster: Any) -> None: ...

        def exists(self) -> bool:
            return True

        def all_written(self) -> dict[str, WrittenDecision]:
            return {G: WrittenDecision(DECIDED, AT_MS)}

    monkeypatch.setattr(spark_sink, "connected", connected)
    monkeypatch.setattr(listing, "DecisionTopic", Topic)
    monkeypatch.setattr(listing, "forget_sink", forget)
    monkeypatch.setattr(listing, "abort_sink", abort)
    return found


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["spark", "sink", *arguments, "-b", "nowhere:1"])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_groups_are_listed_in_the_same_words(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "-o", "json")
    documents = json.loads(out)
    assert code == 0 and [one["group"] for one in documents] == [EMPTY, G]
    new, known = documents
    assert (new["batch"], new["kind"], new["run"], new["open"], new["location"]) == (None, None, None, 1, None)
    assert (known["batch"], known["kind"], known["run"], known["open"], known["ending"]) == (7, "stream", "r1", 1, 0)
    assert (known["decided_at_ms"], known["location"], known["totals"]) == (AT_MS, "/c", {"t": 12})
    assert known["open_ms"] > 0
    code, out, _ = run(capsys, "list")
    assert out.splitlines()[0].split() == [*spark_sink.GROUP_COLUMNS]


def test_what_is_open_is_listed_with_whose_readers_wait(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "list", "--open", "-o", "json")
    assert code == 0
    rows = {one["group"]: one for one in json.loads(out)}
    for name, one in ID_OF[admin.feature].items():
        row = rows[name]
        assert (row["transactional_id"], row["batch"], row["run"]) == (one, 8, run_tag("r2"))
        assert (row["timeout_ms"], row["partitions"]) == (60_000, [{"topic": "t", "partition": 1}])


def test_what_is_open_is_aborted(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "abort", G, "-o", "json")
    assert (code, json.loads(out)) == (0, {"group": G, "aborted": 1}) and admin.aborted == [(G, "", 8)]
    code, _, err = run(capsys, "abort", "nobody")
    assert code == Exit.NOT_FOUND and "no group 'nobody'" in err


def test_what_is_open_is_not_forgotten(admin: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "forget", EMPTY)
    assert code == Exit.PRECONDITION and f"quorumlog spark sink abort {EMPTY} aborts what is open" in err
    code, _, err = run(capsys, "forget", "nobody")
    assert code == Exit.NOT_FOUND and "quorumlog spark sink list" in err

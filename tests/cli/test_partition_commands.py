"""`quorumlog partition` over a cluster that only answers: what it asks for, shows and refuses, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import quorumlog.client.blocking
import quorumlog_cli.connecting.connect
from quorumlog.client.administration.partitions import ElectionType, PartitionOutcome, Reassignment
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import LogDirDescription, LogDirPartition, LogDirTopic
from quorumlog.messages.cluster import ClusterBroker, PartitionMetadata, TopicMetadata
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from quorumlog_cli.commands.partitions.partition_progress import Copy, left_s, rate, sample, sentence
from quorumlog_cli.main import main

DONE = PartitionOutcome(ErrorCode.NONE)
REFUSED = PartitionOutcome(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no such broker")


class Admin:
    """Four brokers with two directories each; `t` has two partitions. Reassignments end after `polls` questions."""

    def __init__(self) -> None:
        self.replicas: dict[tuple[str, int], tuple[int, ...]] = {("t", 0): (1, 2), ("t", 1): (2, 3)}
        self.leaders = {("t", 0): 2, ("t", 1): 2}
        self.targets: dict[tuple[str, int], tuple[int, ...]] = {}
        self.polls = 2
        self.dead: set[int] = set()  # brokers that are not fenced yet
        self.failures: list[Exception] = []  # of the next questions for reassignments
        self.refused: dict[tuple[str, int], PartitionOutcome] = {}
        self.elected: list[Any] = []
        self.paths: dict[tuple[str, int, int], str] = {}
        self.min_isr = "1"
        self.asked: list[Any] = []
        self.altered: list[Any] = []

    def describe_cluster(self) -> Any:
        brokers = [ClusterBroker(node_id=n, host="h", port=1, rack="ab"[n % 2], fenced=False) for n in (1, 2, 3, 4)]
        return SimpleNamespace(brokers=brokers)

    def list_topics(self) -> list[TopicMetadata]:
        parts = tuple(
            PartitionMetadata(index=index, leader_id=self.leaders[topic, index], replicas=replicas, isr=replicas)
            for (topic, index), replicas in self.replicas.items()
        )
        return [TopicMetadata(name="t", partitions=parts)]

    def describe_log_dirs(
        self, *, timeout_ms: int | None = None, silent: dict[int, str] | None = None
    ) -> dict[int, tuple[LogDirDescription, ...]]:
        if self.dead and silent is None:
            raise NotDelivered("no connection")
        for node in self.dead:
            silent[node] = "no connection"  # type: ignore[index]
        answering = [node for node in (1, 2, 3, 4) if node not in self.dead]
        return {node: (self._directory(node, "/a"), self._directory(node, "/b")) for node in answering}

    def _directory(self, node: int, path: str) -> LogDirDescription:
        here = [
            LogDirPartition(index=index, size_bytes=100 * (index + 1), offset_lag=0)
            for (topic, index), replicas in self.replicas.items()
            if node in replicas and self.paths.get((topic, index, node), "/a") == path
        ]
        return LogDirDescription(path=path, topics=(LogDirTopic(name="t", partitions=tuple(here)),))

    def list_partition_reassignments(self, keys: Any = None) -> dict[Any, Reassignment]:
        if self.targets and self.failures:
            raise self.failures.pop(0)
        if self.targets and self.polls == 0:
            self.replicas |= self.targets
            self.targets = {}
        self.polls -= bool(self.targets)
        return {
            key: Reassignment(
                (*target, *(one for one in self.replicas[key] if one not in target)),
                tuple(one for one in target if one not in self.replicas[key]),
                tuple(one for one in self.replicas[key] if one not in target),
            )
            for key, target in self.targets.items()
            if keys is None or key in keys
        }

    def alter_partition_reassignments(self, wanted: Any) -> dict[Any, PartitionOutcome]:
        for key, replicas in wanted.items():
            if replicas is None:
                self.targets.pop(key)
            elif key not in self.refused:
                self.targets[key] = tuple(replicas)
        return {key: self.refused.get(key, DONE) for key in wanted}

    def alter_replica_log_dirs(self, wanted: Any) -> None:
        self.paths |= wanted

    def describe_configs(self, name: str, **_: Any) -> Any:
        if name != "t":
            return SimpleNamespace(configs=[])  # of a broker
        return SimpleNamespace(configs=[SimpleNamespace(name="min.insync.replicas", value=self.min_isr)])

    def describe_topics_configs(self, topics: Any, names: Any) -> Any:
        self.asked.append((list(topics), tuple(names)))
        return {"t": SimpleNamespace(configs=[SimpleNamespace(name=names[0], source=1, value="*")])}

    def alter_configs(self, name: str, changes: Any, *, resource_type: int) -> None:
        self.altered.append((name, changes, resource_type))

    def elect_leaders(self, election: ElectionType, keys: Any) -> dict[Any, PartitionOutcome]:
        self.elected.append((election, keys))
        return {("t", 0): DONE, ("t", 1): self.refused.get(("t", 1), PartitionOutcome(ErrorCode.ELECTION_NOT_NEEDED))}


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Admin]:
    found = Admin()

    class Cluster:
        admin = found

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> Cluster:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(quorumlog_cli.connecting.connect, "reach", lambda _target: None)
    monkeypatch.setattr(quorumlog.client.blocking, "Cluster", Cluster)
    monkeypatch.setattr("quorumlog_cli.commands.partitions.partition_carry_out.POLL_S", 0)
    monkeypatch.setattr("quorumlog_cli.commands.partitions.partition_status.SECOND_LOOK_S", 0)
    monkeypatch.chdir(tmp_path)
    yield found


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """The JSON it prints; where it fails, the text of its error."""
    assert main(["partition", *arguments, "-b", "h:1", "-o", "json"]) == code
    out, err = capsys.readouterr()
    if code not in (0, 5) or not out:
        return json.loads(err.strip().splitlines()[-1])["error"]["message"]
    return json.loads(out)


def test_partitions_are_listed_with_their_state(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.targets["t", 1], admin.polls = (4, 3), 100
    first, second = run(capsys, "list")
    assert (first["state"], first["size_bytes"], first["preferred_leader"]) == ("not preferred", 100, False)
    assert (second["state"], second["adding"], second["removing"]) == ("moving", [4], [2])
    assert [row["partition"] for row in run(capsys, "list", "--node", "1")] == [0]
    assert [row["partition"] for row in run(capsys, "list", "t-1", "--state", "moving")] == [1]
    admin.leaders["t", 0] = -1
    assert run(capsys, "list", code=5)[0]["state"] == "without leader"
    assert "no topic and no partition x-1" in run(capsys, "list", "x-1", code=7)
    assert main(["partition", "list", "-b", "h:1"]) == 5
    assert "without leader" in capsys.readouterr().out


def test_a_plan_is_written_and_applied_with_its_way_back(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    plan = run(capsys, "plan", "drain", "2", "--out", "plan.json")
    assert [one["replicas"] for one in plan["partitions"]] == [[1, 4], [4, 3]]
    assert plan == json.loads(Path("plan.json").read_text())
    assert not admin.targets, "a plan changes nothing"
    assert run(capsys, "apply", "plan.json", "--dry-run")["bytes_copied"] == 300
    assert not admin.targets
    applied = run(capsys, "apply", "plan.json", "--wait", "--rollback", "back.json")
    assert applied["plan"] == plan
    assert applied["failed"] == {}
    assert admin.replicas == {("t", 0): (1, 4), ("t", 1): (4, 3)}
    assert applied["rollback"] == json.loads(Path("back.json").read_text())
    assert run(capsys, "apply", "plan.json")["plan"]["partitions"] == [], "it lies so already"
    admin.polls = 0
    run(capsys, "apply", "back.json", "--wait")
    assert admin.replicas == {("t", 0): (1, 2), ("t", 1): (2, 3)}


def test_a_drain_of_a_directory_moves_inside_the_broker(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    drained = run(capsys, "drain", "2", "--directory", "/a", "--wait")
    assert admin.paths == {("t", 0, 2): "/b", ("t", 1, 2): "/b"}
    assert [one["log_dirs"] for one in drained["rollback"]["partitions"]] == [["any", "/a"], ["/a", "any"]]
    assert not admin.targets


def test_moves_to_chosen_and_to_exact_brokers(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "move", "t-0=4,1")
    assert admin.targets == {("t", 0): (4, 1)}
    admin.targets.clear()
    run(capsys, "move", "t", "--to", "3,4")
    assert {key: set(one) for key, one in admin.targets.items()} == {("t", 0): {3, 4}, ("t", 1): {3, 4}}


def test_min_insync_replicas_is_respected(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.min_isr = "2"
    assert "min.insync.replicas" in run(capsys, "move", "t-0=4", code=6)
    admin.min_isr = "1"
    run(capsys, "move", "t-0=4")


def test_refused_partitions_give_a_code_of_their_own(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.refused["t", 0] = REFUSED
    assert main(["partition", "drain", "2", "-b", "h:1"]) == 9
    assert "1 of 2 partitions were refused; t-0: no such broker" in capsys.readouterr().err
    assert main(["partition", "move", "t-0=4,1", "-b", "h:1"]) == 1


def test_a_wait_that_takes_too_long_ends_with_10(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.polls = 1_000_000
    assert main(["partition", "drain", "2", "--wait", "--timeout", "0", "-b", "h:1"]) == 10
    assert "quorumlog partition status" in capsys.readouterr().err


def test_a_wait_survives_a_broker_that_dies(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    """It ended with exit code 3 while the move went on, and left the throttle behind."""
    admin.polls, admin.dead = 3, {1}
    Path("plan.json").write_text('{"partitions":[{"topic":"t","partition":1,"replicas":[4,3]}]}')
    assert "broker 1 does not answer" in run(capsys, "apply", "plan.json", code=3), "a plan needs all of them"
    assert not admin.targets
    admin.targets, admin.dead = {("t", 1): (4, 3)}, {4}
    found = run(capsys, "status")
    assert (found["waits_for_brokers"], found["copies"][0]["done_bytes"]) == ([4], 0)
    assert main(["partition", "list", "-b", "h:1"]) == 0
    assert "broker 4 does not answer (no connection)" in capsys.readouterr().err
    admin.polls, admin.failures = 4, [NotDelivered("no controller"), OutcomeUnknown("closed")]
    assert main(["partition", "status", "--wait", "-b", "h:1"]) == 0
    told = capsys.readouterr().err
    assert "asking again: no controller" in told and "waits for broker 4: fenced, or without an answer" in told


def test_a_wait_gives_up_where_the_cluster_stays_silent(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorumlog_cli.commands.partitions.partition_carry_out.SILENCE_S", 0)
    admin.targets, admin.failures = {("t", 1): (4, 3)}, [NotDelivered("no controller")]
    assert main(["partition", "status", "--wait", "-b", "h:1"]) == 3


def test_status_and_cancel(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "status")["partitions"] == 0
    assert "nothing of this moves" in run(capsys, "cancel", "--all", code=7)
    admin.polls = 100
    run(capsys, "move", "t-1=4,3")
    found = run(capsys, "status")
    assert (found["partitions"], found["total_bytes"], found["done_bytes"]) == (1, 200, 0)
    assert [(one["node_id"], one["total_bytes"]) for one in found["copies"]] == [(4, 200)]
    assert "nothing of this moves" in run(capsys, "cancel", "t-0", code=7)
    assert run(capsys, "cancel", "t", "--dry-run")["cancelled"] == ["t-1"]
    assert run(capsys, "cancel", "t")["cancelled"] == ["t-1"]
    assert not admin.targets
    Path("plan.json").write_text('{"partitions":[{"topic":"t","partition":1,"replicas":[4,3]}]}')
    assert run(capsys, "status", "--plan", "plan.json", code=5)["not_as_planned"] == ["t-1 is on [2, 3], not on [4, 3]"]


def test_leaders_are_elected(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "elect-leader", "--all") == {"elected": ["t-0"], "not_needed": ["t-1"], "failed": {}}
    run(capsys, "elect-leader", "t-1", "--unclean")
    assert admin.elected == [(ElectionType.PREFERRED, None), (ElectionType.UNCLEAN, [("t", 1)])]
    main(["partition", "elect-leader", "--all", "--dry-run", "-b", "h:1"])
    assert "would elect leaders of t-0\n" in capsys.readouterr().err
    assert run(capsys, "elect-leader", "--all", "--dry-run") == {"would_elect": ["t-0"]}
    admin.refused["t", 1] = PartitionOutcome(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "not in sync")
    assert main(["partition", "elect-leader", "--all", "-b", "h:1"]) == 9


USAGE = [
    (["drain"], "give the brokers"),
    (["drain", "1", "--rack", "a"], "give the brokers"),
    (["drain", "1", "2", "--directory", "/a"], "one broker"),
    (["move", "t-0"], "--to"),
    (["move", "t-0=1", "--to", "2"], "--to"),
    (["move", "t-0=1", "t-1"], "--to"),
    (["move", "t-0=1,x"], "no list of broker ids"),
    (["move", "t", "--to", "1,1"], "twice"),
    (["plan", "balance", "--by", "size"], "--by"),
    (["plan", "balance", "--tolerance", "2"], "--tolerance"),
    (["cancel"], "--all"),
    (["elect-leader"], "--all"),
    (["elect-leader", "t", "--preferred", "--unclean"], "not both"),
    (["list", "--state", "good"], "--state"),
]


@pytest.mark.parametrize(("arguments", "says"), USAGE, ids=[" ".join(one[0]) for one in USAGE])
def test_bad_usage_changes_nothing(
    admin: Admin, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["partition", *arguments, "-b", "h:1"]) == 2
    assert says in capsys.readouterr().err
    assert not admin.targets


CANNOT = [
    (["drain", "9"], 7, "no broker 9"),
    (["drain", "--rack", "x"], 7, "no broker is in rack"),
    (["drain", "1", "--directory", "/x"], 7, "no log directory"),
    (["move", "t-7=1"], 7, "t-7"),
    (["move", "t-0=9"], 6, "not registered"),
    (["apply", "none.json"], 7, "none.json"),
    (["apply", "bad.json"], 4, "not JSON"),
]


@pytest.mark.parametrize(("arguments", "code", "says"), CANNOT, ids=[" ".join(one[0]) for one in CANNOT])
def test_what_cannot_be_done_says_why(
    admin: Admin, arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text("{")
    assert main(["partition", *arguments, "-b", "h:1"]) == code
    assert says in capsys.readouterr().err
    assert not admin.targets


def described(size: int, copied: int, future: int | None = None) -> dict[int, tuple[LogDirDescription, ...]]:
    def directory(path: str, size_bytes: int, is_future: bool = False) -> LogDirDescription:
        one = LogDirPartition(index=0, size_bytes=size_bytes, offset_lag=0, is_future=is_future)
        return LogDirDescription(path=path, topics=(LogDirTopic(name="t", partitions=(one,)),))

    moves = () if future is None else (directory("/b", future, is_future=True),)
    return {1: (directory("/a", size), *moves), 2: (directory("/a", copied),)}


def test_progress_counts_both_kinds_of_copies_and_tells_the_time_left() -> None:
    moving = {("t", 0): Reassignment((2, 1), (2,), (1,))}
    before, after = sample(moving, described(1_000, 100, 0)), sample(moving, described(1_000, 300, 400))
    assert after.copies == (Copy("t", 0, 1, "/b", 400, 1_000), Copy("t", 0, 2, "", 300, 1_000))
    assert rate(before, after, 2.0) == 300
    assert left_s(after, 300) == pytest.approx(1_300 / 300)
    assert sentence(after, 300) == "1 partition left; 35 %, 700 of 2,000 bytes, 300 B/s, 4.3 s left"
    assert rate(before, sample({}, described(1_000, 1_000)), 1.0) == 1_900, "what has ended was copied whole"
    assert left_s(after, 0) is None
    larger = sample(moving, described(1_000, 1_200))
    assert larger.left_bytes == 0, "a copy may be larger than its source was when it was asked"
    assert sample({}, described(1, 1)).is_over


def test_throttles_are_looked_for_in_one_question_for_all_topics(
    admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(capsys, "status", "--finish")
    assert found["throttles_removed"] == 1
    lists = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
    assert admin.asked == [(["t"], lists)]
    assert admin.altered == [("t", {lists[0]: None}, 2)]


LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


@pytest.mark.parametrize("words", [("move", "t-1=3,4"), ("move", "t-0=3,2")], ids=["with another", "alone"])
def test_a_new_throttle_is_also_that_of_moves_under_way(
    admin: Admin, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    admin.targets, admin.polls = {("t", 0): (3, 2)}, 9
    run(capsys, *words, "--throttle", "5000")
    others = words[1].startswith("t-1")
    ((topic, lists, _),) = [one for one in admin.altered if one[2] == 2]
    there, new = (set(lists[name].words.split(",")) for name in (LEADERS, FOLLOWERS))
    assert topic == "t" and there == {"0:1", "0:2"} | ({"1:2", "1:3"} if others else set())
    assert new == {"0:3"} | ({"1:4"} if others else set())
    rates = {name: changes for name, changes, kind in admin.altered if kind == 4}
    assert rates == {str(node): dict.fromkeys(RATES, "5000") for node in ((1, 2, 3, 4) if others else (1, 2, 3))}


def test_a_dry_run_changes_no_throttle(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    admin.targets, admin.polls = {("t", 0): (3, 2)}, 9
    run(capsys, "move", "t-1=3,4", "--throttle", "5000", "--dry-run")
    assert admin.altered == []


def test_a_throttle_that_others_use_stays(admin: Admin, capsys: pytest.CaptureFixture[str]) -> None:
    """The rate is of a broker, and another operator's move is still under way there."""
    admin.targets, admin.polls = {("t", 0): (3, 2)}, 10_000
    asked = admin.list_partition_reassignments
    admin.list_partition_reassignments = lambda keys=None: {} if keys == [("t", 1)] else asked(keys)  # type: ignore[method-assign]
    admin.replicas["t", 1] = (2, 3)

    def begun(wanted: Any) -> dict[Any, PartitionOutcome]:
        admin.replicas |= wanted
        return dict.fromkeys(wanted, DONE)

    admin.alter_partition_reassignments = begun  # type: ignore[method-assign]
    assert main(["partition", "move", "t-1=3,4", "--throttle", "5000", "--wait"]) == 0
    assert "so the throttle stays" in capsys.readouterr().err
    assert not [changes for _, changes, _ in admin.altered if None in changes.values()]

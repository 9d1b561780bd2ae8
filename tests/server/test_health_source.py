"""grpc.health.v1 and /readyz agree about a node, in every role and state."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorumlog_broker.logdirs.free_space import FreeSpace
from quorumlog_broker.scrub.report import ScrubReport
from quorumlog_cli.local.ready import LEADERLESS
from quorumlog_server.process.health import MAX_BLOCKED, index_checks, is_serving, problems, readiness, who
from quorumlog_storage.checks.segment_check import LogFault
from quorumlog_storage.retention.blocked import Blocked
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.stall_watch import DirectoryStalled, OpenCall

BROKER, CONTROLLER = "quorumlog.Broker", "quorumlog.Controller"


def node_of(roles: str, *, leader_known: bool, broker_serving: bool | None) -> Any:
    """broker_serving: None if the broker does not exist yet."""
    is_broker = "broker" in roles
    broker = None if broker_serving is None else SimpleNamespace(serving=broker_serving)
    return SimpleNamespace(
        config=SimpleNamespace(is_broker=is_broker, is_controller="controller" in roles),
        broker=broker,
        loader=SimpleNamespace(active_controller=object() if leader_known else None),
        ready=bool(broker_serving) if is_broker else leader_known,
    )


CASES = [
    ("starting", "broker,controller", False, None, (False, False, False)),
    ("fenced", "broker,controller", True, False, (False, False, True)),
    ("all is well", "broker,controller", True, True, (True, True, True)),
    ("the leader is lost", "broker,controller", False, True, (True, True, False)),
    ("a broker alone", "broker", True, True, (True, True, None)),
    ("a broker alone, recovering", "broker", True, False, (False, False, None)),
    ("a controller alone", "controller", True, None, (True, None, True)),
    ("a controller alone, without a leader", "controller", False, None, (False, None, False)),
]


@pytest.mark.parametrize(
    ("roles", "leader_known", "broker_serving", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_is_serving(
    roles: str, leader_known: bool, broker_serving: bool | None, want: tuple[bool | None, bool | None, bool | None]
) -> None:
    node = node_of(roles, leader_known=leader_known, broker_serving=broker_serving)
    assert tuple(is_serving(node, service) for service in ("", BROKER, CONTROLLER)) == want
    assert is_serving(node, "quorumlog.v1.Broker") == want[1]
    assert is_serving(node, "quorumlog.v1.Quorum") == want[2]
    assert is_serving(node, "Broker") is None


@pytest.mark.parametrize(
    ("roles", "leader_known", "broker_serving", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_readyz_says_the_same_and_names_a_lost_quorum(
    roles: str, leader_known: bool, broker_serving: bool | None, want: tuple[bool | None, bool | None, bool | None]
) -> None:
    node = node_of(roles, leader_known=leader_known, broker_serving=broker_serving)
    node.unanswered_directories = {}
    if node.broker is not None:
        node.broker.data_plane = SimpleNamespace(logs_to_open=SimpleNamespace(left=0))
        node.broker.lifecycle = SimpleNamespace(fenced=not broker_serving, state=SimpleNamespace(value="fenced"))
    page = readiness(node)
    assert (page.status == 200) is want[0]
    assert (LEADERLESS in page.body.decode()) is (not leader_known)


@pytest.mark.parametrize(("leader", "want"), [(SimpleNamespace(node_id=2, epoch=5), (2, 5)), (None, (-1, -1))])
def test_a_node_reports_the_leader(leader: Any, want: tuple[int, int]) -> None:
    loader = SimpleNamespace(active_controller=leader)
    config = SimpleNamespace(node_id=3)
    node = reporting(config=config, loader=loader, broker=None, driver=None, lives=())
    said = who(node)
    assert (said["node_id"], said["leader_id"], said["leader_epoch"]) == (3, *want)


def reporting(**parts: Any) -> Any:
    """A node whose log directories have all answered."""
    return SimpleNamespace(unanswered_directories={}, edges=SimpleNamespace(cut_links=None), **parts)


def data_plane_of(findings: Any, unreadable: Any, queues: dict[bytes, Any] | None = None) -> Any:
    progress = SimpleNamespace(by_directory=list)
    store = SimpleNamespace(queues=queues or {}, refused={})
    return SimpleNamespace(
        recovery_findings=findings,
        unreadable=unreadable,
        store=store,
        opening_progress=progress,
        registry=SimpleNamespace(replicas={}),
        index_checks={},
        blocked_retention={},
    )


def test_a_node_reports_directories_that_are_short_of_space_and_damaged_notes() -> None:
    space = FreeSpace()
    space.measured(9, 10)
    partitions = SimpleNamespace(findings=["/d/log-start-offset-checkpoint line 2: damaged"])
    queue = SimpleNamespace(space=space, directory=SimpleNamespace(path="/d", partitions=partitions))
    data_plane = data_plane_of(SimpleNamespace(all=[]), SimpleNamespace(by_name={}), {b"1": queue})
    node = reporting(
        config=SimpleNamespace(node_id=3),
        loader=SimpleNamespace(active_controller=None),
        broker=SimpleNamespace(data_plane=data_plane),
        lives=(),
        driver=None,
    )
    short, damaged = who(node)["problems"]
    assert short.startswith("log directory /d has 9 bytes of free space") and damaged == partitions.findings[0]
    space.measured(13, 10)
    assert who(node)["problems"] == partitions.findings


def test_a_node_reports_what_its_logs_had_lost_the_metadata_first() -> None:
    findings = SimpleNamespace(all=["t-0: ends at 5", "t-1: ends at 7"])
    node = reporting(
        config=SimpleNamespace(node_id=3),
        loader=SimpleNamespace(active_controller=None),
        broker=SimpleNamespace(data_plane=data_plane_of(findings, SimpleNamespace(by_name={}))),
        lives=(),
        driver=SimpleNamespace(opened=SimpleNamespace(finding="metadata: ends at 9")),
    )
    assert who(node)["recovery"] == ["metadata: ends at 9", *findings.all]
    node.driver.opened.finding = ""
    assert who(node)["recovery"] == findings.all


def test_a_node_reports_what_is_offline_why_and_what_to_do() -> None:
    sound, hangs = DirectoryLife("/data/a"), DirectoryLife("/data/b")
    for life in (sound, hangs):
        life.step(LifeEvent.OPENED, life.generation)
    hangs.fail(DirectoryStalled(OpenCall("sync", "/data/b/t-0/0.log"), 3_010, 3_000), hangs.generation)
    unreadable = SimpleNamespace(by_name={"t-1": "/data/a/t-1 cannot be read: EIO"})
    node = reporting(
        config=SimpleNamespace(node_id=3),
        loader=SimpleNamespace(active_controller=None),
        broker=SimpleNamespace(data_plane=data_plane_of(SimpleNamespace(all=[]), unreadable)),
        driver=None,
        lives=(sound, hangs),
    )
    directory, replica = who(node)["offline"]
    assert directory.startswith("log directory /data/b is offline: sync of /data/b/t-0/0.log has not returned for 3010")
    assert "kernel's log" in directory and "restart the node" in directory
    assert replica.startswith("replica t-1 is offline: /data/a/t-1 cannot be read") and "restart the node" in replica


def test_a_node_reports_damaged_batches_and_logs_that_cannot_expire() -> None:
    """At most some of them by name."""
    report = ScrubReport("/d")
    report.begin()
    report.found_damage(LogFault("/d/t-0/0.log", 61, "a sound batch", "a damaged one"))
    report.ended(1_700_000_000_000)
    keys = [(bytes(16), index) for index in range(MAX_BLOCKED + 3)]
    blocked = Blocked(cast(Any, None), 0, 9, 2_000_000_000_000, 2_000_000_005_000)
    plane = data_plane_of(SimpleNamespace(all=[]), SimpleNamespace(by_name={}))
    plane.index_checks["/d"] = report
    plane.blocked_retention = dict.fromkeys(keys, blocked)
    plane.registry.replicas = {key: SimpleNamespace(name=f"t-{key[1]}") for key in keys[:-1]}  # one has left
    node: Any = SimpleNamespace(broker=SimpleNamespace(data_plane=plane))
    damaged, *kept, more = problems(node)
    assert damaged.startswith("a batch is damaged: /d/t-0/0.log at byte 61")
    assert len(kept) == MAX_BLOCKED and kept[1].startswith("t-1 keeps all records from offset 0 on until 2033-05-18")
    assert more == "2 more logs keep all their records in the same way"
    assert [text.partition(":")[0] for text in index_checks(node)] == ["/d"]

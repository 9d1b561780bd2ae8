"""`quorumlog acl` beside Kafka's kafka-acls, on one cluster that enforces access rules: each sees the other's rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import cells_java
import pytest
from client_matrix import LISTED_SKIPS

from bench.peers import kafka_tools as kafka
from quorumlog.settings.rights import AUTHORIZER
from quorumlog.testing.cluster import LocalCluster
from quorumlog_cli.main import main

ENFORCES = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("acls") / "cluster", config=ENFORCES) as made:
        yield made


class Command:
    """`quorumlog acl ...` against the cluster, with its answer as a document."""

    def __init__(self, servers: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._servers, self._capsys = servers, capsys

    def __call__(self, *words: str, code: int = 0) -> Any:
        self._capsys.readouterr()
        assert main(["acl", *words, "-b", self._servers, "-o", "json"]) == code
        return json.loads(self._capsys.readouterr().out)

    def rules(self) -> list[str]:
        parts = ("permission", "principal", "operation", "resource", "pattern", "host")
        return sorted(" ".join(one[part] for part in parts) for one in self("list"))


@pytest.fixture
def acl(cluster: LocalCluster, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(cluster.bootstrap_servers, capsys)


def test_a_rule_is_in_force_at_every_broker(acl: Command) -> None:
    assert len(acl("create", "topic:own", "--allow", "User:a", "-O", "read", "--wait")) == 1
    assert acl("test", "User:a", "describe", "topic:own")["allowed"]
    assert not acl("test", "User:a", "write", "topic:own", code=8)["allowed"]
    assert acl("test", "User:ANONYMOUS", "write", "topic:own")["why"].startswith("a super user")
    assert len(acl("delete", "topic:own", "--yes")) == 1
    assert acl.rules() == []


def test_kafka_acls_adds_lists_and_removes(cluster: LocalCluster, acl: Command) -> None:
    if missing := cells_java.missing():
        assert missing in LISTED_SKIPS
        pytest.skip(missing)
    tool = kafka.get_kafka()

    def run(*words: str) -> str:
        return tool.run(kafka.ACLS, "--bootstrap-server", cluster.bootstrap_servers, *words)

    run("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    prefixed = ("--topic", "ord", "--resource-pattern-type", "prefixed")
    run("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--operation", "All", *prefixed)
    run("--add", "--allow-principal", "User:p", "--producer", "--topic", "t", "--transactional-id", "x")
    run("--add", "--allow-principal", "User:c", "--consumer", "--topic", "t", "--group", "g")
    run("--add", "--allow-principal", "User:alice", "--operation", "Alter", "--cluster")
    of_kafka = acl.rules()
    assert of_kafka == sorted(
        [
            "allow User:alice read topic:orders literal *",
            "deny User:bob all topic:ord prefixed 10.0.0.7",
            "allow User:alice alter cluster literal *",
            *(f"allow User:p {one} topic:t literal *" for one in ("write", "describe", "create")),
            *(f"allow User:p {one} transactional-id:x literal *" for one in ("write", "describe")),
            *(f"allow User:c {one} topic:t literal *" for one in ("read", "describe")),
            "allow User:c read group:g literal *",
        ]
    )
    matching = run("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "principal=User:alice, host=*, operation=READ, permissionType=ALLOW" in matching
    assert "principal=User:bob, host=10.0.0.7, operation=ALL, permissionType=DENY" in matching
    assert "User:p" not in matching
    assert "User:c" in run("--list", "--principal", "User:c") and "User:p" in run("--list")

    acl("delete", "--all", "--yes")
    acl("create", "topic:orders", "--allow", "User:alice", "-O", "read")
    acl("create", "topic:ord", "--deny", "User:bob", "-O", "all", "--host", "10.0.0.7", "--prefixed")
    acl("create", "topic:t", "transactional-id:x", "--allow", "User:p", "--producer")
    acl("create", "topic:t", "group:g", "--allow", "User:c", "--consumer")
    acl("create", "cluster", "--allow", "User:alice", "-O", "alter")
    assert acl.rules() == of_kafka, "the same words make the same rules"

    run("--remove", "--force", "--topic", "orders")
    run(
        "--remove",
        "--force",
        "--deny-principal",
        "User:bob",
        "--operation",
        "All",
        "--deny-host",
        "10.0.0.7",
        *prefixed,
    )
    assert len(acl.rules()) == len(of_kafka) - 2
    run("--remove", "--force", "--allow-principal", "User:p", "--producer", "--topic", "t", "--transactional-id", "x")
    assert not any("User:p" in one for one in acl.rules())
    acl("delete", "--all", "--yes")

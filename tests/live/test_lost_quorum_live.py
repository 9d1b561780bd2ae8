"""Two of three real nodes die: each command says that the quorum is lost, and what it still knows."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.waiting import wait_until
from tests.live.person import COMMAND_S, Person


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    yield person
    person.leaves()


@pytest.mark.timeout(300)
def test_a_lost_quorum_is_called_so(person: Person) -> None:
    person.types("up", "-d")
    person.types("topic", "create", "t", "--partitions", "3")
    leader = person.asks("quorum", "status")["leader"]
    alive, dead = leader % 3 + 1, (leader + 1) % 3 + 1
    nodes = LocalNodes.open(person.root)
    for victim in (dead, leader):  # both before one of them can be fenced
        assert nodes.kill(victim)

    lost = "the quorum is lost: 1 of 3 controllers runs, 2 are needed"
    wait_until(lambda: lost in person.does("status").stderr, COMMAND_S, "the quorum to be called lost")
    status = person.asks("status", want=5)
    assert lost in status["cluster"]["error"]
    (node,) = [node for node in status["nodes"] if node["node_id"] == alive]
    assert node["ready"], "a broker that serves is not taken away from its clients"
    with urllib.request.urlopen(f"http://127.0.0.1:{node['admin_port']}/readyz", timeout=10) as page:
        assert b"the leader of the quorum is unknown" in page.read()

    brokers = {row["broker_id"]: row["state"] for row in person.asks("broker", "list", want=5)}
    assert brokers == {alive: "running", dead: "no answer", leader: "no answer"}
    said = person.does("topic", "describe", "t")
    assert said.returncode == 5 and "no leader of the quorum answers" in said.stderr
    assert len(said.stdout.splitlines()) == 2 + 3

    said = person.does("topic", "list")
    assert said.returncode == 0 and lost in said.stderr and "may be old" in said.stderr
    for refused in (("config", "set", "t", "retention.ms=5000"), ("quorum", "status"), ("group", "list")):
        said = person.does(*refused)
        assert said.returncode == 5 and lost in said.stderr and "quorumlog up -d" in said.stderr, refused

    person.types("kill", str(alive))
    said = person.does("restart", str(alive))
    assert said.returncode == 5 and lost in said.stderr and "quorumlog up -d" in said.stderr
    person.types("up", "-d")
    wait_until(person.healthy, COMMAND_S, "the cluster to be whole again")

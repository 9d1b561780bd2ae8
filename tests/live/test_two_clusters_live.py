"""Two local clusters, and two people on one machine: a command means one cluster, and acts on no other."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorumlog.testing.layout import Layout, has_cluster, read_layout
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import NodePorts, PortPicker
from tests.live.person import Person

pytestmark = pytest.mark.timeout(240)


class SamePorts(PortPicker):
    """Picks the row that another cluster has, as a cluster does that is made while that one is stopped."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__()
        self._ports = ports

    def pick(self, count: int) -> list[NodePorts]:
        assert count == 1
        self.hold([self._ports])
        return [self._ports]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Person, Person]]:
    """Two folders of one person: A, where a cluster is started first, and B. C, below, is empty."""
    for name in ("A/sub", "B", "C"):
        (tmp_path / name).mkdir(parents=True)
    a, b = (Person(tmp_path / name, home=tmp_path / "home") for name in ("A", "B"))
    yield a, b
    a.leaves()
    b.leaves()


def topics(person: Person, at: str = ".", **environment: str) -> list[str]:
    return [topic["topic"] for topic in person.asks("topic", "list", at=at, **environment)]


def test_each_directory_means_its_own_cluster(two: tuple[Person, Person]) -> None:
    a, b = two
    started = a.asks("up", "-d", "-n", "1")
    a.types("topic", "create", "in-a")
    told = b.hears("up", "-d", "-n", "1", want=0)
    assert "'local-B' was made; elsewhere commands still use 'local'" in told
    b.types("topic", "create", "in-b")

    assert topics(a, at="sub") == topics(a, at="../C") == ["in-a"]
    assert topics(b) == ["in-b"]
    assert topics(a, QUORUMLOG_PROFILE="local-B") == ["in-b"]
    assert {a.asks("status", at=at)["cluster_id"] for at in ("sub", "../C")} == {started["cluster_id"]}
    assert a.asks("status", QUORUMLOG_PROFILE="local-B")["data_dir"] == str(b.root)
    profiles = {row["name"]: row for row in a.asks("profile", "list")}
    assert profiles["local"]["cluster_id"] == started["cluster_id"] and profiles["local"]["current"]
    assert profiles["local-B"]["data_dir"] == str(b.root)

    assert started["cluster_id"] in a.hears("topic", "delete", "in-a", want=0)
    assert a.asks("down")["data_dir"] == str(a.root)
    for at in (".", "../C"):
        assert "no node runs" in a.hears("topic", "list", want=3, at=at)
    assert topics(b) == ["in-b"]
    assert b.healthy()


def test_a_command_that_harms_stays_in_its_directory(two: tuple[Person, Person]) -> None:
    a, _ = two
    started = a.asks("up", "-d", "-n", "1")
    for command, at in (
        (["purge", "-y"], "../C"),
        (["purge", "-y"], "sub"),
        (["down"], "../C"),
        (["kill", "1"], "sub"),
    ):
        said = a.hears(*command, want=6, at=at)
        assert started["cluster_id"] in said and f"--data {a.root}" in said
    assert a.healthy()
    said = a.hears("purge", want=1)
    assert f"Delete cluster {started['cluster_id']} in {a.root}" in said and "nothing was deleted" in said
    assert a.asks("purge", "-y", "--data", str(a.root), at="../C")["cluster_id"] == started["cluster_id"]
    assert not has_cluster(a.root) and a.asks("profile", "list") == []


def test_another_cluster_on_the_ports_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    """X's cluster is down, and Y's has its ports."""
    x, y = Person(tmp_path / "x"), Person(tmp_path / "y")
    for folder in (x.folder, y.folder, x.folder.parent / "elsewhere"):
        folder.mkdir(exist_ok=True)
    try:
        x.types("up", "-d", "-n", "1")
        x.types("down")
        mine = read_layout(x.root)
        theirs = _started_on_the_ports_of(mine, y.root)
        y.types("topic", "create", "orders")
        y.types("produce", "orders", stdin="theirs\n")

        commands = [
            ["topic", "list"],
            ["consume", "orders", "-e"],
            ["topic", "delete", "orders"],
            ["produce", "orders"],
        ]
        for number, command in enumerate(commands):
            assert "no node runs" in x.hears(*command, want=3, stdin="mine\n", at=(".", "../elsewhere")[number % 2])
        x.types("status", want=3)
        servers = mine.bootstrap_servers
        x.types("profile", "create", "mine", "-b", servers, "-X", f"cluster.id={mine.cluster_id}")
        for command in commands:
            said = x.hears(*command, "--profile", "mine", want=3, stdin="mine\n")
            assert mine.cluster_id in said and theirs.cluster_id in said
        x.types("profile", "create", "theirs", "-b", servers)
        assert x.asks("profile", "show", "theirs")["cluster_id"] == theirs.cluster_id
        assert x.types("consume", "orders", "-e", "--profile", "theirs") == "theirs\n"
    finally:
        x.leaves()
        y.leaves()


def test_a_folder_that_is_copied_or_moved_keeps_to_its_own_data(tmp_path: Path) -> None:
    """Also a copy that is made while the original runs: its files name processes that are not its own."""
    home = tmp_path / "home"
    original, copy, moved = (Person(tmp_path / name, home=home) for name in ("M", "M3", "M2"))
    original.folder.mkdir()
    try:
        original.types("up", "-d", "-n", "1")
        original.types("produce", "x", stdin="one\n")
        shutil.copytree(original.folder, copy.folder, ignore=shutil.ignore_patterns("*.sock"))
        assert "no node runs" in copy.hears("topic", "list", want=3)
        assert "does not run" in copy.hears("kill", "1", want=6)
        said = copy.hears("up", "-d", want=6)
        assert str(original.root) in said and "copies of one another" in said
        assert original.healthy()
        original.types("down")

        assert "a copy of" in copy.hears("up", "-d", want=0)
        copy.types("produce", "x", stdin="in the copy\n")
        assert copy.types("consume", "x", "-e") == "one\nin the copy\n"
        assert "copies of one another" in original.hears("up", "-d", want=6)
        copy.types("down")
        partition = ".quorumlog/n1/data/x-0"
        assert "in the copy" in copy.types("log", "grep", partition, "-e", ".")
        assert "in the copy" not in original.types("log", "grep", partition, "-e", ".")

        original.folder.rename(moved.folder)
        assert f"moved from {original.root}" in moved.hears("up", "-d", want=0)
        assert moved.types("consume", "x", "-e") == "one\n"
        assert not original.folder.exists()
        meta = read_layout(moved.root)
        moved.types("storage", "format", "-c", str(meta.nodes[0].config), "-t", meta.cluster_id, want=6)
    finally:
        for person in (original, copy, moved):
            person.leaves()


def _started_on_the_ports_of(other: Layout, root: Path) -> Layout:
    picker = SamePorts(other.nodes[0].ports)
    try:
        nodes = LocalNodes.create(root, 1, {}, picker)
        nodes.start()
        nodes.wait_ready()
        return nodes.layout
    finally:
        picker.close()

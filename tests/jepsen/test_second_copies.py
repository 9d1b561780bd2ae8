"""When a broker may have a second log of a partition, which one is the replica's, and that the other does not stay."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.placement.directories import DirectoryInvariants
from jepsen.sim.machine.disk import SimDisk
from jepsen.sim.settings import DIRECTORIES
from jepsen.sim.truth.mirrors import Mirrors, log_id
from quorumlog_storage.directory.mark import MARK_NAME
from quorumlog_storage.directory.partition_metadata import PARTITION_METADATA, write_unsynced_topic_id

TOPIC_ID, NODE, OTHER = b"t" * 16, 11, 12
FIRST, SECOND = DIRECTORIES
LOG = log_id("t-0", TOPIC_ID)
COPY = f"t-0.{'0' * 32}-future"


class Scene:
    """A broker with a log in its second directory."""

    def __init__(self) -> None:
        self.findings, self.disk = Findings(lambda: 0), SimDisk()
        self.mirrors = Mirrors(self.findings)
        self.invariants = DirectoryInvariants(self.mirrors, self.findings, {}, {})
        for path in ("/data", *DIRECTORIES):
            self.disk.make_directory(path)
        config = SimpleNamespace(log_dirs=DIRECTORIES)
        self.machine: Any = SimpleNamespace(host="b1", node_id=NODE, disk=self.disk, config=config)
        self.make(SECOND)

    def make(self, directory: str, name: str = "t-0") -> None:
        self.disk.make_directory(f"{directory}/{name}")
        write_unsynced_topic_id(self.disk, f"{directory}/{name}", TOPIC_ID)
        self.tell(f"{directory}/{name}/{PARTITION_METADATA}")

    def leave(self, directory: str) -> None:
        self.disk.rename(f"{directory}/t-0", f"{directory}/t-0.{'1' * 32}-stray")
        self.tell(f"{directory}/t-0")

    def tell(self, path: str) -> None:
        """Something was renamed; path: its old name, or that of a file."""
        self.mirrors.on_disk(self.machine, "rename", path)
        self.invariants.on_disk(self.machine, "rename", path)

    def told(self, *replicas: int) -> None:
        """The committed metadata names these replicas."""
        partitions = [(0, SimpleNamespace(replicas=replicas))]
        topic = SimpleNamespace(name="t", id=TOPIC_ID, sorted_partitions=lambda: partitions)
        image: Any = SimpleNamespace(sorted_topics=lambda: [topic])
        self.invariants.on_image(image)

    def lies_twice(self) -> None:
        self.told(NODE, OTHER)
        self.told(OTHER)
        self.told(NODE, OTHER)
        self.make(FIRST)

    @property
    def found(self) -> list[str]:
        return [finding.name for finding in self.findings.found]


@pytest.mark.parametrize(
    ("replicas", "found"),
    [
        ([(NODE, OTHER)], ["one-copy-per-broker"]),
        ([(NODE, OTHER), (OTHER,), (NODE, OTHER)], []),
        ([(NODE, OTHER), (NODE,), (NODE, OTHER)], ["one-copy-per-broker"]),
    ],
    ids=["a replica all the time", "no replica in between", "another one was none"],
)
def test_who_may_make_a_second_log(replicas: list[tuple[int, ...]], found: list[str]) -> None:
    scene = Scene()
    for one in replicas:
        scene.told(*one)
    scene.make(FIRST)
    assert scene.found == found


def test_the_log_that_was_made_last_is_the_replicas() -> None:
    scene = Scene()
    assert scene.mirrors.made_last(scene.machine, LOG) == f"{SECOND}/t-0"
    scene.lies_twice()
    assert scene.mirrors.made_last(scene.machine, LOG) == f"{FIRST}/t-0"
    assert scene.mirrors.of(scene.machine, LOG).path == f"{FIRST}/t-0"


def test_an_older_log_does_not_stay() -> None:
    scene = Scene()
    scene.lies_twice()
    assert scene.invariants.older_copies(scene.machine) == [f"{SECOND}/t-0"]
    scene.invariants.check_copies(scene.machine)
    assert scene.found == ["older-copy-is-set-aside"]


def test_an_older_log_may_leave() -> None:
    scene = Scene()
    scene.lies_twice()
    scene.leave(SECOND)
    scene.invariants.check_copies(scene.machine)
    assert scene.found == []


def test_the_newest_log_may_not_leave() -> None:
    scene = Scene()
    scene.lies_twice()
    scene.leave(FIRST)
    assert scene.found == ["newest-copy-is-kept"]


@pytest.mark.parametrize(("is_complete", "found"), [(True, []), (False, ["newest-copy-is-kept"])])
def test_it_may_leave_for_the_complete_copy_of_a_move(is_complete: bool, found: list[str]) -> None:
    scene = Scene()
    scene.told(NODE)
    scene.make(FIRST, COPY)
    if is_complete:
        scene.disk.open(f"{FIRST}/{COPY}/{MARK_NAME}", create=True)
    scene.leave(SECOND)
    assert scene.found == found


def test_a_log_of_a_broker_that_is_no_replica_may_leave() -> None:
    scene = Scene()
    scene.told(NODE, OTHER)
    scene.told(OTHER)
    scene.leave(SECOND)
    assert scene.found == []

"""`quorumlog topic create|alter --replica-assignment`: what it takes, and what it sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog_cli.commands.topics import topic, topic_alter
from quorumlog_cli.commands.topics.replica_assignment import parse_assignment
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import CliError, Exit

TARGET = Target(bootstrap_servers="h:1", origin="-b")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the cluster was asked for."""
    asked: list[tuple[Any, ...]] = []

    def create_topic(name: str, partitions: int, replication: int, _configs: Any, **more: Any) -> Any:
        asked.append((name, partitions, replication, more["assignment"]))
        return SimpleNamespace(name=name, error_code=0, topic_id=b"", num_partitions=2, replication_factor=3)

    def create_partitions(name: str, count: int, **more: Any) -> None:
        asked.append((name, count, more["assignment"]))

    @contextmanager
    def connected(_target: Any) -> Iterator[Any]:
        admin = SimpleNamespace(create_topic=create_topic, create_partitions=create_partitions)
        yield SimpleNamespace(admin=admin)

    for module in (topic, topic_alter):
        monkeypatch.setattr(module, "connected", connected)
        monkeypatch.setattr(module, "find_target", lambda *_options: TARGET)
    return asked


def test_a_topic_is_placed(asked: list[tuple[Any, ...]]) -> None:
    assert main(["topic", "create", "t", "--replica-assignment", "1:2:3,2:3:1"]) == 0
    assert main(["topic", "create", "t"]) == 0
    assert asked == [("t", -1, -1, ((1, 2, 3), (2, 3, 1))), ("t", -1, -1, None)]


def test_new_partitions_are_placed(asked: list[tuple[Any, ...]]) -> None:
    assert main(["topic", "alter", "t", "--partitions", "3", "--replica-assignment", "2:1"]) == 0
    assert asked == [("t", 3, ((2, 1),))]


@pytest.mark.parametrize(
    "words",
    [
        ["create", "t", "--replica-assignment", "1:2", "--partitions", "1"],
        ["create", "t", "--replica-assignment", "1:2", "-r", "2"],
        ["alter", "t", "--replica-assignment", "1:2", "-c", "retention.ms=1"],
    ],
)
def test_what_contradicts_it_is_refused(asked: list[tuple[Any, ...]], words: list[str]) -> None:
    assert main(["topic", *words]) == Exit.USAGE and asked == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is not a broker id"),
        ("1:2,", "'' is not a broker id"),
        ("1:x", "'x' is not a broker id"),
        ("1:-2", "'-2' is not a broker id"),
        ("1:2,3:3", "partition 1 of it names a broker twice"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, says: str) -> None:
    with pytest.raises(CliError, match=says):
        parse_assignment(text)

"""`quorumlog topic delete` asks before it deletes what brokers keep for themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.topic_name import INTERNAL_TOPICS
from quorumlog_cli.commands.topics import topic as command
from quorumlog_cli.main import main
from quorumlog_cli.profiles.profile import Target
from quorumlog_cli.terminal.errors import Exit

TARGET = Target(bootstrap_servers="h:1", origin="-b")

LOST = {
    "__consumer_offsets": "every offset that one has committed",
    "__transaction_state": "the state of every transaction",
    "__share_group_state": "what brokers keep there",
}


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that the cluster was told to delete."""
    deleted: list[str] = []

    @contextmanager
    def connected(_target: Any) -> Iterator[Any]:
        yield SimpleNamespace(admin=SimpleNamespace(delete_topic=deleted.append))

    monkeypatch.setattr(command, "connected", connected)
    monkeypatch.setattr(command, "find_target", lambda *_options: TARGET)
    return deleted


@pytest.mark.parametrize("name", sorted(INTERNAL_TOPICS))
def test_a_topic_of_the_cluster_needs_unsafe(deleted: list[str], capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["topic", "delete", "orders", name]) == Exit.USAGE and deleted == []
    said = capsys.readouterr().err
    assert name in said and LOST[name] in said and "--unsafe" in said
    assert main(["topic", "delete", "orders", name, "--unsafe"]) == 0 and deleted == ["orders", name]


def test_other_topics_do_not(deleted: list[str]) -> None:
    assert main(["topic", "delete", "orders", "__mine"]) == 0 and deleted == ["orders", "__mine"]

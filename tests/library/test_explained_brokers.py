"""A broker is cordoned as the controller knows it, or as it tells of its directories, as Kafka's protocol has it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.explaining.reading import read_facts
from quorumlog.messages.admin import LogDirDescription

A, B = b"a", b"b"
CASES = [
    ("the controller tells it", (A, B), (A, B), (False, False), True),
    ("the controller knows of one of two", (A, B), (A,), (False, False), False),
    ("by Kafka's protocol each directory tells it", (), (), (True, True), True),
    ("one takes new replicas", (), (), (True, False), False),
    ("nobody tells anything", (), (), (), False),
]


def directory(at: int, cordoned: bool, error_code: int = 0) -> LogDirDescription:
    return LogDirDescription(path=f"/d{at}", is_cordoned=cordoned, error_code=error_code, error_message="EIO")


class Admin:
    """Answers what is asked of a cluster with one broker."""

    def __init__(self, online: tuple[bytes, ...], known: tuple[bytes, ...], told: list[LogDirDescription]) -> None:
        broker = SimpleNamespace(
            node_id=1, fenced=False, in_controlled_shutdown=False, log_directories=online, cordoned_directories=known
        )
        self._answers = {"describe_cluster": SimpleNamespace(brokers=[broker]), "describe_log_dirs": {1: tuple(told)}}

    def __getattr__(self, name: str) -> Any:
        return lambda *_args, **_options: self._answers.get(name, [] if name == "list_topics" else {})


def is_cordoned(online: tuple[bytes, ...], known: tuple[bytes, ...], told: list[LogDirDescription]) -> bool:
    admin: Any = Admin(online, known, told)
    facts = read_facts(admin, wall_ms=lambda: 0, sleep_s=lambda _s: None, parts=("brokers",))
    return facts.brokers[0].cordoned


@pytest.mark.parametrize(("online", "known", "told", "want"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_cordoned(online: tuple[bytes, ...], known: tuple[bytes, ...], told: tuple[bool, ...], want: bool) -> None:
    assert is_cordoned(online, known, [directory(at, one) for at, one in enumerate(told)]) is want


def test_a_directory_that_is_offline_takes_no_replica_anyway() -> None:
    assert is_cordoned((), (), [directory(0, True), directory(1, False, error_code=56)])
    assert not is_cordoned((), (), [directory(0, False, error_code=56)])
